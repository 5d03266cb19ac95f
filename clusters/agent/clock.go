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
	return l.moveClock(
		func() error { return vdso.SetClock(l.ClockFile, offset) },
		func() error { return setFaketime(l.ClockFile, offset) },
	)
}

// SetClockRate implements Host.
func (l Local) SetClockRate(_ context.Context, speed float64) (Moment, error) {
	return l.moveClock(
		func() error { return vdso.SetClockRate(l.ClockFile, speed) },
		func() error { return l.setFaketimeRate(speed) },
	)
}

// moveClock has the driver of the server do it, and says when.
func (l Local) moveClock(byVDSO, byFaketime func() error) (Moment, error) {
	moment := Moment{From: history.Now()}
	err := l.clockDriver(byVDSO, byFaketime)()
	moment.To = history.Now()
	return moment, err
}

func (l Local) clockDriver(byVDSO, byFaketime func() error) func() error {
	err := fmt.Errorf("%w: unknown driver %q", ErrClock, l.ClockDriver)
	switch {
	case l.ClockFile == "":
		err = ErrClock
	case l.unmovable != nil:
		err = l.unmovable
	case l.ClockDriver == VDSO:
		return byVDSO
	case l.ClockDriver == Libfaketime, l.ClockDriver == "":
		return byFaketime
	}
	return func() error { return err }
}

// setFaketimeRate has to go back in time: libfaketime multiplies all time since it was loaded
// into the server, and the offset makes up for what was before. When that was is known to
// some milliseconds; by them, times the deviation from true speed, the clock steps.
func (l Local) setFaketimeRate(speed float64) error {
	if speed == 1 {
		// The factor is named, or the one before would stay in force.
		return replaceFile(l.ClockFile, "+0.000000000 x1\n")
	}
	age, err := l.age()
	if err != nil {
		return err
	}
	return replaceFile(l.ClockFile, fmt.Sprintf("%+.9f x%.9f\n", (1-speed)*age.Seconds(), speed))
}

// age is how long libfaketime has been in the server. The start of the process does not tell
// it: on a busy machine 0.1 s and more go by until the library is loaded.
func (l Local) age() (time.Duration, error) {
	pids, err := l.pids()
	if err != nil {
		return 0, err
	}
	oldest := time.Duration(0)
	for _, pid := range pids {
		info, err := os.Stat(faketimeFile(pid))
		switch {
		case errors.Is(err, os.ErrNotExist): // it has ended, or shares that of its parent
		case err != nil:
			return 0, err
		default:
			oldest = max(oldest, time.Since(info.ModTime()))
		}
	}
	if oldest == 0 {
		return 0, errors.New("there is no server whose clock could run fast or slow")
	}
	return oldest, nil
}

// faketimeFile is what libfaketime shares with the children of a process: it is written when
// the library is loaded, and not again.
func faketimeFile(pid int) string { return "/dev/shm/faketime_shm_" + strconv.Itoa(pid) }

// setFaketime replaces the file of libfaketime and never rewrites it: a server
// that meets a truncated one exits.
func setFaketime(path string, offset time.Duration) error {
	content := strconv.AppendFloat(nil, offset.Seconds(), 'f', 9, 64)
	if offset >= 0 {
		content = append([]byte{'+'}, content...)
	}
	return replaceFile(path, string(append(content, '\n')))
}

func replaceFile(path, content string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	temporary := filepath.Join(folder, ".next")
	if err := os.WriteFile(temporary, []byte(content), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
