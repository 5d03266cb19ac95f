package clienttest

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipeSize is how much a pipe holds before a writer must wait, in bytes, as on Linux.
const pipeSize = 64 << 10

// pipe is an operating system's pipe, in memory. A goroutine that waits for it is durably blocked in the sense
// of testing/synctest.
type pipe struct {
	mu       sync.Mutex
	changed  *sync.Cond
	text     []byte
	noReader bool
	noWriter bool
	tooLate  bool // the deadline for reads has passed
}

func newPipe() *pipe {
	p := new(pipe)
	p.changed = sync.NewCond(&p.mu)
	return p
}

func (p *pipe) Read(into []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.noReader:
			return 0, os.ErrClosed
		case p.tooLate:
			return 0, os.ErrDeadlineExceeded
		case len(p.text) > 0:
			n := copy(into, p.text)
			p.text = p.text[n:]
			p.changed.Broadcast()
			return n, nil
		case p.noWriter:
			return 0, io.EOF
		}
		p.changed.Wait()
	}
}

func (p *pipe) Write(text []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.noWriter:
			return n, os.ErrClosed
		case p.noReader:
			return n, syscall.EPIPE
		}
		part := text[n:min(len(text), n+pipeSize-len(p.text))]
		p.text = append(p.text, part...)
		n += len(part)
		p.changed.Broadcast()
		if n == len(text) {
			return n, nil
		}
		p.changed.Wait()
	}
}

func (p *pipe) closeReader() { p.set(&p.noReader) }
func (p *pipe) closeWriter() { p.set(&p.noWriter) }

func (p *pipe) set(what *bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*what = true
	p.changed.Broadcast()
}

// readEnd and writeEnd are the ends of a pipe that the client's parent uses.
type (
	readEnd  struct{ *pipe }
	writeEnd struct{ *pipe }
)

func (e readEnd) Close() error {
	e.closeReader()
	return nil
}

func (e readEnd) SetReadDeadline(at time.Time) error {
	time.AfterFunc(time.Until(at), func() { e.set(&e.tooLate) })
	return nil
}

func (e writeEnd) Close() error {
	e.closeWriter()
	return nil
}
