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
	"syscall"
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
	children := childrenOf(all)
	family := []int{of}
	for i := 0; i < len(family); i++ {
		family = append(family, children[family[i]]...)
	}
	return family[1:], nil
}

// childrenOf lists the children of each process.
func childrenOf(all []int) map[int][]int {
	children := make(map[int][]int, len(all))
	for _, pid := range all {
		if fields, err := Stat(pid); err == nil { // else it has ended
			parent, _ := strconv.Atoi(fields[Parent])
			children[parent] = append(children[parent], pid)
		}
	}
	return children
}

// Mark is a variable of an environment, as "NAME=value".
type Mark string

// RunVariable is the variable of the mark of all that a run starts on this machine: whoever
// cuts down an environment leaves it in.
const RunVariable = "LOCKCHECK_RUN"

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

// family lists the processes that carry the mark, and what they have started, parents first: a
// program may have thrown its environment away.
func (m Mark) family() ([]int, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	children := childrenOf(all)
	marked := slices.DeleteFunc(all, func(pid int) bool { return !m.on(pid) })
	return slices.DeleteFunc(familyOf(marked, children), ended), nil
}

// familyOf lists processes and their descendants, each once, parents first. The order of numbers does
// not do: they start again from the lowest, so that a child may have a lower one than its parent.
func familyOf(pids []int, children map[int][]int) []int {
	var family []int
	known := make(map[int]bool)
	var add func(pid int)
	add = func(pid int) {
		if known[pid] {
			return
		}
		known[pid] = true
		for _, child := range slices.Backward(children[pid]) {
			add(child)
		}
		family = append(family, pid)
	}
	for _, pid := range slices.Backward(pids) {
		add(pid)
	}
	slices.Reverse(family) // a process was added after its descendants
	return family
}

// of says whether a process carries the mark, or one that has started it does.
func (m Mark) of(pid int) bool {
	for pid > 1 {
		if m.on(pid) {
			return true
		}
		fields, err := Stat(pid)
		if err != nil {
			return false
		}
		pid, _ = strconv.Atoi(fields[Parent])
	}
	return false
}

// Kill kills all processes that carry the mark and what they have started, whatever became of
// those that started them, and returns their numbers. All are stopped before one is killed: what a
// process starts while its parent ends could be found by nothing any more. They are stopped, and then
// killed, parents first.
func (m Mark) Kill() (killed map[int]bool, err error) {
	var stopped []*os.Process
	for before := -1; err == nil && before < len(stopped); { // one may have started another meanwhile
		before = len(stopped)
		stopped, err = m.stop(stopped)
	}
	killed = make(map[int]bool)
	for _, process := range stopped { // even if their parents have ended since
		if process.Kill() == nil { // else it has ended
			killed[process.Pid] = true
		}
		_ = process.Release() // it only frees the handle
	}
	return killed, err
}

// stop stops the family, parents first, except those that were stopped before, and returns handles of
// all. It opens a handle of a process before it looks to whom the process belongs: the number may be
// that of another one afterwards.
func (m Mark) stop(stopped []*os.Process) ([]*os.Process, error) {
	family, err := m.family()
	if err != nil {
		return stopped, err
	}
	for _, pid := range family {
		if slices.ContainsFunc(stopped, func(p *os.Process) bool { return p.Pid == pid }) {
			continue
		}
		process, err := os.FindProcess(pid)
		if err != nil {
			continue // it has ended
		}
		if !m.of(pid) {
			_ = process.Release()
			continue
		}
		err = process.Signal(syscall.SIGSTOP)
		if err == nil {
			stopped = append(stopped, process)
			continue
		}
		_ = process.Release()
		if !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, os.ErrPermission) { // the latter is another user's by now
			return stopped, fmt.Errorf("process %d: %w", pid, err)
		}
	}
	return stopped, nil
}
