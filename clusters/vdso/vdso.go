// Package vdso moves the wall clock of one server while it runs, with that of what it
// forks. Programs read the clock without a system call, through the code that
// the kernel maps into each process (the vDSO): the launcher becomes the server
// by execve, and before the server's first instruction a helper has redirected
// that code to ours, which adds an offset from a file mapped into the server. It
// needs no library in the server's image and no capability, and works for static
// programs too; only on amd64. What does not ask the vDSO keeps true time: waits
// in the kernel with a deadline of CLOCK_REALTIME, times of files, direct system
// calls; so does what a program executes rather than forks. CLOCK_MONOTONIC never
// moves.
package vdso

import (
	"errors"
	"os"
)

// Hidden commands of the binary that this package is linked into.
const (
	// LaunchCommand calls Exec; its flag is --clock-file.
	LaunchCommand = "launch"
	// TraceCommand calls Trace with its standard streams.
	TraceCommand = "trace"
	// NowCommand calls Now.
	NowCommand = "now"
)

// Launcher returns the beginning of a command line, to be followed by program
// and arguments of a server whose clock is to be moved by the file.
func Launcher(binary, clockFile string) []string {
	return []string{binary, LaunchCommand, "--clock-file", clockFile, "--"}
}

// errProgram is what Exec answers to an empty command.
var errProgram = errors.New("no program to launch")

// openClock opens a clock file for reading. A server that reads from a mapping
// beyond the end of its file dies.
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
