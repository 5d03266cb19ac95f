package protocol

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"lockcheck/clients/child"
	"lockcheck/history"
	"lockcheck/internal/processes"
)

// Command is the program of a client.
type Command struct {
	Args []string `json:"args"` // program and arguments
	// Folder is the program's working folder; "" for that of this process.
	Folder string `json:"folder,omitempty"`
	// Env is added to the environment of this process, as "NAME=value". With OnHost, the program inherits only
	// the variables that any program may need. On the host, the environment belongs to the user who runs
	// lockcheck, and may contain passwords that the program must not see. In an image, it is the image's own.
	Env    []string `json:"env,omitempty"`
	OnHost bool     `json:"on_host,omitempty"`
	// Log receives what the program writes on standard error, and lines on standard output that are not part of
	// the protocol; nil discards them.
	Log io.Writer `json:"-"`
	// Trace is called for each line of the protocol, from several goroutines; nil for no calls.
	Trace func(Traced) `json:"-"`
	// Run runs the client instead of Args, for tests whose client is not a program; nil starts the program.
	Run func() (Process, error) `json:"-"`
	// Now is the clock, in ns, of a client that Run runs; nil for CLOCK_MONOTONIC.
	Now func() int64 `json:"-"`
}

// Process is a client that was started.
type Process struct {
	Control
	Input          io.WriteCloser // standard input of the client
	Output, Errors Output
}

// Output is an output of a client.
type Output interface {
	io.ReadCloser
	SetReadDeadline(time.Time) error
}

// Control ends a client, and describes how it ended.
type Control interface {
	// Ended returns a channel that is closed when the client has ended.
	Ended() <-chan struct{}
	// Exit waits for the end and describes in words how the client ended.
	Exit() string
	// Kill kills the client (SIGKILL), but not the processes that it has started.
	Kill() error
	// Stop stops the client (SIGSTOP), but not the processes that it has started.
	Stop() error
	// Left names the processes that the client has started and that still run.
	Left() ([]string, error)
	// KillLeft kills the processes that Left names.
	KillLeft() error
}

const (
	// allowedTime is how long, by the protocol, a client may take to end after the end of its input.
	allowedTime = time.Second
	// exitTime is how long lockcheck waits for that, because a busy machine may need more time.
	exitTime = 5 * time.Second
	// lastTime is how long the last output of a client is awaited after its end. Processes that it left behind
	// may keep its outputs open for ever.
	lastTime = 500 * time.Millisecond
	// leftTime is how long processes that a client has started may continue after its end.
	leftTime = time.Second
)

// Traced is a line of the protocol. If Sent is false, Line is valid only during the call, because its buffer is
// reused.
type Traced struct {
	Sent bool  // to the client
	At   int64 // when it was sent or read, in ns of CLOCK_MONOTONIC
	Line []byte
}

// errNoProgram is the error of a Command without Args.
var errNoProgram = errors.New("no program is named")

// program is a running Command.
type program struct {
	Process
	last *lastWords
	// errorsRead is closed when the client has ended and its error output was read.
	errorsRead chan struct{}
}

func (c Command) start() (*program, error) {
	run := c.run
	if c.Run != nil {
		run = c.Run
	}
	process, err := run()
	if err != nil {
		return nil, err
	}
	p := &program{Process: process, last: &lastWords{log: c.Log}, errorsRead: make(chan struct{})}
	go p.readErrors()
	return p, nil
}

// Clock returns the clock by which the client is judged, in ns: Now, or CLOCK_MONOTONIC if Now is nil.
func (c Command) Clock() func() int64 {
	if c.Now != nil {
		return c.Now
	}
	return history.Now
}

// run starts the program. The program never outlives this process, even if this process is killed.
func (c Command) run() (Process, error) {
	if len(c.Args) == 0 {
		return Process{}, errNoProgram
	}
	mark, err := newMark()
	if err != nil {
		return Process{}, err
	}
	command := exec.Command(c.Args[0], c.Args[1:]...)
	command.Dir, command.Env = c.Folder, append(append(c.Inherited(), c.Env...), string(mark))
	input, err := command.StdinPipe()
	if err != nil {
		return Process{}, err
	}
	output, outputEnd, err := os.Pipe()
	if err != nil {
		return Process{}, err
	}
	errorOutput, errorsEnd, err := os.Pipe()
	if err != nil {
		return Process{}, errors.Join(err, output.Close(), outputEnd.Close())
	}
	command.Stdout, command.Stderr = outputEnd, errorsEnd
	process, err := child.Start(command)
	err = errors.Join(err, outputEnd.Close(), errorsEnd.Close()) // the child has copies
	if err != nil {
		return Process{}, errors.Join(fmt.Errorf("the client cannot be started: %w", err), output.Close(), errorOutput.Close())
	}
	return Process{Control: &control{process: process, mark: mark}, Input: input, Output: output, Errors: errorOutput}, nil
}

