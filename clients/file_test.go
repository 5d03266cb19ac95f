package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// fileLocks opens several locks on one folder, as several processes would.
func fileLocks(t *testing.T, n int) (folder string, locks []Lock) {
	t.Helper()
	folder = t.TempDir()
	for range n {
		lock, err := openFile(Config{Folder: folder})
		if err != nil {
			t.Fatal(err)
		}
		locks = append(locks, lock)
	}
	return folder, locks
}

func filesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestFile(t *testing.T) {
	folder, locks := fileLocks(t, 2)
	a, b := locks[0], locks[1]
	grant, err := a.Acquire(t.Context(), Attempt{Key: "k", ID: "w1-1"})
	if err != nil || grant != (Grant{Key: "k", ID: "w1-1"}) {
		t.Fatalf("%+v, %v", grant, err)
	}
	var busy *BusyError
	if _, err := b.Acquire(t.Context(), Attempt{Key: "k", ID: "w2-1"}); !errors.As(err, &busy) || busy.Holder != "w1-1" {
		t.Errorf("held by w1-1, and another attempt: %v", err)
	}
	for what, other := range map[string]Grant{"that was refused": {Key: "k", ID: "w2-1"}, "of another key": {Key: "l", ID: "w1-1"}} {
		if err := b.Release(t.Context(), other); !errors.Is(err, ErrNotHeld) {
			t.Errorf("release of an attempt %s: %v", what, err)
		}
	}
	if names := filesIn(t, folder); len(names) != 1 {
		t.Errorf("there is %v, want the lock alone", names)
	}
	if err := a.Release(t.Context(), grant); err != nil {
		t.Errorf("release: %v", err)
	}
	if err := a.Release(t.Context(), grant); !errors.Is(err, ErrNotHeld) {
		t.Errorf("second release: %v", err)
	}
	if names := filesIn(t, folder); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
	if _, err := b.Acquire(t.Context(), Attempt{Key: "k", ID: "w2-2"}); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

// TestFileExclusion: of many concurrent attempts exactly one gets the lock, in each round.
func TestFileExclusion(t *testing.T) {
	const workers, rounds = 8, 50
	_, locks := fileLocks(t, workers)
	for round := range rounds {
		var granted atomic.Int64
		var all sync.WaitGroup
		for i, lock := range locks {
			all.Go(func() {
				_, err := lock.Acquire(t.Context(), Attempt{Key: fmt.Sprint(round), ID: fmt.Sprintf("w%d-%d", i, round)})
				switch OutcomeOf(err) {
				case Done:
					granted.Add(1)
				case Busy:
				default:
					t.Errorf("attempt: %v", err)
				}
			})
		}
		all.Wait()
		if granted.Load() != 1 {
			t.Fatalf("granted to %d", granted.Load())
		}
	}
}

// TestFileNames: every key, whatever characters it has, is a separate lock in the folder.
func TestFileNames(t *testing.T) {
	folder, locks := fileLocks(t, 1)
	keys := []string{"", ".", "..", "../k", "a/b", "a%2Fb", "a\x00b", "k", "K", "ä", "lock.k"}
	for i, key := range keys {
		if _, err := locks[0].Acquire(t.Context(), Attempt{Key: key, ID: fmt.Sprintf("../%d", i)}); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	if names := filesIn(t, folder); len(names) != len(keys) {
		t.Errorf("%d keys made %q", len(keys), names)
	}
	if names := filesIn(t, filepath.Dir(folder)); len(names) != 1 {
		t.Errorf("outside of the folder: %q", names)
	}
}

// TestFileLostAnswer: if the answer to a link is lost, NFS repeats the request and gets a refusal, although the
// link exists. As a control, a file of the lock's name that is not the attempt's link is no grant.
func TestFileLostAnswer(t *testing.T) {
	folder, locks := fileLocks(t, 1)
	lock := locks[0].(*fileLock)
	own := lock.path("attempt.", "w1-1")
	if err := errors.Join(os.WriteFile(own, nil, 0o600), os.Link(own, lock.lock("k"))); err != nil {
		t.Fatal(err)
	}
	grant, err := lock.Acquire(t.Context(), Attempt{Key: "k", ID: "w1-1"})
	if err != nil {
		t.Errorf("linked, and refused: %v", err)
	}
	if err := lock.Release(t.Context(), grant); err != nil {
		t.Errorf("release: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "lock.k"), []byte("w2-1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Acquire(t.Context(), Attempt{Key: "k", ID: "w1-2"}); OutcomeOf(err) != Busy {
		t.Errorf("not linked, and not refused: %v", err)
	}
}

// lateContext is done from the second call of Err on, like the context of a caller who gave up during the
// attempt.
type lateContext struct {
	context.Context
	asked int
}

func (c *lateContext) Err() error {
	if c.asked++; c.asked > 1 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestFileFailures: a failed attempt leaves nothing behind, and its outcome says so.
func TestFileFailures(t *testing.T) {
	folder, locks := fileLocks(t, 1)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for what, ctx := range map[string]context.Context{"given up before": done, "given up meanwhile": &lateContext{Context: t.Context()}} {
		if _, err := locks[0].Acquire(ctx, Attempt{Key: "k", ID: "w1-1"}); OutcomeOf(err) != NoEffect {
			t.Errorf("%s: %v", what, err)
		}
	}
	if names := filesIn(t, folder); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
	gone := &fileLock{folder: filepath.Join(folder, "gone")}
	if _, err := gone.Acquire(t.Context(), Attempt{Key: "k", ID: "w1-1"}); OutcomeOf(err) != NoEffect {
		t.Errorf("without the folder: %v", err)
	}
	if _, err := openFile(Config{}); err == nil {
		t.Error("opens without a folder")
	}
}
