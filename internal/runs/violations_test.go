package runs

import (
	"fmt"
	"testing"
	"time"

	"lockcheck/history"
)

// TestViolationWatch: each violation ends a trial, and a near miss does not. Times are in ms. Events after
// 900 ms confirm what is confirmed late.
func TestViolationWatch(t *testing.T) {
	at := func(ms int64) int64 { return ms * int64(time.Millisecond) }
	event := func(ms int64, worker string, typ history.Type, f history.Function) history.Event {
		return history.Event{Time: at(ms), Process: worker, Type: typ, F: f, Key: "k", Grant: worker + "-1"}
	}
	// hold is asked for at a time, granted 5 ms later, and valid until another time; 0 for a hold without
	// validity.
	hold := func(ms, until int64, worker string, token uint64) []history.Event {
		granted := event(ms+5, worker, history.OK, history.Acquire)
		granted.Token, granted.Until = token, at(until)
		return []history.Event{event(ms, worker, history.Invoke, history.Acquire), granted}
	}
	release := func(ms int64, worker string, typ history.Type) []history.Event {
		return []history.Event{event(ms, worker, history.Invoke, history.Release), event(ms+5, worker, typ, history.Release)}
	}
	renewed := event(90, "w1", history.OK, history.Renew)
	renewed.Until = at(400)
	expired := event(5, "w1", history.OK, history.Acquire)
	expired.Expired = true
	elsewhere := hold(20, 200, "w2", 0)
	for i := range elsewhere {
		elsewhere[i].Key = "l"
	}
	fault := func(ms int64, kind, target string, peers ...string) []history.Event {
		return []history.Event{{Time: at(ms), Process: history.Nemesis, Fault: &history.Fault{
			Kind: kind, Stage: history.Applied, Targets: []string{target}, Peers: peers, From: at(ms),
		}}}
	}
	one := func(e history.Event) []history.Event { return []history.Event{e} }
	for _, c := range []struct {
		name   string
		events [][]history.Event
		want   bool
	}{
		{"nothing", nil, false},
		{"one after the other", [][]history.Event{hold(0, 100, "w1", 1), release(10, "w1", history.OK), hold(20, 120, "w2", 2)}, false},
		{"a grant during a validity", [][]history.Event{hold(0, 100, "w1", 0), hold(20, 120, "w2", 0)}, true},
		{"of two locks", [][]history.Event{hold(0, 100, "w1", 0), elsewhere}, false},
		{"a grant after a validity", [][]history.Event{hold(0, 100, "w1", 0), hold(120, 220, "w2", 0)}, false},
		{"a grant during a renewed one", [][]history.Event{hold(0, 100, "w1", 0), one(renewed), hold(120, 220, "w2", 0)}, true},
		{"a release that arrives late", [][]history.Event{hold(0, 100, "w1", 0), hold(20, 120, "w2", 0), release(15, "w1", history.OK)}, false},
		{"a loss that arrives late", [][]history.Event{hold(0, 100, "w1", 0), hold(20, 120, "w2", 0), one(event(15, "w1", history.Info, history.Lost))}, false},
		{"a holder that is dead", [][]history.Event{hold(0, 100, "w1", 0), fault(10, history.Kill, "w1"), hold(20, 120, "w2", 0)}, false},
		{"without a validity", [][]history.Event{hold(0, 0, "w1", 0), hold(20, 0, "w2", 0)}, true},
		{"without a validity, a holder that was stopped", [][]history.Event{hold(0, 0, "w1", 0), fault(10, history.Pause, "w1"), hold(20, 0, "w2", 0)}, false},
		{"without a validity, a holder that was cut off", [][]history.Event{hold(0, 0, "w1", 0), fault(10, history.Partition, "n1", "w1", "w2"), hold(20, 0, "w2", 0)}, false},
		{"tokens in order", [][]history.Event{hold(0, 10, "w1", 1), hold(20, 30, "w2", 2)}, false},
		{"tokens out of order", [][]history.Event{hold(0, 10, "w1", 2), hold(20, 30, "w2", 1)}, true},
		{"one token twice", [][]history.Event{hold(0, 10, "w1", 1), hold(20, 30, "w2", 1)}, true},
		{"out of order, of attempts at once", [][]history.Event{hold(0, 1, "w1", 2), hold(4, 14, "w2", 1)}, false},
		{"out of order, told in the other order", [][]history.Event{hold(20, 30, "w2", 1), hold(0, 10, "w1", 2)}, true},
		{"an expired grant", [][]history.Event{one(event(0, "w1", history.Invoke, history.Acquire)), one(expired)}, true},
		{"the release of another's lock", [][]history.Event{hold(0, 100, "w1", 0), hold(120, 400, "w2", 0), release(150, "w1", history.OK)}, true},
		{"one that did nothing", [][]history.Event{hold(0, 100, "w1", 0), hold(120, 400, "w2", 0), release(150, "w1", history.Info)}, false},
		{"one while its answer was on the way", [][]history.Event{hold(0, 200, "w1", 0), release(100, "w1", history.OK), hold(101, 300, "w2", 0)}, false},
	} {
		for _, overlaps := range []bool{true, false} {
			t.Run(fmt.Sprint(c.name, overlaps), func(t *testing.T) {
				w := newViolationWatch(overlaps)
				for _, some := range append(c.events, one(history.Event{Time: at(900), Process: history.Resource})) {
					for _, e := range some {
						w.Observe(e)
					}
				}
				want := c.want && (overlaps || c.name[:6] != "a gran" && c.name != "without a validity")
				if got := Closed(w.seen); got != want {
					t.Errorf("seen: %t, want %t", got, want)
				}
			})
		}
	}
}

// TestViolationWatchEarly: nothing is confirmed until all earlier events could have arrived.
func TestViolationWatchEarly(t *testing.T) {
	w := newViolationWatch(true)
	for _, e := range []history.Event{
		{Time: 1, Process: "w1", Type: history.OK, F: history.Acquire, Key: "k", Grant: "a", Until: int64(time.Hour)},
		{Time: 2, Process: "w2", Type: history.OK, F: history.Acquire, Key: "k", Grant: "b", Until: int64(time.Hour)},
		{Time: 2 + overlapConfirmed.Nanoseconds(), Process: history.Resource},
	} {
		if w.Observe(e); Closed(w.seen) {
			t.Errorf("seen at %d ns", e.Time)
		}
	}
	if w.Observe(history.Event{Time: 3 + overlapConfirmed.Nanoseconds()}); !Closed(w.seen) {
		t.Error("not seen")
	}
}
