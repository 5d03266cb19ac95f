package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// SyntaxError is a line that is no event, or a first line that is no header.
type SyntaxError struct {
	Line   int // from 1
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("history: line %d: %s", e.Line, e.Reason)
}

// Reader reads a history event by event. Lines may have any length.
type Reader struct {
	in        *bufio.Reader
	header    Header
	line      int
	truncated int
	done      bool
}

// NewReader reads the header. A missing, foreign or newer header is a
// *SyntaxError that names line 1.
func NewReader(r io.Reader) (*Reader, error) {
	hr := &Reader{in: bufio.NewReaderSize(r, 64<<10)}
	text, _, err := hr.next()
	if errors.Is(err, io.EOF) {
		return nil, &SyntaxError{Line: 1, Reason: "the file is empty"}
	}
	if err != nil {
		return nil, err
	}
	if err := object(text, &hr.header); err != nil {
		return nil, &SyntaxError{Line: 1, Reason: "no header: " + err.Error()}
	}
	if err := hr.header.check(); err != nil {
		return nil, err
	}
	return hr, nil
}

func (h Header) check() error {
	if h.Format != Format {
		return &SyntaxError{Line: 1, Reason: fmt.Sprintf("format is %q, not %q", h.Format, Format)}
	}
	if h.Schema < 1 || h.Schema > SchemaVersion {
		return &SyntaxError{Line: 1, Reason: fmt.Sprintf("schema version %d is not known, the newest known is %d", h.Schema, SchemaVersion)}
	}
	return nil
}

// Header returns the first line.
func (r *Reader) Header() Header { return r.header }

// Truncated returns the number of the last line if it was cut off in mid-write
// and therefore left out, else 0. It is known once Next has returned io.EOF.
func (r *Reader) Truncated() int { return r.truncated }

// Next returns the next event, and io.EOF at the end. A malformed line is a
// *SyntaxError, unless it is the last one and has no newline.
func (r *Reader) Next() (Event, error) {
	if r.done {
		return Event{}, io.EOF
	}
	text, whole, err := r.next()
	if err != nil {
		r.done = true
		return Event{}, err
	}
	var e Event
	if err := object(text, &e); err != nil {
		r.done = true
		if !whole {
			r.truncated = r.line
			return Event{}, io.EOF
		}
		return Event{}, &SyntaxError{Line: r.line, Reason: err.Error()}
	}
	return e, nil
}

// next returns a line without its newline, and whether it had one.
func (r *Reader) next() ([]byte, bool, error) {
	text, err := r.in.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("history: line %d: %w", r.line+1, err)
	}
	if len(text) == 0 {
		return nil, false, io.EOF
	}
	r.line++
	return bytes.TrimSuffix(text, []byte("\n")), err == nil, nil
}

// object unmarshals a JSON object; encoding/json alone would take null for one.
func object(text []byte, into any) error {
	if trimmed := bytes.TrimLeft(text, " \t\r"); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("not a JSON object")
	}
	return json.Unmarshal(text, into)
}

// ReadAll reads a whole history. It does not validate it.
func ReadAll(r io.Reader) (*History, error) {
	hr, err := NewReader(r)
	if err != nil {
		return nil, err
	}
	h := &History{Header: hr.Header()}
	for {
		e, err := hr.Next()
		if errors.Is(err, io.EOF) {
			h.Truncated = hr.Truncated()
			return h, nil
		}
		if err != nil {
			return nil, err
		}
		h.Events = append(h.Events, e)
	}
}

// ReadFile reads the history at path. It does not validate it.
func ReadFile(path string) (*History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	h, err := ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}
