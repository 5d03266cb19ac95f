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

// numbers maps signals to those of the kernel.
var numbers = map[Signal]syscall.Signal{Stop: syscall.SIGSTOP, Continue: syscall.SIGCONT, Kill: syscall.SIGKILL}

// signalAll sends the signal to each process that list returns, the oldest first, again until
// a pass finds no new one: a process may fork while the others are being stopped. Those that
// go on do so in the other order: a worker, which is older than its client, is then never
// active while that is stopped.
func signalAll(signal Signal, list func() ([]int, error), send func(pid int, number syscall.Signal) error) (Moment, error) {
	number, known := numbers[signal]
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

// inspect reads the state of processes from /proc. One that is gone is left out,
// and one that has ended and only waits to be collected: on a node those whose
// parent was killed wait for as long as the node lasts.
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
			continue // one thread that ended is not the process
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

// freezerWaits are the functions of the kernel in which frozen threads wait: the second
// where the compiler has made the first a part of it, the third for other freezers. A
// thread that waits for anything else waits elsewhere.
var freezerWaits = []string{"do_freezer_trap", "get_signal", "__refrigerator"}

// frozen says whether the freezer keeps a thread, of which the folder is in /proc. One that
// has ended does nothing either. Where the kernel does not tell in which function a thread
// waits, which takes the rights of a debugger, none is known to be kept.
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

// gone tells that a process or thread has ended since it was listed.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// readStat returns the command and the state letter of a stat file. The
// command stands in parentheses and may contain any character.
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

// everyProcess lists the processes of this namespace other than this one.
func everyProcess() ([]int, error) {
	pids, err := processes.All()
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == os.Getpid() }), err
}
