package cleanup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// runVariable is in the environment of what a run starts on this machine, and of what that
// starts in turn: so it can be told from processes that are not ours.
const runVariable = "LOCKCHECK_RUN"

func mark(run string) string { return runVariable + "=" + run }

// killMarked kills all processes of a run, whatever became of those that started them, and
// returns their numbers.
func killMarked(run string) (killed map[int]bool, err error) {
	killed = make(map[int]bool)
	for before := -1; before < len(killed); { // one may have started another meanwhile
		before = len(killed)
		entries, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			return killed, err
		}
		for _, entry := range entries {
			pid, err := strconv.Atoi(filepath.Base(entry))
			if err != nil || killed[pid] {
				continue
			}
			was, err := killIfMarked(pid, mark(run))
			if err != nil {
				return killed, fmt.Errorf("process %d: %w", pid, err)
			}
			if was {
				killed[pid] = true
			}
		}
	}
	return killed, nil
}

// killIfMarked gets hold of a process before it looks whose that is: its number may be that
// of another one afterwards.
func killIfMarked(pid int, mark string) (killed bool, err error) {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false, nil // it has ended
	}
	defer process.Release()
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || !strings.Contains("\x00"+string(environment), "\x00"+mark+"\x00") {
		return false, nil // it has ended, or is not ours to look at
	}
	if err := process.Kill(); errors.Is(err, os.ErrProcessDone) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, nil
}
