package suites

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"lockcheck/internal/runs"
)

// TestLedger: entries can be read again, and an incomplete line counts as never written.
func TestLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	if _, err := CreateLedger[string, int](path, "heading"); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateLedger[string, int](path, "heading"); !errors.Is(err, os.ErrExist) {
		t.Errorf("made again: %v, want that it is there", err)
	}
	add := func(n int, want ...int) {
		t.Helper()
		l, err := OpenLedger[string, int](path)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Add(n); err != nil || l.Heading != "heading" || !slices.Equal(l.Entries(), want) {
			t.Errorf("%q %v, %v; want %v", l.Heading, l.Entries(), err, want)
		}
	}
	add(1, 1)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("77"); err != nil || file.Close() != nil {
		t.Fatal(err)
	}
	add(2, 1, 2)
	add(3, 1, 2, 3)
	if err := os.WriteFile(path, []byte("\"heading\"\nnone\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLedger[string, int](path); err == nil {
		t.Error("a line that is no entry is none")
	}
}

// TestLedgerLocked: a second process that would continue the same ledger is refused.
func TestLedgerLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	first, err := CreateLedger[int, int](path, 1)
	if err != nil {
		t.Fatal(err)
	}
	second, err := OpenLedger[int, int](path)
	if err != nil {
		t.Fatal(err)
	}
	locked, err := first.Lock()
	if err != nil {
		t.Fatal(err)
	}
	var usage *runs.UsageError
	if _, err := second.Lock(); !errors.As(err, &usage) {
		t.Errorf("locked twice: %v", err)
	}
	if err := locked.Close(); err != nil {
		t.Fatal(err)
	}
	if again, err := second.Lock(); err != nil {
		t.Error(err)
	} else if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestLedgerFull: an entry that could not be written is not in the ledger.
func TestLedgerFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	l, err := CreateLedger[string, int](path, "heading")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.Symlink("/dev/full", path)); err != nil {
		t.Fatal(err)
	}
	if err := l.Add(1); err == nil || len(l.Entries()) > 0 {
		t.Errorf("on a full disk there are %v, %v", l.Entries(), err)
	}
}
