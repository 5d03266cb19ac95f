// Package processes lists the processes of this namespace: all, or those with a mark in their
// environment, which they hand on to what they start.
package processes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// All lists the processes by their numbers, the lowest first.
func All() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids) // the names were in the order of texts
	return pids, nil
}

// The places of fields in what Stat returns; proc(5) counts two more before them.
const (
	State     = 0
	Parent    = 1
	StartTime = 19 // in ticks since the machine started
)

// Stat reads the fields of /proc/PID/stat after the command, which may have any character.
// There are all of those that have a name here. One that has ended is an fs.ErrNotExist, or a
// syscall.ESRCH.
func Stat(pid int) ([]string, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/stat"
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) <= StartTime {
		return nil, fmt.Errorf("%s: malformed: %q", path, text)
	}
	return fields, nil
}

// Descendants lists what a process has started, and what those have in turn, parents first.
func Descendants(of int) ([]int, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	children := make(map[int][]int, len(all))
	for _, pid := range all {
		if fields, err := Stat(pid); err == nil { // else it has ended
			parent, _ := strconv.Atoi(fields[Parent])
			children[parent] = append(children[parent], pid)
		}
	}
	family := []int{of}
	for i := 0; i < len(family); i++ {
		family = append(family, children[family[i]]...)
	}
	return family[1:], nil
}

// Mark is a variable of an environment, as "NAME=value".
type Mark string

// Running lists the processes that carry the mark, but for those that have ended and were
// not waited for yet.
func (m Mark) Running() ([]int, error) {
	pids, err := All()
	return slices.DeleteFunc(pids, func(pid int) bool { return !m.on(pid) }), err
}

// on says whether a process carries the mark. One that has ended has no environment, and
// one whose environment cannot be read is not ours to look at.
func (m Mark) on(pid int) bool {
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && strings.Contains("\x00"+string(environment), "\x00"+string(m)+"\x00")
}

// Kill kills all processes that carry the mark, whatever became of those that started them,
// until there is none that it has not seen, and returns their numbers.
func (m Mark) Kill() (killed map[int]bool, err error) {
	killed = make(map[int]bool)
	for before := -1; before < len(killed); { // one may have started another meanwhile
		before = len(killed)
		pids, err := m.Running()
		if err != nil {
			return killed, err
		}
		for _, pid := range pids {
			if killed[pid] {
				continue
			}
			was, err := m.kill(pid)
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

// kill gets hold of a process before it looks whose that is: its number may be that of
// another one afterwards.
func (m Mark) kill(pid int) (killed bool, err error) {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false, nil // it has ended
	}
	defer process.Release() //nolint:errcheck // it only frees the handle
	if !m.on(pid) {
		return false, nil
	}
	if err := process.Kill(); errors.Is(err, os.ErrProcessDone) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, nil
}
