package clusters

import (
	"context"
	"errors"
	"os"
	"strconv"
	"syscall"

	"lockcheck/clusters/agent"
	"lockcheck/history"
	"lockcheck/internal/processes"
)

// family is a host of a child and of all that it has started, the child first. It is so for
// as long as the child has not been waited for: afterwards its number may be that of a
// process that is not ours.
type family struct {
	agent.Local
	child *os.Process
}

func familyOf(child *os.Process) family {
	return family{child: child, Local: agent.Local{
		PIDs: func() ([]int, error) { return members(child) },
		Send: func(pid int, signal syscall.Signal) error {
			if pid == child.Pid {
				return child.Signal(signal)
			}
			return sendTo(pid, child, signal)
		},
	}}
}

// Signal implements agent.Host. Who is to be killed is stopped first: it could start
// something that nobody finds once its parent is gone. And the child is stopped before its
// descendants are looked for, which takes longer on a busy machine than a critical section.
func (f family) Signal(ctx context.Context, signal agent.Signal) (agent.Moment, error) {
	from := history.Now()
	switch signal {
	case agent.Kill:
		if _, err := f.Signal(ctx, agent.Stop); err != nil {
			return agent.Moment{}, err
		}
	case agent.Stop:
		if err := f.child.Signal(syscall.SIGSTOP); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return agent.Moment{}, err
		}
	}
	moment, err := f.Local.Signal(ctx, signal)
	moment.From = from
	return moment, err
}

// sendTo signals a descendant. Its handle is taken before it is looked at once more, so that
// a process that has its number by now is not mistaken for it.
func sendTo(pid int, child *os.Process, signal syscall.Signal) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer process.Release() //nolint:errcheck // it only frees the handle
	if !descends(pid, child) {
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

// descends says whether a process is a descendant of a child that was not waited for.
func descends(pid int, child *os.Process) bool {
	for pid > 1 && pid != child.Pid {
		parent, err := parentOf(pid)
		if err != nil {
			return false
		}
		pid = parent
	}
	return pid == child.Pid && child.Signal(syscall.Signal(0)) == nil
}

// parentOf reads the parent of a process. An error says that the process has ended.
func parentOf(pid int) (int, error) {
	fields, err := processes.Stat(pid)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(fields[processes.Parent])
}
