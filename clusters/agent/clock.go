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

// ClockDriver names a way to move the wall clock of a server.
type ClockDriver string

const (
	// Libfaketime is a library preloaded into the server that reads the offset from a text file. It is the
	// default driver.
	Libfaketime ClockDriver = "libfaketime"
	// VDSO is the driver of package vdso, where a launcher starts the server.
	VDSO ClockDriver = "vdso"
)

// ErrClock is the error of SetClock where the server's wall clock cannot be moved at all.
var ErrClock = errors.New("the wall clock of the server cannot be moved")

// PrepareClock sets up what the clock driver needs before the server starts: for VDSO, a launcher at the path.
// If that fails, SetClock returns the reason later.
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

// moveClock moves the clock with the server's driver, and returns when that was.
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

// setFaketimeRate sets the speed together with a compensating offset. libfaketime multiplies all time since it
// was loaded into the server, so the offset takes back the part before now. The load time is known to some
// milliseconds only. The clock steps by that error times the deviation from true speed.
func (l Local) setFaketimeRate(speed float64) error {
	if speed == 1 {
		// Without a factor libfaketime would keep the previous one.
		return replaceFile(l.ClockFile, "+0.000000000 x1\n")
	}
	age, err := l.age()
	if err != nil {
		return err
	}
	return replaceFile(l.ClockFile, fmt.Sprintf("%+.9f x%.9f\n", (1-speed)*age.Seconds(), speed))
}

// age is how long libfaketime has been loaded in the server. The start time of the process is no substitute: on
// a busy machine the library is loaded 0.1 s later or more.
func (l Local) age() (time.Duration, error) {
	pids, err := l.pids()
	if err != nil {
		return 0, err
	}
	oldest := time.Duration(0)
	for _, pid := range pids {
		info, err := os.Stat(faketimeFile(pid))
		switch {
		case errors.Is(err, os.ErrNotExist): // the process has ended, or uses its parent's file
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

// faketimeFile is the file that libfaketime shares with the children of a process. It is written only when the
// library is loaded.
func faketimeFile(pid int) string { return "/dev/shm/faketime_shm_" + strconv.Itoa(pid) }

// setFaketime replaces the offset file and never rewrites it in place, because a server that reads a truncated
// file exits.
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
