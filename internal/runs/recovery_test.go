package runs

import (
	"context"
	"errors"
	"testing"

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
		bird := newCanary()
		for _, e := range c.events {
			bird.Observe(e)
		}
		if err := bird.served(); (err == nil) != c.served {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestUntil returns what was asked for as soon as it is there, and the last refusal when
// there is no time left.
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
