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
	// Folder in which it is started; "" for that of this process.
	Folder string `json:"folder,omitempty"`
	// Env is added to the environment of this process, as "NAME=value". OnHost: of that the
	// program gets only what every program may need, as it is not the environment of its image
	// but of whoever runs lockcheck, with passwords that are none of the program's business.
	Env    []string `json:"env,omitempty"`
	OnHost bool     `json:"on_host,omitempty"`
	// Log gets what the program writes on standard error, and the lines on standard output
	// that are none of the protocol; nil for nowhere.
	Log io.Writer `json:"-"`
	// Trace is told each line of the protocol, by several goroutines; nil for nobody.
	Trace func(Traced) `json:"-"`
	// Run runs the client in place of Args, for tests whose client is no program; nil starts
	// the program.
	Run func() (Process, error) `json:"-"`
	// Now is the clock of a client that Run runs, in ns; nil for CLOCK_MONOTONIC.
	Now func() int64 `json:"-"`
}

// Process is a client that was started.
type Process struct {
	Control
	Input          io.WriteCloser // its standard input
	Output, Errors Output
}

// Output is what a client writes.
type Output interface {
	io.ReadCloser
	SetReadDeadline(time.Time) error
}

// Control ends a client, and says how it ended.
type Control interface {
	// Ended is closed when the client has ended.
	Ended() <-chan struct{}
	// Exit says in words how the client ended. It waits for the end.
	Exit() string
	// Kill ends the client at once (SIGKILL), and nothing that it has started.
	Kill() error
	// Stop stops the client (SIGSTOP), and nothing that it has started.
	Stop() error
	// Left names what the client has started and still runs.
	Left() ([]string, error)
	// KillLeft ends what Left names.
	KillLeft() error
}

const (
	// allowedTime is how long a client may take to end after the end of its input, as the protocol says.
	allowedTime = time.Second
	// exitTime is how long it is given: a busy machine may need more.
	exitTime = 5 * time.Second
	// lastTime is how long what a client wrote last may take to arrive once it has ended.
	// What it has left behind may keep its outputs open for ever.
	lastTime = 500 * time.Millisecond
	// leftTime is how long what a client has started may run on once it has ended.
	leftTime = time.Second
)

// Traced is a line of the protocol. It is the same Line afterwards only where it was Sent.
type Traced struct {
	Sent bool  // to the client
	At   int64 // when it was sent or read, in ns of CLOCK_MONOTONIC
	Line []byte
}

// errNoProgram is a Command without Args.
var errNoProgram = errors.New("no program is named")

// program is a running Command.
type program struct {
	Process
	last *lastWords
	// read is closed when the client has ended and its error output was read.
	read chan struct{}
}

// start starts the client.
func (c Command) start() (*program, error) {
	run := c.run
	if c.Run != nil {
		run = c.Run
	}
	process, err := run()
	if err != nil {
		return nil, err
	}
	p := &program{Process: process, last: &lastWords{log: c.Log}, read: make(chan struct{})}
	go p.readErrors()
	return p, nil
}

// Clock is that by which the client is judged, in ns: CLOCK_MONOTONIC, unless Now is another one.
func (c Command) Clock() func() int64 {
	if c.Now != nil {
		return c.Now
	}
	return history.Now
}

// run starts the program. It ends with this process at the latest, even if that is killed.
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
	err = errors.Join(err, outputEnd.Close(), errorsEnd.Close()) // the child has its own
	if err != nil {
		return Process{}, errors.Join(fmt.Errorf("the client cannot be started: %w", err), output.Close(), errorOutput.Close())
	}
	return Process{Control: &control{process: process, mark: mark}, Input: input, Output: output, Errors: errorOutput}, nil
}

// needed are the variables that any program may need, next to LC_*, and the mark by which a run
// finds what it has started. Docs: docs/own-lock.md.
var needed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", processes.RunVariable}

// Inherited is what the program gets of the environment of this process.
func (c Command) Inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return c.OnHost && !slices.Contains(needed, name) && !strings.HasPrefix(name, "LC_")
	})
}

// control is that of a program.
type control struct {
	process *child.Process
	mark    processes.Mark // of all that it starts
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
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // none if it has just ended
		left = append(left, fmt.Sprintf("%s (process %d)", strings.TrimSpace(string(name)), pid))
	}
	return left, nil
}

func (c *control) KillLeft() error {
	_, err := c.mark.Kill()
	return err
}

// newMark returns a mark that no other client has.
func newMark() (processes.Mark, error) {
	random := make([]byte, 8)
	_, err := rand.Read(random)
	return processes.Mark("LOCKCHECK_CLIENT=" + hex.EncodeToString(random)), err
}

// readErrors reads the error output until the client has ended.
func (p *program) readErrors() {
	defer close(p.read)
	defer p.Errors.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(p.last, p.Errors) // it ends with the client, whatever that does
	}()
	<-p.Ended()
	// A pipe has no other end; a deadline that cannot be set would be one for ever.
	last := time.Now().Add(lastTime)
	_ = p.Errors.SetReadDeadline(last)
	_ = p.Output.SetReadDeadline(last)
	<-read
}

// close ends the input, waits for the client to end, and kills it if it does not, at once if
// it is not to be waited for. late says that it had to be. What the client has started ends
// with it, too; left are those that had to be killed.
func (p *program) close(patience time.Duration) (late bool, left []string, err error) {
	_ = p.Input.Close() // it may have closed its end already
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
	<-p.read
	return late, left, err
}

// endLeft waits for what the client has started to end by itself, and kills what does not.
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

// Kill ends the client at once, and nothing that it has started.
func (c *Client) Kill() error { return c.program.Kill() }

// Stop stops the client (SIGSTOP), and nothing that it has started.
func (c *Client) Stop() error { return c.program.Stop() }

// exit says how the program ended, once it has, and what it wrote last.
func (p *program) exit() string {
	return p.Exit() + p.last.String()
}

// keptWords is how much is kept of what a client wrote last, in bytes.
const keptWords = 1 << 10

// lastWords passes on what is written to it, and keeps the end of it.
type lastWords struct {
	log io.Writer // nil for nowhere

	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer. It never fails: a client must not notice what becomes of its log.
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

// String is empty if nothing was written.
func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(l.text), "\uFFFD"))
	if text == "" {
		return ""
	}
	return "; it wrote last: " + text
}