// needed lists the variables that any program may need, in addition to LC_*. It includes the mark by which a
// run finds the processes that it has started. Docs: docs/own-lock.md.
var needed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", processes.RunVariable}

// Inherited returns the variables that the program inherits from this process.
func (c Command) Inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return c.OnHost && !slices.Contains(needed, name) && !strings.HasPrefix(name, "LC_")
	})
}

// control controls a client that is a program.
type control struct {
	process *child.Process
	mark    processes.Mark // in the environment of every process that the program starts
}

func (c *control) Ended() <-chan struct{} { return c.process.Ended }
func (c *control) Exit() string           { return c.process.Exit() }
func (c *control) Kill() error            { return c.process.Handle.Kill() }
func (c *control) Stop() error            { return c.process.Handle.Signal(syscall.SIGSTOP) }

func (c *control) Left() (left []string, err error) {
	running, err := c.mark.Running()
	if err != nil {
		return nil, err
	}
	for _, pid := range running {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // empty if the process has just ended
		left = append(left, fmt.Sprintf("%s (process %d)", strings.TrimSpace(string(name)), pid))
	}
	return left, nil
}

func (c *control) KillLeft() error {
	_, err := c.mark.Kill()
	return err
}

// newMark returns a mark that is unique to a client.
func newMark() (processes.Mark, error) {
	random := make([]byte, 8)
	_, err := rand.Read(random)
	return processes.Mark("LOCKCHECK_CLIENT=" + hex.EncodeToString(random)), err
}

// readErrors reads the error output until the client has ended.
func (p *program) readErrors() {
	defer close(p.errorsRead)
	defer p.Errors.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(p.last, p.Errors) // it ends with the client
	}()
	<-p.Ended()
	// Only a deadline ends the read of a pipe that another process keeps open. If setting it failed, the read
	// could last for ever.
	last := time.Now().Add(lastTime)
	_ = p.Errors.SetReadDeadline(last)
	_ = p.Output.SetReadDeadline(last)
	<-read
}

// close ends the input, waits for the client to end, and kills it once patience is over; late reports that. It
// also ends the processes that the client has started; left names those that had to be killed.
func (p *program) close(patience time.Duration) (late bool, left []string, err error) {
	_ = p.Input.Close() // the client may have closed its end already
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.Ended():
	case <-timer.C:
		late = true
		_ = p.Kill() // it may have ended by now
	}
	<-p.Ended()
	left, err = p.endLeft()
	<-p.errorsRead
	return late, left, err
}

// endLeft waits until the processes that the client has started end by themselves, and kills those that do not.
func (p *program) endLeft() ([]string, error) {
	for deadline := time.Now().Add(leftTime); ; time.Sleep(20 * time.Millisecond) {
		left, err := p.Left()
		switch {
		case err != nil || len(left) == 0:
			return nil, err
		case time.Now().After(deadline):
			return left, p.KillLeft()
		}
	}
}

// Kill kills the client, but not the processes that it has started.
func (c *Client) Kill() error { return c.program.Kill() }

// Stop stops the client (SIGSTOP), but not the processes that it has started.
func (c *Client) Stop() error { return c.program.Stop() }

// exit describes how the program ended, with its last output.
func (p *program) exit() string {
	return p.Exit() + p.last.String()
}

// keptWords is how much of a client's last output is kept, in bytes.
const keptWords = 1 << 10

// lastWords forwards what is written to it, and keeps the end.
type lastWords struct {
	log io.Writer // nil discards it

	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer. It never fails, because a failing log must not affect the client.
func (l *lastWords) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, text[max(0, len(text)-keptWords):]...)
	if excess := len(l.text) - keptWords; excess > 0 {
		l.text = append(l.text[:0], l.text[excess:]...)
	}
	if l.log != nil {
		_, _ = l.log.Write(text)
	}
	return len(text), nil
}

// String returns the kept text with an introduction; "" if nothing was written.
func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(l.text), "\uFFFD"))
	if text == "" {
		return ""
	}
	return "; it wrote last: " + text
}
