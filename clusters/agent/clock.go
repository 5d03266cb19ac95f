package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"lockcheck/clusters/vdso"
	"lockcheck/history"
)

// ClockDriver is a way to move the wall clock of a server.
type ClockDriver string

const (
	// Libfaketime is a library preloaded into the server, which reads the offset
	// from a text file. It is the driver of a host that names none.
	Libfaketime ClockDriver = "libfaketime"
	// VDSO is package vdso: the server is started by a launcher.
	VDSO ClockDriver = "vdso"
)

// ErrClock is what SetClock returns where the wall clock of the server cannot be
// moved at all.
var ErrClock = errors.New("the wall clock of the server cannot be moved")

// PrepareClock makes ready what the clock driver needs before the server starts;
// for VDSO a launcher at the path. It keeps the reason if that fails, for SetClock
// to return.
func (l *Local) PrepareClock(ctx context.Context, launcher string) {
	if l.ClockFile == "" || l.ClockDriver != VDSO {
		return
	}
	if err := vdso.Prepare(ctx, launcher); err != nil {
		l.unmovable = fmt.Errorf("%w: %w", ErrClock, err)
	}
}

// SetClock implements Host.
func (l Local) SetClock(_ context.Context, offset time.Duration) (Moment, error) {
	moment := Moment{From: history.Now()}
	err := l.setClock(offset)
	moment.To = history.Now()
	return moment, err
}

func (l Local) setClock(offset time.Duration) error {
	switch {
	case l.ClockFile == "":
		return ErrClock
	case l.unmovable != nil:
		return l.unmovable
	case l.ClockDriver == VDSO:
		return vdso.SetClock(l.ClockFile, offset)
	case l.ClockDriver == Libfaketime, l.ClockDriver == "":
		return setFaketime(l.ClockFile, offset)
	}
	return fmt.Errorf("%w: unknown driver %q", ErrClock, l.ClockDriver)
}

// setFaketime replaces the file of libfaketime and never rewrites it: a server
// that meets a truncated one exits.
func setFaketime(path string, offset time.Duration) error {
	content := strconv.AppendFloat(nil, offset.Seconds(), 'f', 9, 64)
	if offset >= 0 {
		content = append([]byte{'+'}, content...)
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	temporary := filepath.Join(folder, ".next")
	if err := os.WriteFile(temporary, append(content, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
