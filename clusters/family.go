package clusters

import (
	"context"
	"errors"
	"os"
	"syscall"

	"lockcheck/clusters/agent"
	"lockcheck/history"
	"lockcheck/internal/processes"
)

// family is the host of a child and its descendants, the child first. It has no process once the child has
// been waited for: afterwards another process may have the child's number.
type family struct {
	agent.Local
	child func() *os.Process // changes when the child is restarted
}

func familyOf(child func() *os.Process) family {
	return family{child: child, Local: agent.Local{
		PIDs: func() ([]int, error) { return members(child()) },
		Send: func(pid int, signal syscall.Signal) error {
			child := child()
			if pid == child.Pid {
				return child.Signal(signal)
			}
			return sendTo(pid, child, signal)
		},
	}}
}

// Signal implements agent.Host. Processes are stopped before they are killed: a process that is started
// in between would not be found once its parent is gone. The child is stopped before its descendants are
// looked for, which takes longer on a busy machine than a critical section.
func (f family) Signal(ctx context.Context, signal agent.Signal) (agent.Moment, error) {
	from := history.Now()
	switch signal {
	case agent.Kill:
		if _, err := f.Signal(ctx, agent.Stop); err != nil {
			return agent.Moment{}, err
		}
	case agent.Stop:
		if err := f.child().Signal(syscall.SIGSTOP); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return agent.Moment{}, err
		}
	}
	moment, err := f.Local.Signal(ctx, signal)
	moment.From = from
	return moment, err
}

// sendTo signals a descendant. It takes the handle of the process first and then checks the ancestry
// again, so that another process with the same number is not signalled.
func sendTo(pid int, child *os.Process, signal syscall.Signal) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer process.Release()                                                            //nolint:errcheck // it only frees the handle
	if !processes.Descends(pid, child.Pid) || child.Signal(syscall.Signal(0)) != nil { // and it has not been waited for
		return os.ErrProcessDone
	}
	return process.Signal(signal)
}

// members lists a child and its descendants; none once it has been waited for.
func members(child *os.Process) ([]int, error) {
	if err := child.Signal(syscall.Signal(0)); errors.Is(err, os.ErrProcessDone) {
		return nil, nil
	}
	descendants, err := processes.Descendants(child.Pid)
	if err != nil {
		return nil, err
	}
	return append([]int{child.Pid}, descendants...), nil
}
