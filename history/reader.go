package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
)

// SyntaxError is a line that is no event, or a first line that is no header.
type SyntaxError struct {
	Line   int // from 1
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("history: line %d: %s", e.Line, e.Reason)
}

// Reader reads a history event by event. A line of more than maxLine bytes is a *SyntaxError.
type Reader struct {
	in        *bufio.Reader
	header    Header
	schema    int // of the file; events are converted to SchemaVersion
	truncated int
}

// NewReader reads the header. A missing, foreign or newer header is a *SyntaxError that names line 1.
func NewReader(r io.Reader) (*Reader, error) {
	hr := &Reader{in: bufio.NewReaderSize(r, blockSize)}
	text, err := untilNewline(hr.in, nil, 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(text) == 0 {
		return nil, &SyntaxError{Line: 1, Reason: "the file is empty"}
	}
	if err := object(text, &hr.header); err != nil {
		return nil, &SyntaxError{Line: 1, Reason: "no header: " + err.Error()}
	}
	hr.schema = schemaOf(text)
	if err := hr.header.checkVersion(); err != nil {
		return nil, err
	}
	return hr, nil
}

func (h Header) checkVersion() error {
	if h.Format != Format {
		return &SyntaxError{Line: 1, Reason: fmt.Sprintf("format is %q, not %q", h.Format, Format)}
	}
	if h.Schema < 1 || h.Schema > SchemaVersion {
		return &SyntaxError{Line: 1, Reason: fmt.Sprintf("schema version %d is not known, the newest known is %d", h.Schema, SchemaVersion)}
	}
	return nil
}

// Header returns the first line, converted to SchemaVersion.
func (r *Reader) Header() Header { return r.header }

// Truncated returns the number of the last line if it was cut off while it was written, and is therefore left
// out; else 0. It is known once Each has returned.
func (r *Reader) Truncated() int { return r.truncated }

// blockSize is how much is decoded at a time, in bytes.
const blockSize = 256 << 10

// maxLine limits the memory for a file that is no history. The longest line of a history is the final state
// of a set; maxLine allows about a million elements.
const maxLine = 64 << 20

// untilNewline appends the input up to the next newline. Its error names the line of the file; io.EOF is
// returned unchanged.
func untilNewline(in *bufio.Reader, text []byte, line int) ([]byte, error) {
	before := bytes.LastIndexByte(text, '\n') + 1
	for {
		part, err := in.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text)-before > maxLine:
			return text[:before], &SyntaxError{Line: line, Reason: fmt.Sprintf("longer than %d MB, which no line of a history is", maxLine>>20)}
		case err == nil || err == io.EOF:
			return text, err
		case !errors.Is(err, bufio.ErrBufferFull):
			return text, fmt.Errorf("history: line %d: %w", line, err)
		}
	}
}

// block is some lines of the file and their events.
type block struct {
	text   []byte // whole lines; only the last one of the file may lack its newline
	line   int    // number of the first line
	read   error  // why nothing follows: an error of the file, or io.EOF
	events []Event
	// bad is the error of the line after events. cut says that this line was cut off while it was written.
	bad error
	cut bool
	// blank is the first of the blank lines at the end of the block, 0 for none.
	blank int
	done  chan struct{} // closed when decoded
}

// follows says that the block has anything except blank lines.
func (b *block) follows() bool { return len(b.events) > 0 || b.bad != nil || b.cut }

// Each calls f with all events in order, until the first error, and returns that error. The event is only
// valid until f returns. A malformed line is a *SyntaxError, unless it is the last one and has no newline.
// Blank lines may only be the last ones. Each can be called once. After an error of f the input may be read
// once more.
func (r *Reader) Each(f func(*Event) error) error {
	// Decoding is most of the work: blocks are decoded in parallel and passed on in their order.
	todo, inOrder := make(chan *block), make(chan *block, 2*runtime.GOMAXPROCS(0))
	stop := make(chan struct{})
	free := sync.Pool{New: func() any { return new(block) }}
	defer close(stop)
	// Each does not wait for split, because the input may never return anything again.
	go r.split(&free, todo, inOrder, stop)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			d := newDecoder(r.schema)
			for b := range todo {
				b.decode(d)
				close(b.done)
			}
		}()
	}
	blank := 0
	for b := range inOrder {
		<-b.done
		if blank != 0 && b.follows() {
			return blankLine(blank)
		}
		if blank == 0 {
			blank = b.blank
		}
		for i := range b.events {
			if err := f(&b.events[i]); err != nil {
				return err
			}
		}
		if b.cut {
			r.truncated = b.line + len(b.events)
		}
		if b.bad != nil {
			return b.bad
		}
		if b.read != nil {
			if b.read == io.EOF {
				return nil
			}
			return b.read
		}
		free.Put(b)
	}
	return nil
}

// split cuts the file into blocks of whole lines.
func (r *Reader) split(free *sync.Pool, todo, inOrder chan<- *block, stop <-chan struct{}) {
	defer close(inOrder)
	defer close(todo)
	for line := 2; ; {
		b := free.Get().(*block)
		b.done, b.line, b.bad, b.cut, b.blank = make(chan struct{}), line, nil, false, 0
		b.fill(r.in)
		line += bytes.Count(b.text, []byte("\n"))
		select {
		case inOrder <- b:
		case <-stop:
			return
		}
		select {
		case todo <- b:
		case <-stop:
			return
		}
		if b.read != nil {
			return
		}
	}
}

// fill reads what is available, up to blockSize, and then to the end of the line.
func (b *block) fill(in *bufio.Reader) {
	if cap(b.text) < blockSize {
		b.text = make([]byte, 0, 2*blockSize)
	}
	n, err := in.Read(b.text[:blockSize])
	b.text = b.text[:n]
	last := b.line + bytes.Count(b.text, []byte("\n"))
	switch {
	case err != nil && err != io.EOF:
		err = fmt.Errorf("history: line %d: %w", last, err)
	case err == nil && !bytes.HasSuffix(b.text, []byte("\n")):
		b.text, err = untilNewline(in, b.text, last)
	}
	b.read = err
}

func (b *block) decode(d *decoder) {
	b.events = b.events[:0]
	for rest := b.text; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		rest = after
		if len(bytes.TrimSpace(line)) == 0 {
			if b.blank == 0 {
				b.blank = b.line + len(b.events)
			}
			continue
		}
		if b.blank != 0 {
			b.bad, b.blank = blankLine(b.blank), 0
			return
		}
		b.events = append(b.events, Event{})
		err := d.decode(line, &b.events[len(b.events)-1])
		if err == nil {
			continue
		}
		b.events = b.events[:len(b.events)-1]
		if !whole { // the end of what could be read
			b.cut = b.read == io.EOF
			return
		}
		b.bad = &SyntaxError{Line: b.line + len(b.events), Reason: err.Error()}
		return
	}
}

func blankLine(line int) error {
	return &SyntaxError{Line: line, Reason: "blank, though others follow"}
}

// ReadAll reads a whole history. It does not validate it.
func ReadAll(r io.Reader) (*History, error) {
	hr, err := NewReader(r)
	if err != nil {
		return nil, err
	}
	h := &History{Header: hr.Header()}
	if err := hr.Each(func(e *Event) error {
		h.Events = append(h.Events, *e)
		return nil
	}); err != nil {
		return nil, err
	}
	h.Truncated = hr.Truncated()
	return h, nil
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
