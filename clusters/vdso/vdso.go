// Package vdso moves the wall clock of one server, and of the processes that it forks, while it runs.
//
// Programs read the clock without a system call, through code that the kernel maps into each process (the
// vDSO). The launcher becomes the server by execve. Before the server's first instruction a helper has
// redirected that code to ours, which adds an offset from a file mapped into the server. This needs no library
// in the server's image and no capability, and works for static programs, too. It needs amd64.
//
// Time that does not come from the vDSO stays true: waits in the kernel with a deadline of CLOCK_REALTIME,
// times of files, and direct system calls. A program that the server executes, rather than forks, has true
// time, too, unless the server is lockcheck (processes.Launched). CLOCK_MONOTONIC never moves.
package vdso

import (
	"errors"
	"os"
	"slices"
	"strings"

	"lockcheck/internal/processes"
)

// Hidden commands of the binary that links this package.
const (
	// LaunchCommand calls Exec; its flag is --clock-file.
	LaunchCommand = "launch"
	// TraceCommand calls Trace with its standard streams.
	TraceCommand = "trace"
	// NowCommand calls Now.
	NowCommand = "now"
)

const clockFileFlag = "--clock-file"

// Launcher returns the beginning of a command line, with options such as ForChildren. The program whose clock the file
// moves follows, with its arguments.
func Launcher(binary, clockFile string, options ...string) []string {
	return slices.Concat([]string{binary, LaunchCommand, clockFileFlag, clockFile}, options, []string{"--"})
}

// ForChildren is an option of Launcher for a program that is lockcheck, which launches its children in the same way
// (processes.Launched).
const ForChildren = "--children"

// AnnounceLauncher tells the program that this process executes next how to launch children.
func AnnounceLauncher(clockFile string) error {
	return os.Setenv(processes.LauncherVariable, strings.Join(Launcher("", clockFile)[1:], "\n"))
}

// errProgram is the error of Exec for an empty command.
var errProgram = errors.New("no program to launch")

// openClock opens a clock file for reading and checks its size. A server that reads a mapping beyond the end of
// its file is killed.
func openClock(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() < clockSize) {
		err = &os.PathError{Op: "read", Path: path, Err: errors.New("not a clock file")}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
