package history

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// Writer appends events to a history file. It is safe for concurrent use. Each event is one line and one
// write(2), so a killed run leaves a prefix that ReadAll accepts.
type Writer struct {
	mu   sync.Mutex
	file *os.File
	next int64
	err  error // sticky: a partly written line must stay the last one
}

// Create creates a history file at path with h as its first line, and sets Format and Schema of h. It is an
// error if the file exists: a history is never overwritten.
func Create(path string, h Header) (*Writer, error) {
	h.Format, h.Schema = Format, SchemaVersion
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	w := &Writer{file: file}
	if err := w.line(h); err != nil {
		_ = file.Close() // the first error is the informative one
		return nil, err
	}
	return w, nil
}

// Append sets e.Index, counting from 0, writes e and returns what was written. After a write error every
// further Append returns that error.
func (w *Writer) Append(e Event) (Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return e, w.err
	}
	e.Index = w.next
	if err := w.line(e); err != nil {
		return e, err
	}
	w.next++
	return e, nil
}

// Close closes the file. Appending afterwards is an error.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

func (w *Writer) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	if _, err := w.file.Write(append(b, '\n')); err != nil {
		w.err = fmt.Errorf("history: %w", err)
		return w.err
	}
	return nil
}
