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

// Prepare puts this binary where servers find it as their launcher, unless it is
// there, and makes sure by a trial that launching from there works: the kernel,
// the engine or its machine may forbid it.
func Prepare(ctx context.Context, launcher string) error {
	if err := Install(launcher); err != nil {
		return fmt.Errorf("launcher: %w", err)
	}
	return try(ctx, launcher, tryLimit)
}

// Install copies this binary to a path, unless there is something. Others may do the same at the same time.
func Install(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// Not its path, where another binary may be by now.
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	// A process that is started meanwhile would have the file open for writing until it
	// becomes its program, and a file that is open for writing cannot be executed.
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

// Offsets on trial are those that no clock has by accident; from the first to the second
// is further than any trial lasts.
const (
	tryOffset   = -1234567 * time.Millisecond
	tryNextStep = 2345678 * time.Millisecond
)

const (
	// tryLimit is how long a trial may take. One that hangs must not keep the run from
	// starting, which only cannot have clock faults then. A machine with fifty busy processes
	// took more than 10 s.
	tryLimit = 30 * time.Second
	// tryEnd is how long after it is killed its output may stay open.
	tryEnd = time.Second
)

// try launches a program that tells the time under a clock that is off, moves that clock,
// and has the program tell it again, and how much time went by on its monotonic clock.
func try(ctx context.Context, launcher string, limit time.Duration) error {
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
	// The launcher has a child, which would stay, and be taken for a process of the node.
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
	if err := judge(told.Text(), began.Add(tryOffset), time.Now().Add(tryOffset)); err != nil {
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
		judge(wall, moved.Add(tryOffset+tryNextStep), now.Add(tryOffset+tryNextStep)),
		judgeElapsed(elapsed, now.Sub(began)),
	)
}

// judge tells whether a time that was told is between two.
func judge(told string, from, to time.Time) error {
	now, err := strconv.ParseInt(strings.TrimSpace(told), 10, 64)
	if err != nil {
		return err
	}
	if now < from.UnixNano() || now > to.UnixNano() {
		return fmt.Errorf("the program told %d, not between %d and %d", now, from.UnixNano(), to.UnixNano())
	}
	return nil
}

// judgeElapsed tells whether no more time went by on the monotonic clock of the program
// than there was: with that clock the leases of servers would move, which go by it.
func judgeElapsed(told string, atMost time.Duration) error {
	elapsed, err := strconv.ParseInt(told, 10, 64)
	if err != nil {
		return err
	}
	if elapsed < 0 || time.Duration(elapsed) > atMost {
		return fmt.Errorf("the monotonic clock of the program moved by %s within %s", time.Duration(elapsed), atMost)
	}
	return nil
}

// Now tells the wall clock as this process sees it, in ns since 1970. For each line of
// the input it tells it again, and how long it was since the first time by the monotonic
// clock of this process, in ns.
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
