package vdso

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// clockSize is that of a clock file: one int64 of this machine's byte order, the
// offset in ns.
const clockSize = 8

// SetClock moves the clock of all servers that have the file, at once. A file
// that is not there is created, with its folder; one that is there is never
// replaced, because running servers have it mapped. The offset stays in force
// for servers that are launched later.
func SetClock(path string, offset time.Duration) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// Readable by all: the server may run as any user.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	err = store(file, offset)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("clock file %s: %w", path, err)
	}
	return nil
}

// store writes the offset by a single store: write(2) guarantees less to those who
// have the file mapped, and a server must not read one half of it.
func store(file *os.File, offset time.Duration) error {
	if err := file.Truncate(clockSize); err != nil {
		return err
	}
	mapped, err := unix.Mmap(int(file.Fd()), 0, clockSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	atomic.StoreInt64((*int64)(unsafe.Pointer(&mapped[0])), offset.Nanoseconds())
	return unix.Munmap(mapped)
}
