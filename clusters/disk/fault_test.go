package disk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestNeedsSpace: a write needs space past the last block of its file and in a hole, and nowhere else.
func TestNeedsSpace(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	needs := func(what string, from, to int64, want bool) {
		t.Helper()
		if got := needsSpace(file, from, to); got != want {
			t.Errorf("%s: %t", what, got)
		}
	}
	needs("the first byte of an empty file", 0, 1, true)
	if _, err := file.WriteAt(make([]byte, page+1), 0); err != nil {
		t.Fatal(err)
	}
	needs("an overwrite", 0, page+1, false)
	needs("the rest of the last block", page+1, 2*page, false)
	needs("the next block", page+1, 2*page+1, true)
	if err := file.Truncate(100 * page); err != nil {
		t.Fatal(err)
	}
	needs("an overwrite before a hole", 0, page, false)
	needs("a hole", 50*page, 51*page, true)
	t.Run("allocated", func(t *testing.T) {
		switch err := unix.Fallocate(int(file.Fd()), 0, 0, 100*page); {
		case errors.Is(err, unix.EOPNOTSUPP):
			t.Skip("this file system cannot allocate space")
		case err != nil:
			t.Fatal(err)
		}
		needs("space that was allocated", 50*page, 51*page, false)
	})
}

// TestFault: what each fault does to a program on the mounted disk, and that nothing is left of it afterwards.
func TestFault(t *testing.T) {
	folder, faults := mounted(t)
	log, err := os.OpenFile(filepath.Join(folder, "log"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	write := func(at int64) error { _, err := log.WriteAt([]byte{1}, at); return err }
	if err := errors.Join(write(0), log.Sync()); err != nil {
		t.Fatal(err)
	}
	const slow = 20 * time.Millisecond
	timed := func(do func() error) time.Duration {
		began := time.Now()
		if err := do(); err != nil {
			t.Error(err)
		}
		return time.Since(began)
	}
	for name, c := range map[string]struct {
		fault Fault
		do    func()
		met   Tally
		probe func(write, sync Probe) bool
	}{
		"full": {Fault{Full: true}, func() {
			if err := write(page); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("a write past the end: %v", err)
			}
			if err := unix.Fallocate(int(log.Fd()), 0, 0, 2*page); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("an allocation: %v", err)
			}
			if err := errors.Join(write(0), log.Sync(), os.WriteFile(filepath.Join(folder, "empty"), nil, 0o600)); err != nil {
				t.Errorf("what needs no space: %v", err)
			}
		}, Tally{Writes: 2}, func(write, sync Probe) bool { return write.Errno == syscall.ENOSPC && sync.Errno == 0 }},
		"no sync": {Fault{NoSync: true}, func() {
			if err := log.Sync(); !errors.Is(err, syscall.EIO) {
				t.Errorf("fsync: %v", err)
			}
			if err := unix.Fdatasync(int(log.Fd())); !errors.Is(err, syscall.EIO) {
				t.Errorf("fdatasync: %v", err)
			}
			synced, err := os.OpenFile(log.Name(), os.O_WRONLY|os.O_SYNC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer synced.Close()
			if _, err := synced.Write([]byte{1}); !errors.Is(err, syscall.EIO) {
				t.Errorf("a write with O_SYNC: %v", err)
			}
			if err := write(0); err != nil {
				t.Errorf("a write without a sync: %v", err)
			}
		}, Tally{Syncs: 3}, func(write, sync Probe) bool { return write.Errno == 0 && sync.Errno == syscall.EIO }},
		"slow": {Fault{Delay: slow}, func() {
			if took := timed(func() error { return write(0) }); took < slow {
				t.Errorf("a write took %s", took)
			}
			if took := timed(log.Sync); took < slow {
				t.Errorf("a sync took %s", took)
			}
		}, Tally{Writes: 1, Syncs: 1}, func(write, sync Probe) bool { return write.Took >= slow && sync.Took >= slow }},
	} {
		faults.set(c.fault)
		c.do()
		if write, sync := probe(folder); !c.probe(write, sync) {
			t.Errorf("%s: the probe met %+v, %+v", name, write, sync)
		}
		faults.set(Fault{})
		if met := faults.tally(); met != c.met {
			t.Errorf("%s: met %+v, want %+v", name, met, c.met)
		}
		if err := errors.Join(write(0), log.Sync()); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
		if write, sync := probe(folder); write.Errno != 0 || sync.Errno != 0 {
			t.Errorf("after %s, the probe met %+v, %+v", name, write, sync)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 2 {
		t.Errorf("in the folder are %v, %v", entries, err)
	}
}

// TestFailedSync: what was written before a failed sync stays in the file, and is durable only after the next sync.
func TestFailedSync(t *testing.T) {
	for _, again := range []bool{false, true} {
		f := newFile(t)
		f.cache.faults.set(Fault{NoSync: true})
		h := &handle{cache: f.cache, file: f.File}
		f.write(0, 10, 'x')
		if number := h.durable(); number != syscall.EIO {
			t.Errorf("the sync: %v", number)
		}
		if len(f.content()) != 10 {
			t.Error("the file has lost what was written")
		}
		if again {
			f.cache.faults.set(Fault{})
			f.sync()
		}
		if losses, err := f.cache.lose(); err != nil || (len(losses) == 0) != again {
			t.Errorf("lost %+v, %v", losses, err)
		}
	}
}

// TestDelayEnds: an operation that is delayed goes on when the fault ends.
func TestDelayEnds(t *testing.T) {
	f := newFaults()
	f.set(Fault{Delay: time.Hour})
	done := make(chan syscall.Errno)
	go func() { done <- f.sync(true) }()
	for f.tally().Syncs == 0 {
		time.Sleep(time.Millisecond)
	}
	f.set(Fault{})
	if number := <-done; number != 0 {
		t.Error(number)
	}
	if met := f.tally(); met != (Tally{Syncs: 1}) {
		t.Errorf("the end of the fault forgets what it met: %+v", met)
	}
}

// TestCheck: the condition of a disk, and what is left of it when the disk has ended.
func TestCheck(t *testing.T) {
	c := Config{Folder: t.TempDir(), Switch: Switch(filepath.Join(t.TempDir(), "disks", "n1"))}
	if _, err := c.Switch.Check(t.Context()); err == nil {
		t.Error("no disk has answered")
	}
	listener, err := c.Switch.listen()
	if err != nil {
		t.Fatal(err)
	}
	cache := newCache()
	go c.Switch.serve(listener, func(order string) bool { return c.obey(order, cache, nil) })
	if err := c.Switch.Set(t.Context(), Fault{NoSync: true, Delay: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	_ = cache.faults.sync(true)
	if found, err := c.Switch.Check(t.Context()); err != nil || found.Met.Syncs != 1 || found.Ended || found.Write.Took == 0 {
		t.Errorf("%+v, %v", found, err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if found, err := c.Switch.Check(t.Context()); err == nil {
		t.Errorf("an earlier probe passes for a new one: %+v", found)
	}
	if err := c.Switch.writeCondition(Condition{Met: cache.faults.tally(), Ended: true}); err != nil {
		t.Fatal(err)
	}
	if found, err := c.Switch.Check(t.Context()); err != nil || !found.Ended || found.Met.Syncs != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

// mounted mounts a disk over a new folder.
func mounted(t *testing.T) (folder string, f *faults) {
	t.Helper()
	folder = t.TempDir()
	cache := newCache()
	unmount, err := mount(folder, cache)
	if err != nil {
		t.Skipf("no disk can be mounted here: %v", err)
	}
	t.Cleanup(unmount)
	return folder, cache.faults
}
