// Package child starts users' programs, which never outlive this process. Their orphans stay descendants of
// this process, so that faults and the end of a run can find them.
package child

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockcheck/internal/processes"
)

// Process is a program that was started.
type Process struct {
	Handle *os.Process
	// Ended is closed when the program has ended and was waited for.
	Ended chan struct{}
	state error // how the program ended; nil for status 0; valid once Ended is closed
}

// outputTime is how long the output of a program is still read after its end, if a process that it forked keeps
// the output open. It matters only if the command copies its output.
const outputTime = time.Second

// Start starts a command. The kernel kills it at the latest when this process ends, even if this process is
// killed. The error is a *StartError if lockcheck knows what the user can do about it.
func Start(command *exec.Cmd) (*Process, error) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = new(syscall.SysProcAttr)
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// As a subreaper, this process becomes the parent of the program's orphans. Faults and the end of the run
	// find them as its descendants.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	command.WaitDelay = outputTime
	if launchable(command) {
		command.Args[0] = command.Path
		command.Args = processes.Launched(command.Args)
		command.Path = command.Args[0]
	}
	p := &Process{Ended: make(chan struct{})}
	started := make(chan error)
	go p.wait(command, started)
	if err := <-started; err != nil {
		return nil, startError(command, err)
	}
	return p, nil
}

// launchable says whether a program can be started by the launcher. Without the launcher, a file that is no program gives
// the kernel's own error. Of a script only the interpreter would be launched, and not what the script executes.
func launchable(command *exec.Cmd) bool {
	path := command.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(command.Dir, path)
	}
	file, err := os.Stat(path)
	_, isScript := firstLine(path)
	return command.Err == nil && err == nil && file.Mode().IsRegular() && file.Mode()&0o111 != 0 && !isScript
}

// wait starts the program and waits for its end on one OS thread. The kernel sends the signal for the death of
// the parent when the thread that started the process ends.
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

// HasEnded reports whether the program has ended.
func (p *Process) HasEnded() bool {
	select {
	case <-p.Ended:
		return true
	default:
		return false
	}
}

// Status waits for the end and returns the exit status; -1 if a signal ended the program.
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

// Exit waits for the end and describes it in words.
func (p *Process) Exit() string {
	<-p.Ended
	if p.state == nil {
		return "exit status 0"
	}
	return p.state.Error()
}
