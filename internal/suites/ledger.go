package suites

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"

	"lockcheck/internal/runs"
)

// Ledger is a file of JSON lines about many runs: a heading, then an entry for each finished run. Each entry
// is appended when its run ends, so that a stopped series can continue.
type Ledger[H, E any] struct {
	Heading H

	path    string
	mu      sync.Mutex
	entries []E
	// complete is the length of the file up to its last line break; -1 if the file ends with that line break.
	complete int64
}

// CreateLedger begins a ledger. If the file exists, the error is os.ErrExist.
func CreateLedger[H, E any](path string, heading H) (*Ledger[H, E], error) {
	l := &Ledger[H, E]{Heading: heading, path: path, complete: -1}
	return l, appendLine(path, heading, os.O_EXCL)
}

// OpenLedger reads a ledger without changing it. It leaves out an incomplete last line, which a killed
// program may leave. Errors name the line.
func OpenLedger[H, E any](path string) (*Ledger[H, E], error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	l := &Ledger[H, E]{path: path, complete: -1}
	end := bytes.LastIndexByte(text, '\n') + 1
	if end < len(text) {
		l.complete = int64(end)
	}
	for n, line := range bytes.Split(bytes.TrimSuffix(text[:end], []byte("\n")), []byte("\n")) {
		var e E
		var into any = &e
		if n == 0 {
			into = &l.Heading
		}
		if err := json.Unmarshal(line, into); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n+1, err)
		}
		if n > 0 {
			l.entries = append(l.entries, e)
		}
	}
	return l, nil
}

// Lock keeps other processes from continuing the ledger until the returned file is closed. If another process
// already has it, the error is a usage error.
func (l *Ledger[H, E]) Lock() (io.Closer, error) {
	file, err := os.OpenFile(l.path, os.O_RDWR, 0) // NFS requires that the file is open for writing
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = runs.Usagef("%s: another process goes on with it", l.path)
		}
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Add appends an entry. It first removes an incomplete last line, because the new entry would continue that
// line.
func (l *Ledger[H, E]) Add(e E) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.complete >= 0 {
		if err := os.Truncate(l.path, l.complete); err != nil {
			return err
		}
		l.complete = -1
	}
	before, err := os.Stat(l.path)
	if err != nil {
		return err
	}
	if err := appendLine(l.path, e, 0); err != nil {
		l.complete = before.Size() // part of the line may have been written
		return err
	}
	l.entries = append(l.entries, e)
	return nil
}

// Entries returns the entries so far, in their order.
func (l *Ledger[H, E]) Entries() []E { return l.EntriesFrom(0) }

// EntriesFrom returns the entries after the first n, which are those that were added since there were n.
func (l *Ledger[H, E]) EntriesFrom(n int) []E {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries[n:])
}

func appendLine(path string, line any, flags int) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|flags, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, file.Close())
}
