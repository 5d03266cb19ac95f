package workloads

import (
	"context"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/history"
)

// unrenewed is a lock that is granted to everybody and lost with the first renewal.
type unrenewed struct{ refusing }

func (unrenewed) Renew(context.Context, clients.Grant, time.Duration) (int64, error) {
	return 0, clients.ErrNotHeld
}

// TestExitOnLoss: who loses its lock ends with what it does, tells of it, and goes on from there;
// it gives nothing back. Who does not exit ends its section, and releases.
func TestExitOnLoss(t *testing.T) {
	for _, c := range []struct {
		name string
		exit bool
		want string
	}{
		{"exits", true, "acquire invoke, acquire ok, read invoke, read ok, renew invoke, renew fail, lost info"},
		{"goes on", false, "acquire invoke, acquire ok, read invoke, read ok, renew invoke, renew fail, lost info, release invoke, release ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runResource(t, ResourceConfig{})
			var out lockedBuffer
			set, _ := ByName(history.WorkloadSet)
			ended := make(chan progress, 2)
			stop := make(chan struct{})
			w := &worker{
				catches: newCatches(1), stop: stop,
				config: WorkerConfig{
					Name: "w1", Index: 1, Lock: "test", Socket: r.socket, Timeout: time.Minute,
					Use: Use{ExitOnLoss: c.exit, Renew: true, TTL: 3 * time.Millisecond, Section: Range{time.Minute, time.Minute}},
				},
				workload: set, lock: unrenewed{}, resource: r.client, record: NewEmitter("w1", &out),
				restart: func(p progress) error {
					ended <- p
					select {} // as a process that is replaced
				},
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
			if want := (progress{Ops: 3, Attempts: 1, Held: 1}); c.exit && p != want {
				t.Errorf("it goes on from %+v, want %+v", p, want)
			}
		})
	}
}

// TestEnd: calls in progress have an unknown outcome, those that are over keep theirs, and who
// begins another one waits.
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
