package runs

import (
	"context"
	"errors"
	"testing"
	"time"

	"lockcheck/history"
)

// TestCanary: only a grant after the last fault shows that the lock is granted again.
func TestCanary(t *testing.T) {
	recovery := history.Event{F: history.Phase, Note: history.PhaseRecovery}
	asks := history.Event{F: history.Acquire, Type: history.Invoke}
	asks.Process = "w1"
	granted, refused := asks, asks
	granted.Type, refused.Type = history.OK, history.Fail
	killed := history.Event{Fault: &history.Fault{Kind: history.Kill, Stage: history.Applied, Targets: []string{"w1"}}}
	for _, c := range []struct {
		name   string
		events []history.Event
		served bool
	}{
		{"nobody asks any more", []history.Event{asks, granted, recovery}, true},
		{"granted again", []history.Event{recovery, asks, granted}, true},
		{"granted before", []history.Event{asks, granted, recovery, asks}, false},
		{"waiting since before", []history.Event{asks, recovery}, false},
		{"waiting since before, then granted", []history.Event{asks, recovery, granted}, true},
		{"waiting since before, and dead", []history.Event{asks, killed, recovery}, true},
		{"refused", []history.Event{recovery, asks, refused}, false},
		{"refused, then granted", []history.Event{recovery, asks, refused, asks, granted}, true},
	} {
		bird := newCanary(nil, 0)
		for _, e := range c.events {
			bird.Observe(e)
		}
		if err := bird.served(); (err == nil) != c.served {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestUntil: until returns as soon as the answer is no error, and returns the last error when the time is
// over.
func TestUntil(t *testing.T) {
	refusal, asked := errors.New("not yet"), 0
	if err := until(t.Context(), func() error {
		if asked++; asked < 3 {
			return refusal
		}
		return nil
	}); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := until(over, func() error { return refusal }); !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
}

// TestEveryone: all live workers were granted the lock, each at least a lease after the last fault.
func TestEveryone(t *testing.T) {
	granted := func(ms int64, worker string) history.Event {
		return history.Event{Time: ms * int64(time.Millisecond), Process: worker, Type: history.OK, F: history.Acquire}
	}
	recovery := history.Event{Time: 100 * int64(time.Millisecond), F: history.Phase, Note: history.PhaseRecovery}
	killed := history.Event{Fault: &history.Fault{Kind: history.Kill, Stage: history.Applied, Targets: []string{"w2"}}}
	for _, c := range []struct {
		name   string
		events []history.Event
		want   bool
	}{
		{"nobody", []history.Event{recovery}, false},
		{"both", []history.Event{recovery, granted(400, "w1"), granted(500, "w2")}, true},
		{"one", []history.Event{recovery, granted(400, "w1"), granted(500, "w1")}, false},
		{"one before the lease was over", []history.Event{recovery, granted(399, "w1"), granted(500, "w2")}, false},
		{"one before the recovery", []history.Event{granted(500, "w1"), recovery, granted(600, "w2")}, false},
		{"all that live", []history.Event{killed, recovery, granted(400, "w1")}, true},
	} {
		bird := newCanary([]string{"w1", "w2"}, 300*time.Millisecond)
		for _, e := range c.events {
			bird.Observe(e)
		}
		if got := Closed(bird.everyone); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
