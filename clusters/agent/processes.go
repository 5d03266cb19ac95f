package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"lockcheck/history"
	"lockcheck/internal/processes"
)

// signalNumbers maps signals to the kernel's numbers.
var signalNumbers = map[Signal]syscall.Signal{Stop: syscall.SIGSTOP, Continue: syscall.SIGCONT, Kill: syscall.SIGKILL, Terminate: syscall.SIGTERM, Interrupt: syscall.SIGINT}

// signalAll sends the signal to each process that list returns, the oldest first. It repeats until a pass finds
// no new process, because a process may fork while others are being stopped. Continue goes from the youngest to
// the oldest. A worker is older than its client, so the worker never runs while its client is stopped.
func signalAll(signal Signal, list func() ([]int, error), send func(pid int, number syscall.Signal) error) (Moment, error) {
	number, known := signalNumbers[signal]
	if !known {
		return Moment{}, fmt.Errorf("unknown signal %q", signal)
	}
	moment := Moment{From: history.Now()}
	seen, sent := make(map[int]bool), 0
	for {
		pids, err := list()
		if err != nil {
			return moment, err
		}
		if signal == Continue {
			slices.Reverse(pids)
		}
		news := 0
		for _, pid := range pids {
			if seen[pid] {
				continue
			}
			seen[pid] = true
			news++
			switch err := send(pid, number); {
			case err == nil:
				sent++
			case !errors.Is(err, syscall.ESRCH) && !errors.Is(err, os.ErrProcessDone):
				return moment, fmt.Errorf("signal %s to %d: %w", signal, pid, err)
			}
		}
		if news == 0 {
			break
		}
	}
	moment.To = history.Now()
	if sent == 0 {
		return moment, errors.New("no process to signal")
	}
	return moment, nil
}

// inspect reads the state of processes from /proc. It leaves out processes that are gone and zombies. On a node
// a zombie whose parent was killed remains as long as the node.
func inspect(pids []int) ([]Process, error) {
	var processes []Process
	for _, pid := range pids {
		p, err := inspectOne(pid)
		switch {
		case gone(err):
			continue
		case err != nil:
			return nil, err
		}
		processes = append(processes, p)
	}
	return processes, nil
}

func inspectOne(pid int) (Process, error) {
	p := Process{PID: pid, Frozen: true}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return p, err
	}
	var states strings.Builder
	for _, task := range tasks {
		command, state, err := readStat(task)
		switch {
		case gone(err):
			continue // one ended thread does not end the process
		case err != nil:
			return p, err
		}
		p.Command = command
		p.Frozen = p.Frozen && frozen(state, filepath.Dir(task))
		states.WriteByte(state)
	}
	if states.Len() == 0 {
		return p, fs.ErrNotExist
	}
	p.States = states.String()
	if strings.Trim(p.States, "ZX") == "" {
		return p, fs.ErrNotExist
	}
	p.Stopped = strings.Trim(p.States, "T") == ""
	return p, nil
}

// freezerWaits are the kernel functions in which frozen threads wait. The compiler may inline the first into
// the second; the third is for other freezers. A thread that waits for anything else waits elsewhere.
var freezerWaits = []string{"do_freezer_trap", "get_signal", "__refrigerator"}

// frozen says whether the freezer keeps a thread, whose folder is in /proc. An ended thread counts as frozen,
// because it does nothing. Reading wchan takes a debugger's rights; without them the thread does not count as
// frozen.
func frozen(state byte, folder string) bool {
	switch state {
	case 'D', 'Z', 'X':
		return true
	case 'S':
		waits, err := os.ReadFile(filepath.Join(folder, "wchan"))
		return err == nil && slices.Contains(freezerWaits, strings.TrimSpace(string(waits)))
	}
	return false
}

// gone reports that a process or thread has ended since it was listed.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// readStat returns the command and the state letter of a stat file. The command is in parentheses and may
// contain any character.
func readStat(path string) (command string, state byte, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", 0, err
	}
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open || end+2 >= len(data) {
		return "", 0, fmt.Errorf("%s: malformed: %q", path, data)
	}
	return string(data[open+1 : end]), data[end+2], nil
}

// everyProcess lists the processes of this namespace, without this one.
func everyProcess() ([]int, error) {
	pids, err := processes.All()
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == os.Getpid() }), err
}
