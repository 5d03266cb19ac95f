package workloads

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/history"
)

// noticed is a lock that grants every attempt, and that is lost when the holder has read.
type noticed struct {
	refusing
	io.Writer
	lost func()
	gone chan struct{}
}

func newNoticed(out io.Writer) *noticed {
	gone := make(chan struct{})
	return &noticed{Writer: out, gone: gone, lost: sync.OnceFunc(func() { close(gone) })}
}

// Write receives the worker's record.
func (n *noticed) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(`"type":"ok","f":"read"`)) {
		defer n.lost()
	}
	return n.Writer.Write(line)
}

func (n *noticed) Acquire(_ context.Context, a clients.Attempt) (clients.Grant, error) {
	return clients.Grant{Key: a.Key, ID: a.ID, Lost: n.gone}, nil
}

// TestExitOnLoss: a worker that loses its lock ends with everything in progress, records the loss, and
// continues from there after its restart. It does not release the lock. Without the option it ends its section
// and releases the lock.
func TestExitOnLoss(t *testing.T) {
	const lost = "acquire invoke, acquire ok, read invoke, read ok, lost info"
	for _, c := range []struct {
		name string
		exit bool
		want string
	}{
		{"exits", true, lost},
		{"goes on", false, lost + ", release invoke, release ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runResource(t, ResourceConfig{})
			var out lockedBuffer
			lock := newNoticed(&out)
			w := r.worker(lock, history.WorkloadSet, lock, Use{ExitOnLoss: c.exit, Section: Range{time.Minute, time.Minute}})
			w.updates.Store(6)
			ended := make(chan progress, 2)
			w.restart = func(_ WorkerConfig, p progress) error {
				ended <- p
				select {} // like a process that is replaced
			}
			go func() {
				_, _ = w.attempt(t.Context(), t.Context())
				ended <- progress{}
			}()
			p := <-ended
			events := out.events(t)
			validate(t, events, r.finish())
			if got := of(events, "w1-1"); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if want := (progress{Ops: 2, Attempts: 1, Held: 1, Updates: 6}); c.exit && p != want {
				t.Errorf("it goes on from %+v, want %+v", p, want)
			}
		})
	}
}

// TestStartedAgain: a program continues from the progress that was left to it, and begins from nothing
// otherwise.
func TestStartedAgain(t *testing.T) {
	if _, again, err := startedAgain(); again || err != nil {
		t.Errorf("started again: %t, %v", again, err)
	}
	t.Setenv(progressVariable, `{"ops":5,"attempts":4,"held":3,"updates":2}`)
	if p, again, err := startedAgain(); !again || err != nil || p != (progress{5, 4, 3, 2}) {
		t.Errorf("%+v, started again: %t, %v", p, again, err)
	}
	t.Setenv(progressVariable, "{")
	if _, _, err := startedAgain(); err == nil {
		t.Error("half a progress passes for one")
	}
}

// TestEnd: calls in progress get an unknown outcome, completed calls keep theirs, and a later Emit blocks.
func TestEnd(t *testing.T) {
	var out lockedBuffer
	e := NewEmitter("w1", &out)
	invoke := func(op int64, f history.Function) history.Event {
		event := history.Event{Type: history.Invoke, F: f, Op: op, Key: "k0", Grant: "w1-1"}
		e.Emit(event)
		return event
	}
	done := invoke(1, history.Acquire)
	done.Type = history.OK
	e.Emit(done)
	invoke(2, history.Write)
	invoke(3, history.Renew)
	e.Emit(history.Event{Type: history.Info, F: history.Caught, Op: 3, Key: "k0", Grant: "w1-1"})
	e.End("gone", history.Event{Type: history.Info, F: history.Lost, Key: "k0", Grant: "w1-1"})
	go invoke(4, history.Acquire)
	want := "acquire invoke, acquire ok, write invoke, renew invoke, caught info, lost info, write info, renew info"
	if got := of(out.events(t), "w1-1"); got != want || e.mu.TryLock() {
		t.Errorf("%s, want %s, and nothing after it", got, want)
	}
}
