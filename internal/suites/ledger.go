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

// Ledger is a file of JSON lines about many runs: a heading, then an entry for each that was
// made. It is appended to as they end, so that what was stopped can go on.
type Ledger[H, E any] struct {
	Heading H

	path    string
	mu      sync.Mutex
	entries []E
	// complete is the length of the file up to its last line break, -1 if that is its end.
	complete int64
}

// CreateLedger begins one; a file that is there is an error of os.ErrExist.
func CreateLedger[H, E any](path string, heading H) (*Ledger[H, E], error) {
	l := &Ledger[H, E]{Heading: heading, path: path, complete: -1}
	return l, appendLine(path, heading, os.O_EXCL)
}

// OpenLedger reads one, and changes nothing. The last line of a program that was killed may
// be cut off: it is left out. Errors name the line.
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

// Lock keeps other processes from going on with the ledger until the file it returns is closed. If one
// does already, the error is one of usage.
func (l *Ledger[H, E]) Lock() (io.Closer, error) {
	file, err := os.OpenFile(l.path, os.O_RDWR, 0) // as NFS needs it
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

// Add puts down a run. A line that was cut off is taken away first: the new one would
// continue it.
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
		l.complete = before.Size() // whatever there is of it
		return err
	}
	l.entries = append(l.entries, e)
	return nil
}

// Entries are those put down so far, in their order.
func (l *Ledger[H, E]) Entries() []E {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
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
