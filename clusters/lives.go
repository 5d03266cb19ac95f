package clusters

import (
	"io"
	"sync"
)

// lives joins the streams of the processes that run on a node one after another, so that readers do not see
// where one process ends and the next begins. It is the input of the current process.
type lives struct {
	node   *Node
	output *io.PipeWriter

	mu     sync.Mutex
	input  io.WriteCloser
	copied chan struct{} // closed when all output of the earlier processes has been copied
	ended  bool
}

// newLives gives a node its streams. Output must be read continuously, or the processes block.
func newLives(node *Node) *lives {
	output, end := io.Pipe()
	l := &lives{node: node, output: end, copied: make(chan struct{})}
	close(l.copied)
	node.Input, node.Output, node.Errors = l, output, new(Tail)
	return l
}

// begin adds the streams of the next process. Its output comes after the last byte of the previous process.
func (l *lives) begin(input io.WriteCloser, output, errors io.Reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, copied := l.copied, make(chan struct{})
	l.input, l.copied = input, copied
	l.node.Errors.follow(errors)
	go func() {
		defer close(copied)
		<-before
		lines := wholeLines{to: l.output}
		// A read error adds nothing: the stream ends with its process, whose end is reported elsewhere.
		_, _ = io.Copy(&lines, output)
		lines.end()
	}()
}

// Write implements io.Writer. It writes to the current process.
func (l *lives) Write(p []byte) (int, error) { return l.present().Write(p) }

// Close implements io.Closer. It closes the input of the current process.
func (l *lives) Close() error { return l.present().Close() }

func (l *lives) present() io.WriteCloser {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.input
}

// EndOutput ends a node's output after everything that its processes have written, because the node will not be
// restarted. It does nothing for a node whose output ends by itself.
func (n *Node) EndOutput() {
	if n.lives != nil {
		n.lives.end()
	}
}

// end ends the output after everything that the processes have written. They must have ended or be about to.
func (l *lives) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	copied := l.copied
	go func() {
		<-copied
		_ = l.output.Close()
	}()
}

// wholeLines completes the last line of a process that was killed while writing it, so that it does not run
// into the first line of the next process.
type wholeLines struct {
	to   io.Writer
	last byte
}

func (w *wholeLines) Write(p []byte) (int, error) {
	if len(p) > 0 {
		w.last = p[len(p)-1]
	}
	return w.to.Write(p)
}

func (w *wholeLines) end() {
	if w.last != 0 && w.last != '\n' {
		_, _ = w.to.Write([]byte{'\n'})
	}
}
