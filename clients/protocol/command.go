package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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

// Traced is a line of the protocol. It is the same Line afterwards only where it was Sent.
type Traced struct {
	Sent bool  // to the client
	At   int64 // when it was sent or read, in ns of CLOCK_MONOTONIC
	Line []byte
}

// exitTime is how long a client may take to end after the end of its input. It is told to
// take a second; the machine may be busy.
const exitTime = 5 * time.Second

// silenceTime is how long it may run on without its output.
const silenceTime = time.Second

// errNoProgram is a Command without Args.
var errNoProgram = errors.New("no program is named")

// program is a running Command.
type program struct {
	input  io.WriteCloser
	output io.ReadCloser
	handle *os.Process
	ended  chan struct{} // closed when it was waited for
	state  error         // how it ended, nil for status 0; valid once ended is closed
}

// start starts the program. It ends with this process at the latest, even if that is killed.
func (c Command) start() (*program, error) {
	if len(c.Args) == 0 {
		return nil, errNoProgram
	}
	command := exec.Command(c.Args[0], c.Args[1:]...)
	command.Dir, command.Env = c.Folder, append(os.Environ(), c.Env...)
	command.Stderr = c.Log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// What the client starts and leaves behind stays a descendant of this process, by which
	// faults and the end of the run find it.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, outputEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	command.Stdout = outputEnd
	p := &program{input: input, output: output, ended: make(chan struct{})}
	started := make(chan error)
	go p.wait(command, started)
	err = <-started
	_ = outputEnd.Close() // the child has its own
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the client cannot be started: %w", err), output.Close())
	}
	return p, nil
}

// wait starts the program and waits for its end on one thread: the kernel regards the death
// of the thread that started a process as that of its parent.
func (p *program) wait(command *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// What it forked may keep the error output open after it.
	command.WaitDelay = exitTime
	err := command.Start()
	p.handle = command.Process
	started <- err
	if err != nil {
		return
	}
	if err := command.Wait(); !errors.Is(err, exec.ErrWaitDelay) {
		p.state = err
	}
	close(p.ended)
}

// close ends the input, waits for the program to end, and kills it if it does not. late says
// that it had to.
func (p *program) close(ctx context.Context) (late bool, err error) {
	var once sync.Once
	kill := func() { once.Do(func() { late = true; _ = p.handle.Kill() }) }
	_ = p.input.Close() // it may have closed its end already
	timer := time.NewTimer(exitTime)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-ctx.Done():
		kill()
	case <-timer.C:
		kill()
	}
	<-p.ended
	return late, p.output.Close()
}

// Pid is the process ID of the client.
func (c *Client) Pid() int { return c.program.handle.Pid }

// Kill ends the client at once, and nothing that it has started.
func (c *Client) Kill() error { return c.program.handle.Kill() }

// exit says how the program ended, once it has.
func (p *program) exit() string {
	if p.state == nil {
		return "exit status 0"
	}
	return p.state.Error()
}
