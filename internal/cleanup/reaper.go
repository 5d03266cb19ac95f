package cleanup

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// Reaper is a process that outlives this one, and cleans up if this one cannot.
type Reaper struct {
	command *exec.Cmd
	input   io.WriteCloser
}

// reaperDismissed tells a reaper that there is nothing left to do.
const reaperDismissed = "dismissed"

// StartReaper starts a reaper in a session of its own. Ctrl-C or a signal to the process group kills the run
// but must not reach the reaper.
func StartReaper(binary, run string, onDocker bool) (*Reaper, error) {
	args := []string{"reap", "--run", run}
	if onDocker {
		args = append(args, "--docker")
	}
	command := exec.Command(binary, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &Reaper{command: command, input: input}, command.Start()
}

// Dismiss ends the reaper after the run has cleaned up.
func (r *Reaper) Dismiss() error {
	_, err := io.WriteString(r.input, reaperDismissed)
	return errors.Join(err, r.Abandon())
}

// Abandon leaves the cleanup to the reaper and waits until it has finished.
func (r *Reaper) Abandon() error {
	return errors.Join(r.input.Close(), r.command.Wait())
}
