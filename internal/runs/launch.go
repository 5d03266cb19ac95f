package runs

import (
	"errors"
	"os/exec"
	"syscall"
)

// launch starts a process, the leader of its group, and has it written down. One that
// could not be is ended.
func launch(command *exec.Cmd, register func(pid int) error) error {
	if err := command.Start(); err != nil {
		return err
	}
	if err := register(command.Process.Pid); err != nil {
		killErr := syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		_ = command.Wait() // it was killed
		return errors.Join(err, killErr)
	}
	return nil
}
