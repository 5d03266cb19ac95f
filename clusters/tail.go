package clusters

import (
	"fmt"
	"io"
	"sync"
)

// tailSize bounds what is kept of a process' error output.
const tailSize = 64 << 10

// Tail keeps the end of a stream.
type Tail struct {
	mu   sync.Mutex
	text []byte
	left int64         // dropped, in bytes
	done chan struct{} // closed at the end of the current stream; nil before the first stream
}

// follow reads the stream to its end in the background.
func follow(stream io.Reader) *Tail {
	t := new(Tail)
	t.follow(stream)
	return t
}

// follow reads another stream to its end in the background, after the previous stream has ended.
func (t *Tail) follow(stream io.Reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, done := t.done, make(chan struct{})
	t.done = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		// A read error adds nothing: the stream ends with its process, whose end is reported elsewhere.
		_, _ = io.Copy(t, stream)
	}()
}

// All waits for the end of the current stream, which ends with its process, and returns the kept text.
func (t *Tail) All() string {
	t.mu.Lock()
	done := t.done
	t.mu.Unlock()
	if done != nil {
		<-done
	}
	return t.String()
}

// Write keeps the last bytes written.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if excess := len(t.text) - tailSize; excess > 0 {
		t.text = append([]byte(nil), t.text[excess:]...)
		t.left += int64(excess)
	}
	return len(p), nil
}

// String returns the kept text, and says how much was dropped.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left > 0 {
		return fmt.Sprintf("(%d bytes before this are left out: lockcheck keeps the last %d)\n%s", t.left, tailSize, t.text)
	}
	return string(t.text)
}
