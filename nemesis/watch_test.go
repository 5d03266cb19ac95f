package nemesis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// reads returns the event of a read under a grant.
func reads(worker, grant string) history.Event {
	return history.Event{Process: worker, Type: history.OK, F: history.Read, Grant: grant, Time: 1}
}

// TestWatch: a worker is inside from its first read under the lock until it gives the lock up, whatever else
// happens.
func TestWatch(t *testing.T) {
	event := func(process string, kind history.Type, f history.Function) history.Event {
		return history.Event{Process: process, Type: kind, F: f, Grant: "w1-1"}
	}
	inside := []history.Event{event("w1", history.OK, history.Acquire), reads("w1", "w1-1")}
	for _, c := range []struct {
		name   string
		events []history.Event
		holder string
	}{
		{"nothing", nil, ""},
		{"granted", inside[:1], ""},
		{"read invoked", append(inside[:1:1], event("w1", history.Invoke, history.Read)), ""},
		{"read refused by the guard", append(inside[:1:1], event("w1", history.Fail, history.Read)), ""},
		{"read without answer", append(inside[:1:1], event("w1", history.Info, history.Read)), ""},
		{"read as the resource has it", append(inside[:1:1], event(history.Resource, history.OK, history.Read)), ""},
		{"read", inside, "w1"},
		{"written", append(inside[:2:2], event("w1", history.OK, history.Write)), "w1"},
		{"renewed", append(inside[:2:2], event("w1", history.OK, history.Renew)), "w1"},
		{"released by another", append(inside[:2:2], event("w2", history.Invoke, history.Release)), "w1"},
		{"release begun", append(inside[:2:2], event("w1", history.Invoke, history.Release)), ""},
		{"lost", append(inside[:2:2], event("w1", history.Info, history.Lost)), ""},
		{"inside again", append(inside[:2:2], event("w1", history.Invoke, history.Release), reads("w1", "w1-2")), "w1"},
		{"two at once", append(inside[:2:2], reads("w2", "w2-1")), "w1 w2"},
		{"two at once, the first anew", append(inside[:2:2], reads("w2", "w2-1"), reads("w1", "w1-2")), "w2 w1"},
		{"two at once, a second read of the first", append(inside[:2:2], reads("w2", "w2-1"), reads("w1", "w1-1")), "w1 w2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWatch()
			for _, e := range c.events {
				w.Observe(e)
			}
			if got := strings.Join(w.insiders(), " "); got != c.holder {
				t.Errorf("inside is %q, want %q", got, c.holder)
			}
		})
	}
}

// TestAsks: a worker asks for a lock until the answer, whatever that is.
func TestAsks(t *testing.T) {
	w := NewWatch()
	for _, c := range []struct {
		answer history.Type
		asks   bool
	}{{history.Invoke, true}, {history.OK, false}, {history.Invoke, true}, {history.Fail, false}, {history.Invoke, true}, {history.Info, false}} {
		w.Observe(history.Event{Process: "w1", Type: c.answer, F: history.Acquire})
		if w.asks("w1") != c.asks || w.asks("w2") {
			t.Errorf("after %s: w1 asks %t, w2 %t", c.answer, w.asks("w1"), w.asks("w2"))
		}
	}
}

// waits starts a wait for a worker, "" for any, and returns once it waits.
func waits(t *testing.T, w *Watch, of string) <-chan entry {
	t.Helper()
	before := len(w.waiters())
	entered := make(chan entry, 1)
	go func() {
		defer close(entered)
		if e, err := w.await(t.Context(), WhenHolding, of); err == nil {
			entered <- e
		}
	}()
	clustertest.Eventually(t, 10*time.Second, func() error {
		if len(w.waiters()) == before {
			return errors.New("it does not wait")
		}
		return nil
	})
	return entered
}

func (w *Watch) waiters() map[*wait]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	copied := make(map[*wait]bool)
	for waiting := range w.waiting {
		copied[waiting] = true
	}
	return copied
}

func TestAwait(t *testing.T) {
	w := NewWatch()
	w.Observe(reads("w1", "w1-1"))
	// w1 is already inside. Only entering counts, because a fault must follow at once.
	anyone, second := waits(t, w, ""), waits(t, w, "w2")
	w.Observe(reads("w1", "w1-1"))
	if n := len(w.waiters()); n != 2 {
		t.Fatalf("a second read in the same section ended the waiting of %d", 2-n)
	}
	w.Observe(reads("w3", "w3-1"))
	if e := <-anyone; e != (entry{worker: "w3", at: 1, what: "w3 had read"}) {
		t.Errorf("who waits for anyone got %+v", e)
	}
	if n := len(w.waiters()); n != 1 {
		t.Fatalf("%d wait on, want one: w3 is not w2", n)
	}
	w.Observe(reads("w2", "w2-1"))
	if e := <-second; e.worker != "w2" {
		t.Errorf("who waits for w2 got %+v", e)
	}
}

func TestAwaitCancelled(t *testing.T) {
	w := NewWatch()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.await(ctx, WhenHolding, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
	if n := len(w.waiters()); n != 0 {
		t.Errorf("%d still wait", n)
	}
	w.Observe(reads("w1", "w1-1")) // must not reach a waiter that has gone
}

// TestHoldsAlready: a fault of the holder hits a replica that took its lock before the step waited and still
// holds it. A worker that is already inside is not hit: the fault waits for the next one to enter.
func TestHoldsAlready(t *testing.T) {
	said := func(f history.Function) history.Event {
		return history.Event{Process: "w1", Type: history.Info, F: f, Key: "k", Time: 7}
	}
	for _, c := range []struct {
		name   string
		events []history.Event
		met    bool
	}{
		{"a replica holds", []history.Event{said(history.Holding)}, true},
		{"a replica held", []history.Event{said(history.Holding), said(history.Releasing)}, false},
		{"a replica of another name holds", []history.Event{{Process: "w2", Type: history.Info, F: history.Holding, Key: "k", Time: 7}}, false},
		{"a worker is inside", []history.Event{reads("w1", "w1-1")}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWatch()
			for _, e := range c.events {
				w.Observe(e)
			}
			over, cancel := context.WithCancel(context.Background())
			cancel() // whatever has not come by now never comes
			e, err := w.await(over, WhenHolding, "w1")
			switch {
			case !c.met && err == nil:
				t.Errorf("%+v came", e)
			case c.met && (err != nil || e.worker != "w1" || e.at != 7 || !w.isInside("w1", e.at)):
				t.Errorf("%+v, %v: want that w1 holds since 7", e, err)
			}
		})
	}
}
