package cleanup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"lockcheck/clusters/clustertest"
)

// TestWithReaper: until the work is done, the journal has what was registered.
func TestWithReaper(t *testing.T) {
	binary := clustertest.Binary(t) // before XDG_CACHE_HOME changes: it also moves the compiler's cache
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	failed := errors.New("failed")
	err := WithReaper(binary, func(r Registry) error {
		if err := r.Folder(t.TempDir()); err != nil {
			t.Error(err)
		}
		if entries := onlyJournal(t); len(entries) != 2 || entries[1].Folder == "" {
			t.Errorf("journaled %+v", entries)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if left, err := Journals(); err != nil || len(left) > 0 {
		t.Errorf("journals %v, %v", left, err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	err = WithReaper(missing, func(Registry) error { t.Error("done without a reaper"); return nil })
	if left, _ := Journals(); !errors.Is(err, os.ErrNotExist) && !errors.Is(err, exec.ErrNotFound) || len(left) > 0 {
		t.Errorf("without a reaper: %v, journals %v", err, left)
	}
}

// onlyJournal reads the only journal that there is.
func onlyJournal(t *testing.T) []Entry {
	t.Helper()
	all, err := Journals()
	if err != nil || len(all) != 1 {
		t.Fatalf("journals %v, %v: want one", all, err)
	}
	entries, err := ReadJournal(all[0])
	if err != nil {
		t.Fatal(err)
	}
	return entries
}
