package runs

import (
	"testing"
	"time"

	"lockcheck/history"
	"lockcheck/workloads"
)

// TestExitOnLoss: a worker that learns that its lock is lost ends, and works on as a new process, as
// often as that happens. Here its lease is over before its section, each time.
func TestExitOnLoss(t *testing.T) {
	t.Parallel()
	outcome := runTest(t, options(t, func(o *Options) {
		o.Nemesis, o.Concurrency, o.TimeLimit = "none", 1, 6*time.Second
		o.TTL, o.Section = 100*time.Millisecond, workloads.Range{Min: 150 * time.Millisecond, Max: 150 * time.Millisecond}
		o.CheckBeforeWrite, o.ExitOnLoss = true, true
	}))
	losses := 0
	for _, e := range outcome.History.Events {
		switch {
		case e.F == history.Lost:
			losses++
		case e.F == history.Release || e.F == history.Write:
			t.Errorf("it went on after a loss: %+v", e)
		}
	}
	if losses < 3 {
		t.Errorf("the lock was lost %d times, want more", losses)
	}
}

// TestExitOnLossOfClient: a client that is a program of the user's own is not ended.
func TestExitOnLossOfClient(t *testing.T) {
	o := options(t, func(o *Options) { o.Lock, o.TTL, o.ExitOnLoss = "../../examples/python-embedded/lock.yaml", 0, true })
	if _, err := OutlineOf(o); err == nil {
		t.Error("it is accepted")
	}
}
