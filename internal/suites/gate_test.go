package suites

import (
	"context"
	"errors"
	"testing"
)

// TestGate: after a delay the gate admits fewer jobs, and after enough jobs without a delay more again. A job
// that runs alone is always admitted, however many places it takes.
func TestGate(t *testing.T) {
	g := NewGate(3)
	limits := func(want int64, delays ...bool) {
		t.Helper()
		for _, delayed := range delays {
			g.adapt(delayed)
		}
		if g.limit != want {
			t.Errorf("limit %d, want %d", g.limit, want)
		}
	}
	limits(3, false, false, false, false, false, false, false, false)
	limits(2, true)
	limits(1, true, true, true)
	if err := g.enter(t.Context(), 3); err != nil {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	waiting := make(chan error)
	go func() { waiting <- g.enter(cancelled, 1) }()
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("entered next to another: %v", err)
	}
	go func() { waiting <- g.enter(t.Context(), 1) }()
	g.leave(3)
	if err := <-waiting; err != nil || g.used != 1 {
		t.Errorf("%v, %d places used", err, g.used)
	}
	limits(1, false, true, false)
	limits(2, false)
	limits(3, false, false, false, false)
}
