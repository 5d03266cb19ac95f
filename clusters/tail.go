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
	left int64         // out, in bytes
	done chan struct{} // closed at the end of the stream; nil before the first
}

// follow reads the stream to its end in the background.
func follow(stream io.Reader) *Tail {
	t := new(Tail)
	t.follow(stream)
	return t
}

// follow reads another stream to its end in the background, once the stream before it has ended.
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
		// The stream ends with its process, and how that ended is known.
		_, _ = io.Copy(t, stream)
	}()
}

// All waits for the end of the present stream, which the end of its process brings, and
// returns what was kept.
func (t *Tail) All() string {
	t.mu.Lock()
	done := t.done
	t.mu.Unlock()
	if done != nil {
		<-done
	}
	return t.String()
}

// Write keeps the end of what was written.
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

// String returns what was kept, and says how much was not.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left > 0 {
		return fmt.Sprintf("(%d bytes before this are left out: lockcheck keeps the last %d)\n%s", t.left, tailSize, t.text)
	}
	return string(t.text)
}
