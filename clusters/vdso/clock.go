package vdso

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A clock file has three int64 of this machine's byte order: the offset in ns, which is
// added to true time; and the billionths by which the clock is too fast, counted from the
// true time, in ns, that is behind them.
const (
	offsetAt  = 0
	tooFastAt = 8
	sinceAt   = 16
	clockSize = 24
)

// SetClock moves the clock of all servers that have the file, at once. A file
// that is not there is created, with its folder; one that is there is never
// replaced, because running servers have it mapped. The offset stays in force
// for servers that are launched later.
func SetClock(path string, offset time.Duration) error {
	return change(path, func(clock []byte) { store(clock, offsetAt, offset.Nanoseconds()) })
}

// SetClockRate lets that clock run at a speed, in seconds a second, from where SetClock has
// put it; 1 takes back all that came of another speed, and so does another one.
func SetClockRate(path string, speed float64) error {
	return change(path, func(clock []byte) {
		// While the clock is not too fast, since when does not matter; servers read it last.
		store(clock, tooFastAt, 0)
		store(clock, sinceAt, time.Now().UnixNano())
		store(clock, tooFastAt, int64(math.Round((speed-1)*1e9)))
	})
}

// change changes a clock file, which is made if it is not there.
func change(path string, change func(clock []byte)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// Readable by all: the server may run as any user.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	err = mapped(file, change)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("clock file %s: %w", path, err)
	}
	return nil
}

// mapped lends the file as memory: write(2) guarantees less to those who have it mapped.
func mapped(file *os.File, change func(clock []byte)) error {
	if err := file.Truncate(clockSize); err != nil {
		return err
	}
	clock, err := unix.Mmap(int(file.Fd()), 0, clockSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	change(clock)
	return unix.Munmap(clock)
}

// store writes one of the numbers by a single store: a server must not read one half of it.
func store(clock []byte, at int, n int64) {
	atomic.StoreInt64((*int64)(unsafe.Pointer(&clock[at])), n)
}
