package disk

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Fault is what a disk does wrong; the zero value is a disk without a fault.
type Fault struct {
	// Full: writes that need space fail with ENOSPC. As on ext4, overwriting a file's own blocks and creating
	// names need no space.
	Full bool `json:"full,omitempty"`
	// NoSync: fsync and fdatasync of files fail with EIO, and so do writes with O_SYNC and O_DSYNC. What was written
	// before a failed sync stays in the file, as in the page cache of a kernel, and is durable after the next sync
	// that succeeds. Linux is harsher: after a failed sync it takes the pages for clean, and may lose them although
	// the next sync succeeds (https://wiki.postgresql.org/wiki/Fsync_Errors).
	NoSync bool `json:"no_sync,omitempty"`
	// Delay is how much longer each write and each sync takes.
	Delay time.Duration `json:"delay,omitempty"`
}

// Tally counts the operations of the server that a fault failed or delayed.
type Tally struct {
	Writes int64 `json:"writes"`
	Syncs  int64 `json:"syncs"`
}

// Condition is what a disk knows of its fault.
type Condition struct {
	// Met is what the latest fault met so far.
	Met Tally `json:"met"`
	// Ended: the server has ended, and the disk with it. There was no probe then.
	Ended bool `json:"ended,omitempty"`
	// Write and Sync are the results of a probe that wrote and synced a file through the kernel.
	Write Probe `json:"write,omitzero"`
	Sync  Probe `json:"sync,omitzero"`
}

// Probe is one operation of a probe.
type Probe struct {
	Errno syscall.Errno `json:"errno,omitempty"` // 0 if it succeeded
	Took  time.Duration `json:"took"`
}

// faults is the fault of a disk at the moment.
type faults struct {
	mu   sync.Mutex
	now  Fault
	over chan struct{} // closed when another fault takes the place of now
	met  Tally
}

func newFaults() *faults { return &faults{over: make(chan struct{})} }

// set puts another fault in the place of the present one, or none. Operations that are delayed go on at once.
func (f *faults) set(next Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.over)
	f.now, f.over = next, make(chan struct{})
	if next != (Fault{}) {
		f.met = Tally{}
	}
}

// tally returns what the latest fault met.
func (f *faults) tally() Tally {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.met
}

// present returns the fault in force, and a channel that is closed when it ends.
func (f *faults) present() (now Fault, over <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now, f.over
}

// write fails or delays a write that is about to begin. needsSpace is asked only if the disk is full.
func (f *faults) write(counted bool, needsSpace func() bool) syscall.Errno {
	now, over := f.present()
	full := now.Full && needsSpace()
	if counted && (full || now.Delay > 0) {
		f.count(Tally{Writes: 1})
	}
	now.delay(over)
	if full {
		return syscall.ENOSPC
	}
	return 0
}

// sync fails or delays a sync that is about to begin.
func (f *faults) sync(counted bool) syscall.Errno {
	now, over := f.present()
	if counted && (now.NoSync || now.Delay > 0) {
		f.count(Tally{Syncs: 1})
	}
	now.delay(over)
	if now.NoSync {
		return syscall.EIO
	}
	return 0
}

func (f *faults) count(more Tally) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.met.Writes, f.met.Syncs = f.met.Writes+more.Writes, f.met.Syncs+more.Syncs
}

// delay waits for the delay, or until the fault is over.
func (f Fault) delay(over <-chan struct{}) {
	if f.Delay == 0 {
		return
	}
	select {
	case <-time.After(f.Delay):
	case <-over:
	}
}

// needsSpace says whether a write between two offsets needs blocks that its file does not have: past the last block,
// or in a hole. A file has no holes if it has blocks for its whole size. Space that was allocated and never written
// looks like a hole, too.
func needsSpace(file *os.File, from, to int64) bool {
	const sector = 512 // the unit of Stat_t.Blocks
	stat, err := statOf(file)
	switch {
	case err != nil:
		return false // the write itself will fail
	case to > (stat.Size+page-1)/page*page:
		return true
	case stat.Blocks*sector >= stat.Size:
		return false
	}
	hole, err := unix.Seek(int(file.Fd()), from, unix.SEEK_HOLE)
	return err == nil && hole < min(to, stat.Size)
}

// probeName is the file that a probe writes. Its operations are not counted.
const probeName = ".lockcheck-probe"

// probe writes and syncs a file of a mounted disk, as a program does, and removes it.
func probe(folder string) (write, sync Probe) {
	path := filepath.Join(folder, probeName)
	file, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return Probe{Errno: errno(err)}, Probe{Errno: errno(err)}
	}
	defer unix.Close(file)
	_ = unix.Unlink(path) // before the write, so that the server hardly ever sees the file
	timed := func(do func() error) Probe {
		began := time.Now()
		number := errno(do())
		return Probe{number, time.Since(began)}
	}
	write = timed(func() error { _, err := unix.Write(file, []byte{1}); return err })
	return write, timed(func() error { return unix.Fsync(file) })
}
