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

// A clock file holds three int64 in this machine's byte order. The first is the offset in ns, which is added to
// true time. The second is by how many billionths the clock runs fast. The third is the true time, in ns, from
// which the speed counts.
const (
	offsetAt  = 0
	tooFastAt = 8
	sinceAt   = 16
	clockSize = 24
)

// SetClock moves the clock of all servers that use the file, at once. A missing file is created, with its
// folder. An existing file is never replaced, because running servers have it mapped. The offset also applies
// to servers that are launched later.
func SetClock(path string, offset time.Duration) error {
	return change(path, func(clock []byte) { store(clock, offsetAt, offset.Nanoseconds()) })
}

// SetClockRate lets that clock run at a speed, in seconds a second, from the time that SetClock has set. A new
// speed, 1 included, takes back the deviation that earlier speeds have caused.
func SetClockRate(path string, speed float64) error {
	return change(path, func(clock []byte) {
		// While tooFast is 0 the value of since does not matter. Servers read since last.
		store(clock, tooFastAt, 0)
		store(clock, sinceAt, time.Now().UnixNano())
		store(clock, tooFastAt, int64(math.Round((speed-1)*1e9)))
	})
}

// change changes a clock file, which is created if it is missing.
func change(path string, change func(clock []byte)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// Readable by everybody: the server may run as any user.
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

// mapped passes the file as memory to change, because write(2) guarantees less to processes that have the file
// mapped.
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

// store writes one number with a single store, so that a server never reads half of it.
func store(clock []byte, at int, n int64) {
	atomic.StoreInt64((*int64)(unsafe.Pointer(&clock[at])), n)
}
