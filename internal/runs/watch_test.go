package runs

import (
	"testing"
	"time"

	"lockcheck/history"
)

// TestOverlapWatch: only too many holders for long enough are an overlap.
func TestOverlapWatch(t *testing.T) {
	const ms = int64(time.Millisecond)
	acquired := func(at int64, worker, key string) history.Event {
		return history.Event{Time: at * ms, Process: worker, Type: history.OK, F: history.Acquire, Key: key, Grant: worker}
	}
	released := func(at int64, worker, key string) history.Event {
		return history.Event{Time: at * ms, Process: worker, Type: history.Invoke, F: history.Release, Key: key, Grant: worker}
	}
	killed := func(at int64, worker string) history.Event {
		return history.Event{Time: at * ms, Process: history.Nemesis, Fault: &history.Fault{
			Kind: "kill", Stage: history.Applied, Targets: []string{worker},
		}}
	}
	other := func(at int64) history.Event { return history.Event{Time: at * ms, Process: history.Resource} }
	two := []history.Event{acquired(0, "w1", "k"), acquired(10, "w2", "k")}
	for _, c := range []struct {
		name   string
		events []history.Event
		want   bool
	}{
		{"one after the other", []history.Event{acquired(0, "w1", "k"), released(10, "w1", "k"), acquired(20, "w2", "k"), other(900)}, false},
		{"both", []history.Event{acquired(0, "w1", "k"), acquired(20, "w2", "k"), other(400)}, true},
		{"a release that arrives late", []history.Event{acquired(0, "w1", "k"), acquired(20, "w2", "k"), released(19, "w1", "k"), other(900)}, false},
		{"until one releases", []history.Event{acquired(0, "w1", "k"), acquired(20, "w2", "k"), released(330, "w1", "k")}, true},
		{"until one releases soon", []history.Event{acquired(0, "w1", "k"), acquired(20, "w2", "k"), released(310, "w1", "k"), other(900)}, false},
		{"not yet for long", []history.Event{acquired(0, "w1", "k"), acquired(20, "w2", "k"), other(300)}, false},
		{"two keys", []history.Event{acquired(0, "w1", "k"), acquired(20, "w2", "l"), other(900)}, false},
		{"the first is dead", []history.Event{acquired(0, "w1", "k"), killed(10, "w1"), acquired(20, "w2", "k"), other(900)}, false},
		{"dead, with a last word", []history.Event{killed(10, "w1"), acquired(9, "w1", "k"), acquired(20, "w2", "k"), other(900)}, false},
		{"a third is dead", []history.Event{acquired(0, "w1", "k"), killed(10, "w3"), acquired(20, "w2", "k"), other(900)}, true},
		{"nothing", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) { watched(t, 0, c.events, c.want) })
	}
	t.Run("two, as a semaphore permits", func(t *testing.T) { watched(t, 2, append(two, other(900)), false) })
	t.Run("a third", func(t *testing.T) { watched(t, 2, append(two, acquired(20, "w3", "k"), other(400)), true) })
	t.Run("a third, after one of two", func(t *testing.T) {
		watched(t, 2, append(two, released(15, "w1", "k"), acquired(20, "w3", "k"), other(900)), false)
	})
}

func watched(t *testing.T, permits int, events []history.Event, want bool) {
	w := newOverlapWatch(permits)
	for _, e := range events {
		w.Observe(e)
	}
	if got := Closed(w.seen); got != want {
		t.Errorf("seen: %v, want %v", got, want)
	}
}
