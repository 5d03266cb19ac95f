package processes

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"
)

// endLimit is how long killed processes may take to end.
const endLimit = 5 * time.Second

// EndDescendants kills all descendants of this process and waits for their end. It also finds a descendant that
// has cleared its environment and so lost the mark. If this process is a subreaper, an orphan is still its
// descendant.
func EndDescendants() error {
	for deadline := time.Now().Add(endLimit); ; time.Sleep(5 * time.Millisecond) {
		pids, err := Descendants(os.Getpid())
		if err != nil {
			return err
		}
		pids = slices.DeleteFunc(pids, ended)
		switch {
		case len(pids) == 0:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("processes %v do not end", pids)
		}
		for _, pid := range pids {
			endDescendant(pid)
		}
	}
}

// ended reports whether a process has ended, including a zombie that its parent has not yet waited for.
func ended(pid int) bool {
	fields, err := Stat(pid)
	return err != nil || fields[State] == "Z" || fields[State] == "X"
}

// endDescendant kills a process if it is still a descendant. It opens a handle before it checks: afterwards the
// number could belong to another process.
func endDescendant(pid int) {
	process, err := os.FindProcess(pid)
	if err != nil {
		return // it has ended
	}
	defer process.Release() //nolint:errcheck // it only frees the handle
	if Descends(pid, os.Getpid()) {
		_ = process.Kill() // EndDescendants checks again whether it ended
	}
}

// Descends reports whether process pid is process from or one of its descendants.
func Descends(pid, from int) bool {
	for pid > 1 && pid != from {
		fields, err := Stat(pid)
		if err != nil {
			return false // it has ended
		}
		pid, _ = strconv.Atoi(fields[Parent])
	}
	return pid == from
}
