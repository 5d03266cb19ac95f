package disk

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"
)

// TestLose compares a file after a loss of power with a copy that was made at its last sync. The copy is what a
// kernel has on its disk.
func TestLose(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := newFile(t)
		for range 1 + rng.IntN(12) {
			switch rng.IntN(5) {
			case 0:
				f.sync()
			case 1:
				f.truncate(rng.Int64N(3 * page))
			default:
				f.write(rng.Int64N(2*page), 1+rng.IntN(2*page), byte(1+rng.IntN(255)))
			}
		}
		before := f.content()
		losses, err := f.cache.lose()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !bytes.Equal(f.content(), f.durable) {
			t.Fatalf("seed %d: the file is not as it was at its last sync", seed)
		}
		lost := int64(0)
		for _, loss := range losses {
			lost += loss.Bytes
			if loss.File != f.path || loss.Size != int64(len(f.durable)) {
				t.Errorf("seed %d: %+v, the file has %d bytes", seed, loss, len(f.durable))
			}
		}
		if want := differing(before, f.durable); lost != want {
			t.Errorf("seed %d: %d bytes lost, want %d", seed, lost, want)
		}
	}
}

// TestLoseNothing: what was synced, written back or removed is not lost, and nothing reaches a disk without power.
func TestLoseNothing(t *testing.T) {
	for name, settle := range map[string]func(f *file){
		"synced":       func(f *file) { f.sync() },
		"written back": func(f *file) { f.cache.writeBack(time.Now().Add(time.Second)) },
		"removed":      func(f *file) { _ = os.Remove(f.path) },
		"renamed": func(f *file) {
			if number := f.cache.rename(f.inode(), func() syscall.Errno { return 0 }); number != 0 {
				f.t.Fatal(number)
			}
		},
		"emptied and closed": func(f *file) {
			f.cache.closed(f.inode())
			if len(f.cache.files) == 0 {
				f.t.Fatal("closed, and durable without having been emptied")
			}
			f.cache.emptied(f.inode())
			f.cache.closed(f.inode())
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFile(t)
			f.write(0, 10, 'x')
			settle(f)
			if losses, err := f.cache.lose(); err != nil || len(losses) > 0 {
				t.Errorf("lost %+v, %v", losses, err)
			}
			wrote := false
			if err := f.cache.change(f.File, 0, 1, func() syscall.Errno { wrote = true; return 0 }); err != syscall.EIO || wrote {
				t.Errorf("a write after the loss: %v", err)
			}
			if err := f.cache.name(func() syscall.Errno { return 0 }); err != syscall.EIO {
				t.Errorf("a name after the loss: %v", err)
			}
		})
	}
	t.Run("not yet written back", func(t *testing.T) {
		f := newFile(t)
		f.write(0, 10, 'x')
		f.cache.writeBack(time.Now().Add(-WriteBack))
		if losses, err := f.cache.lose(); err != nil || len(losses) != 1 || losses[0].Bytes != 10 || losses[0].Size != 0 {
			t.Errorf("lost %+v, %v", losses, err)
		}
	})
}

// TestSwitch: orders are carried out before they are answered, and the report is read when it is whole.
func TestSwitch(t *testing.T) {
	s := Switch(filepath.Join(t.TempDir(), "disks", "n1"))
	if err := s.Sync(t.Context()); err == nil {
		t.Error("no disk has answered")
	}
	listener, err := s.listen()
	if err != nil {
		t.Fatal(err)
	}
	orders := make(chan string, 2)
	go s.serve(listener, func(order string) bool { orders <- order; return true })
	if err := s.Sync(t.Context()); err != nil || <-orders != orderSync {
		t.Error(err)
	}
	if err := s.writeReport(Report{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Off(t.Context()); err != nil || <-orders != orderOff {
		t.Error(err)
	}
	if _, err := s.Report(); !os.IsNotExist(err) {
		t.Errorf("the report of an earlier loss is still there: %v", err)
	}
	want := Report{Writes: 4, Losses: []Loss{{File: "log", Bytes: 3, Size: 5}}}
	if err := s.writeReport(want); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Report(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := s.listen() // the server's next life
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}

// TestCredential: users of images by name and by number.
func TestCredential(t *testing.T) {
	for as, want := range map[string]syscall.Credential{
		"root": {}, "0": {}, "0:0": {}, "root:root": {}, "4711": {Uid: 4711}, "4711:4712": {Uid: 4711, Gid: 4712},
	} {
		if got, _, err := credentialOf(as); err != nil || got.Uid != want.Uid || got.Gid != want.Gid {
			t.Errorf("%s: %+v, %v", as, got, err)
		}
	}
	for _, as := range []string{"nobody-has-this-name", "0:no-group-has-this-name"} {
		if got, _, err := credentialOf(as); err == nil {
			t.Errorf("%s: %+v", as, got)
		}
	}
}

// file is a file of a disk, with what is durable of it.
type file struct {
	*os.File
	t       *testing.T
	cache   *cache
	path    string
	durable []byte
}

func newFile(t *testing.T) *file {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	opened, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return &file{File: opened, t: t, cache: newCache(), path: path}
}

func (f *file) change(from, to int64, do func() error) {
	f.t.Helper()
	if number := f.cache.change(f.File, from, to, func() syscall.Errno { return errno(do()) }); number != 0 {
		f.t.Fatal(number)
	}
}

func (f *file) write(at int64, n int, value byte) {
	f.change(at, at+int64(n), func() error {
		_, err := f.WriteAt(bytes.Repeat([]byte{value}, n), at)
		return err
	})
}

func (f *file) truncate(size int64) {
	f.change(size, int64(len(f.content())), func() error { return f.Truncate(size) })
}

func (f *file) sync() {
	f.cache.sync(f.inode())
	f.durable = f.content()
}

func (f *file) inode() uint64 {
	stat, err := statOf(f.File)
	if err != nil {
		f.t.Fatal(err)
	}
	return stat.Ino
}

func (f *file) content() []byte {
	content, err := os.ReadFile(f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	return content
}

// differing counts the bytes in which two contents differ, including those that only one of them has.
func differing(a, b []byte) int64 {
	n := int64(max(len(a), len(b)) - min(len(a), len(b)))
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}
