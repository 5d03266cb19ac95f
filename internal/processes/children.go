package processes

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"
)

// endLimit is how long processes that were killed may take to end.
const endLimit = 5 * time.Second

// EndDescendants kills what this process has started, and what those have in turn, and waits
// for their end. It also meets what has thrown its environment away, with its mark: whose
// parent has ended is still a descendant where this process is a subreaper.
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

// ended says whether a process has ended, if it was not waited for yet.
func ended(pid int) bool {
	fields, err := Stat(pid)
	return err != nil || fields[State] == "Z" || fields[State] == "X"
}

// endDescendant gets hold of a process before it looks once more whose that is.
func endDescendant(pid int) {
	process, err := os.FindProcess(pid)
	if err != nil {
		return // it has ended
	}
	defer process.Release() //nolint:errcheck // it only frees the handle
	if Descends(pid, os.Getpid()) {
		_ = process.Kill() // whether it ends is looked at again
	}
}

// Descends says whether a process is another one, or was started by it or by what that has started.
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
