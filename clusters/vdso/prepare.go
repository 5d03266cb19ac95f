package vdso

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Prepare installs this binary where servers find it as their launcher, unless it is there. A trial launch then
// checks that it works: the kernel, the engine or the machine may forbid tracing.
func Prepare(ctx context.Context, launcher string) error {
	if err := Install(launcher); err != nil {
		return fmt.Errorf("launcher: %w", err)
	}
	return tryLaunch(ctx, launcher, tryLimit)
}

// Install copies this binary to a path, unless a file exists there. Several processes may do so at the same
// time.
func Install(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// Not by its path, where another binary may be by now.
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	// A process forked meanwhile would keep the file open for writing until its own execve. A file that is open
	// for writing cannot be executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	temporary, err := os.CreateTemp(filepath.Dir(path), ".launcher-")
	if err != nil {
		return err
	}
	_, err = io.Copy(temporary, self)
	err = errors.Join(err, temporary.Chmod(0o755), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}

// No clock has the trial's offsets by accident. The step between the two is longer than any trial.
const (
	tryOffset   = -1234567 * time.Millisecond
	tryNextStep = 2345678 * time.Millisecond
)

const (
	// tryLimit bounds a trial. A trial that hangs must not keep the run from starting; the run only has no
	// clock faults then. A machine with fifty busy processes took more than 10 s.
	tryLimit = 30 * time.Second
	// tryEnd is how long the output of a killed trial may stay open.
	tryEnd = time.Second
)

// tryLaunch launches a program under a moved clock and asks it for the time. It then moves the clock, and asks for
// the time again and for the time that passed on the program's monotonic clock.
func tryLaunch(ctx context.Context, launcher string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	folder, err := os.MkdirTemp("", "lockcheck-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	clockFile := filepath.Join(folder, "clock")
	if err := SetClock(clockFile, tryOffset); err != nil {
		return err
	}
	command := append(Launcher(launcher, clockFile), launcher, NowCommand)
	trial := exec.CommandContext(ctx, command[0], command[1:]...)
	trial.WaitDelay, trial.SysProcAttr = tryEnd, &syscall.SysProcAttr{Setpgid: true}
	// The launcher has a child. If it survived it would be taken for a process of the node.
	trial.Cancel = func() error { return syscall.Kill(-trial.Process.Pid, syscall.SIGKILL) }
	var complaint bytes.Buffer
	trial.Stderr = &complaint
	input, inputErr := trial.StdinPipe()
	output, outputErr := trial.StdoutPipe()
	began := time.Now()
	if err := errors.Join(inputErr, outputErr, trial.Start()); err != nil {
		return fmt.Errorf("launching on trial: %w", err)
	}
	err = converse(input, bufio.NewScanner(output), clockFile, began)
	if ctx.Err() != nil {
		err = fmt.Errorf("it has not told the time within %s", limit)
	}
	if waitErr := errors.Join(input.Close(), trial.Wait()); err == nil || complaint.Len() > 0 {
		err = errors.Join(waitErr, err)
	}
	if err != nil {
		return fmt.Errorf("launching on trial: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return nil
}

// converse asks the program on trial for the time before and after its clock is moved.
func converse(input io.Writer, told *bufio.Scanner, clockFile string, began time.Time) error {
	told.Scan()
	if err := checkTime(told.Text(), began.Add(tryOffset), time.Now().Add(tryOffset)); err != nil {
		return err
	}
	moved := time.Now()
	if err := SetClock(clockFile, tryOffset+tryNextStep); err != nil {
		return err
	}
	if _, err := io.WriteString(input, "\n"); err != nil {
		return err
	}
	told.Scan()
	wall, elapsed, _ := strings.Cut(told.Text(), " ")
	now := time.Now()
	return errors.Join(
		checkTime(wall, moved.Add(tryOffset+tryNextStep), now.Add(tryOffset+tryNextStep)),
		checkElapsed(elapsed, now.Sub(began)),
	)
}

// checkTime checks that a reported time lies between two times.
func checkTime(told string, from, to time.Time) error {
	now, err := strconv.ParseInt(strings.TrimSpace(told), 10, 64)
	if err != nil {
		return err
	}
	if now < from.UnixNano() || now > to.UnixNano() {
		return fmt.Errorf("the program told %d, not between %d and %d", now, from.UnixNano(), to.UnixNano())
	}
	return nil
}

// checkElapsed checks that the program's monotonic clock moved no further than true time. Leases of servers are
// measured by that clock, and must not move.
func checkElapsed(told string, atMost time.Duration) error {
	elapsed, err := strconv.ParseInt(told, 10, 64)
	if err != nil {
		return err
	}
	if elapsed < 0 || time.Duration(elapsed) > atMost {
		return fmt.Errorf("the monotonic clock of the program moved by %s within %s", time.Duration(elapsed), atMost)
	}
	return nil
}

// Now prints the wall clock as this process sees it, in ns since 1970. For each line of input it prints the
// wall clock again, and the ns since the first time by this process' monotonic clock.
func Now(in io.Reader, out io.Writer) error {
	first := time.Now()
	if _, err := fmt.Fprintln(out, first.UnixNano()); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		now := time.Now()
		if _, err := fmt.Fprintln(out, now.UnixNano(), now.Sub(first).Nanoseconds()); err != nil {
			return err
		}
	}
	return lines.Err()
}
