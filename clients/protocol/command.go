package protocol

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"lockcheck/clients/child"
	"lockcheck/internal/processes"
)

// Command is the program of a client.
type Command struct {
	Args []string `json:"args"` // program and arguments
	// Folder in which it is started; "" for that of this process.
	Folder string `json:"folder,omitempty"`
	// Env is added to the environment of this process, as "NAME=value".
	Env []string `json:"env,omitempty"`
	// Log gets what the program writes on standard error, and the lines on standard output
	// that are none of the protocol; nil for nowhere.
	Log io.Writer `json:"-"`
	// Trace is told each line of the protocol, by several goroutines; nil for nobody.
	Trace func(Traced) `json:"-"`
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
	*child.Process
	input  io.WriteCloser
	output *os.File
	last   *lastWords
	mark   processes.Mark // of all that it starts
	// ended is closed when it has ended and its error output was read.
	ended chan struct{}
}

// start starts the program. It ends with this process at the latest, even if that is killed.
func (c Command) start() (*program, error) {
	if len(c.Args) == 0 {
		return nil, errNoProgram
	}
	mark, err := newMark()
	if err != nil {
		return nil, err
	}
	command := exec.Command(c.Args[0], c.Args[1:]...)
	command.Dir, command.Env = c.Folder, append(append(os.Environ(), c.Env...), string(mark))
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, outputEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errorOutput, errorsEnd, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, output.Close(), outputEnd.Close())
	}
	command.Stdout, command.Stderr = outputEnd, errorsEnd
	process, err := child.Start(command)
	err = errors.Join(err, outputEnd.Close(), errorsEnd.Close()) // the child has its own
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the client cannot be started: %w", err), output.Close(), errorOutput.Close())
	}
	p := &program{Process: process, input: input, output: output, last: &lastWords{log: c.Log}, mark: mark, ended: make(chan struct{})}
	go p.readErrors(errorOutput)
	return p, nil
}

// newMark returns a mark that no other client has.
func newMark() (processes.Mark, error) {
	random := make([]byte, 8)
	_, err := rand.Read(random)
	return processes.Mark("LOCKCHECK_CLIENT=" + hex.EncodeToString(random)), err
}

// readErrors reads the error output until the program has ended.
func (p *program) readErrors(from *os.File) {
	defer close(p.ended)
	defer from.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(p.last, from) // it ends with the program, whatever that does
	}()
	<-p.Ended
	// A pipe has no other end; a deadline that cannot be set would be one for ever.
	last := time.Now().Add(lastTime)
	_ = from.SetReadDeadline(last)
	_ = p.output.SetReadDeadline(last)
	<-read
}

// close ends the input, waits for the program to end, and kills it if it does not, at once if
// it is not to be waited for. late says that it had to be. What the program has started ends
// with it, too; left are those that had to be killed.
func (p *program) close(patience time.Duration) (late bool, left []string, err error) {
	_ = p.input.Close() // it may have closed its end already
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.Ended:
	case <-timer.C:
		late = true
		_ = p.Handle.Kill() // it may have ended by now
	}
	<-p.Ended
	left, err = p.endLeft()
	<-p.ended
	return late, left, err
}

// endLeft waits for what the program has started to end by itself, and kills what does not.
func (p *program) endLeft() (left []string, err error) {
	for deadline := time.Now().Add(leftTime); ; time.Sleep(20 * time.Millisecond) {
		running, err := p.mark.Running()
		if err != nil || len(running) == 0 {
			return nil, err
		}
		if time.Now().Before(deadline) {
			continue
		}
		for _, pid := range running {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // none if it has just ended
			left = append(left, fmt.Sprintf("%s (process %d)", strings.TrimSpace(string(name)), pid))
		}
		_, err = p.mark.Kill()
		return left, err
	}
}

// Kill ends the client at once, and nothing that it has started.
func (c *Client) Kill() error { return c.program.Handle.Kill() }

// Stop stops the client (SIGSTOP), and nothing that it has started.
func (c *Client) Stop() error { return c.program.Handle.Signal(syscall.SIGSTOP) }

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
