package clusters

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"lockcheck/clusters/agent"
)

// family is a host of a child and of all that it has started, the child first. It is so for
// as long as the child has not been waited for: afterwards its number may be that of a
// process that is not ours.
type family struct{ agent.Local }

func familyOf(child *os.Process) family {
	return family{agent.Local{
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
// something that nobody finds once its parent is gone.
func (f family) Signal(ctx context.Context, signal agent.Signal) (agent.Moment, error) {
	if signal == agent.Kill {
		if _, err := f.Local.Signal(ctx, agent.Stop); err != nil {
			return agent.Moment{}, err
		}
	}
	return f.Local.Signal(ctx, signal)
}

// sendTo signals a descendant. Its handle is taken before it is looked at once more, so that
// a process that has its number by now is not mistaken for it.
func sendTo(pid int, child *os.Process, signal syscall.Signal) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer process.Release() //nolint:errcheck // it only frees the handle
	pids, err := members(child)
	switch {
	case err != nil:
		return err
	case !slices.Contains(pids, pid):
		return os.ErrProcessDone
	}
	return process.Signal(signal)
}

// members lists a child and its descendants; none once it has been waited for.
func members(child *os.Process) ([]int, error) {
	if err := child.Signal(syscall.Signal(0)); errors.Is(err, os.ErrProcessDone) {
		return nil, nil
	}
	parents, err := parentsOfAll()
	if err != nil {
		return nil, err
	}
	pids := []int{child.Pid}
	for i := 0; i < len(pids); i++ {
		for pid, parent := range parents {
			if parent == pids[i] {
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}

// parentsOfAll maps each process of the machine to its parent.
func parentsOfAll() (map[int]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	parents := make(map[int]int, len(stats))
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil {
			return nil, err
		}
		// After the command, which may have any character: its state and its parent.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) > 1 {
			parents[pid], _ = strconv.Atoi(fields[1])
		}
	}
	return parents, nil
}
