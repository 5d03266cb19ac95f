// Package processes finds processes in this PID namespace: all of them, or those with a mark in their
// environment, which child processes inherit.
package processes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// All lists the numbers of all processes in ascending order.
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
	slices.Sort(pids) // os.ReadDir sorts names as text
	return pids, nil
}

// Indices of fields in the result of Stat. In proc(5) two more fields come first.
const (
	State     = 0
	Parent    = 1
	StartTime = 19 // in clock ticks since the machine booted
)

// Stat returns the fields of /proc/PID/stat that follow the command. The command may contain any character,
// including blanks and parentheses. The result has at least the fields that are named above. If the process has
// ended, the error is fs.ErrNotExist or syscall.ESRCH.
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

// Descendants lists the descendants of a process, parents first.
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

// childrenOf maps each process to its children.
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

// Mark is an environment variable, as "NAME=value", that identifies processes.
type Mark string

// RunVariable is the environment variable that marks everything which a run starts on this machine. Code that
// restricts an environment must keep this variable.
const RunVariable = "LOCKCHECK_RUN"

// LauncherVariable is an environment variable of a process whose wall clock can be moved. It holds the arguments, one a
// line, with which lockcheck launches a program so that its clock moves, too.
const LauncherVariable = "LOCKCHECK_LAUNCHER"

// Launched returns the command line with which this process, which is lockcheck, must start a program so that both have
// the same wall clock.
func Launched(command []string) []string {
	launcher, movable := os.LookupEnv(LauncherVariable)
	if !movable {
		return command
	}
	return slices.Concat([]string{"/proc/self/exe"}, strings.Split(launcher, "\n"), command)
}

// Running lists the processes that carry the mark, except zombies.
func (m Mark) Running() ([]int, error) {
	pids, err := All()
	return slices.DeleteFunc(pids, func(pid int) bool { return !m.carriedBy(pid) }), err
}

// carriedBy reports whether the environment of a process has the mark. A process that has ended has no
// environment. A process whose environment is unreadable belongs to another user.
func (m Mark) carriedBy(pid int) bool {
	return strings.Contains("\x00"+string(environment(pid)), "\x00"+string(m)+"\x00")
}

// environment returns the environment of a process, in which each variable ends with a zero byte. Zombies and
// threads of the kernel have no environment. While execve(2) loads a program, the kernel shows no environment
// either, and a busy machine can interrupt that for long. So an empty environment counts when the process had it
// twice and waited in between, which no process does while execve(2) replaces its memory.
func environment(pid int) (text []byte) {
	for waited, deadline := false, time.Now().Add(5*time.Second); time.Now().Before(deadline); {
		var err error
		text, err = readAtOnce(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || waited || bytes.HasSuffix(text, []byte{0}) {
			break
		}
		_, noProgram := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		fields, err := Stat(pid)
		if noProgram != nil || err != nil {
			break
		}
		waited = fields[State] != "R" && fields[State] != "D"
		if !waited {
			time.Sleep(time.Millisecond)
		}
	}
	return text
}

// readAtOnce reads a file by one read(2), between whose parts no other program can be executed.
func readAtOnce(path string) ([]byte, error) {
	for size := 64 << 10; ; size *= 2 {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		text := make([]byte, size)
		n, err := file.Read(text)
		_ = file.Close() // it was only read
		if n < size {
			return text[:n], ignoreEOF(err)
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// family lists the processes that carry the mark and their descendants, parents first. Descendants are included
// because a program may have cleared its environment.
func (m Mark) family() ([]int, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	children := childrenOf(all)
	marked := slices.DeleteFunc(all, func(pid int) bool { return !m.carriedBy(pid) })
	return slices.DeleteFunc(familyOf(marked, children), ended), nil
}

// familyOf lists processes and their descendants, each once, parents first. Sorting by number would not do: the
// kernel starts again from the lowest number, so a child's number may be lower than its parent's.
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
	slices.Reverse(family) // each process was added after its descendants
	return family
}

// carriedByAncestor reports whether a process or one of its ancestors carries the mark.
func (m Mark) carriedByAncestor(pid int) bool {
	for pid > 1 {
		if m.carriedBy(pid) {
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

// Kill kills the processes that carry the mark and all their descendants, including orphans, and returns their
// numbers.
//
// It stops all of them before it kills the first. Otherwise a process could start a child while its own parent
// ends, and nothing would lead to that child any more. Processes are stopped, and then killed, parents first.
func (m Mark) Kill() (killed map[int]bool, err error) {
	var stopped []*os.Process
	for before := -1; err == nil && before < len(stopped); { // until no process has started another one meanwhile
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

// stop stops the members of the family that are not stopped yet, parents first, and returns handles of all
// stopped ones. It opens the handle of a process before it checks for the mark: afterwards the number could
// belong to another process.
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
		if !m.carriedByAncestor(pid) {
			_ = process.Release()
			continue
		}
		err = process.Signal(syscall.SIGSTOP)
		if err == nil {
			stopped = append(stopped, process)
			continue
		}
		_ = process.Release()
		if !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, os.ErrPermission) { // ErrPermission: it now belongs to another user
			return stopped, fmt.Errorf("process %d: %w", pid, err)
		}
	}
	return stopped, nil
}
