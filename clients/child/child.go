// Package child starts programs of users that end with this process at the latest. What they
// leave behind stays where faults and the end of a run find it.
package child

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a program that was started.
type Process struct {
	Handle *os.Process
	// Ended is closed when it has ended and was waited for.
	Ended chan struct{}
	state error // how it ended, nil for status 0; valid once Ended is closed
}

// outputTime is how long the output of a program that has ended is read that something it
// forked keeps open. It matters only where the command copies its output.
const outputTime = time.Second

// Start starts a command. It ends with this process at the latest, even if that is killed.
func Start(command *exec.Cmd) (*Process, error) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = new(syscall.SysProcAttr)
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// What the program starts and leaves behind stays a descendant of this process, by which
	// faults and the end of the run find it.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	command.WaitDelay = outputTime
	p := &Process{Ended: make(chan struct{})}
	started := make(chan error)
	go p.wait(command, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// wait starts the program and waits for its end on one thread: the kernel regards the death
// of the thread that started a process as that of its parent.
func (p *Process) wait(command *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := command.Start()
	p.Handle = command.Process
	started <- err
	if err != nil {
		return
	}
	if err := command.Wait(); !errors.Is(err, exec.ErrWaitDelay) {
		p.state = err
	}
	close(p.Ended)
}

// HasEnded says whether it has ended.
func (p *Process) HasEnded() bool {
	select {
	case <-p.Ended:
		return true
	default:
		return false
	}
}

// Status is its exit status, -1 if a signal ended it. It waits for the end.
func (p *Process) Status() int {
	<-p.Ended
	var exit *exec.ExitError
	switch {
	case p.state == nil:
		return 0
	case errors.As(p.state, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}

// Exit says in words how it ended. It waits for the end.
func (p *Process) Exit() string {
	<-p.Ended
	if p.state == nil {
		return "exit status 0"
	}
	return p.state.Error()
}
