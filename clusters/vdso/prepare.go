package vdso

import (
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
	"time"
)

// Prepare puts this binary where servers find it as their launcher, unless it is
// there, and makes sure by a trial that launching from there works: the kernel,
// the engine or its machine may forbid it.
func Prepare(ctx context.Context, launcher string) error {
	if err := install(launcher); err != nil {
		return fmt.Errorf("launcher: %w", err)
	}
	return try(ctx, launcher)
}

// install copies this binary. Others may do the same at the same time.
func install(path string) error {
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

// tryOffset is one that no clock has by accident.
const tryOffset = -1234567 * time.Millisecond

// try launches a program that tells the time, under a clock that is off.
func try(ctx context.Context, launcher string) error {
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
	var complaint bytes.Buffer
	trial.Stderr = &complaint
	before := time.Now()
	told, err := trial.Output()
	if err != nil {
		return fmt.Errorf("launching on trial: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return judge(string(told), before.Add(tryOffset), time.Now().Add(tryOffset))
}

// judge tells whether a time that was told is between two.
func judge(told string, from, to time.Time) error {
	now, err := strconv.ParseInt(strings.TrimSpace(told), 10, 64)
	if err != nil {
		return fmt.Errorf("launching on trial: %w", err)
	}
	if now < from.UnixNano() || now > to.UnixNano() {
		return fmt.Errorf("launching on trial: the program told %d, not between %d and %d", now, from.UnixNano(), to.UnixNano())
	}
	return nil
}

// Now tells the wall clock as this process sees it, in ns since 1970.
func Now(out io.Writer) error {
	_, err := fmt.Fprintln(out, time.Now().UnixNano())
	return err
}
