package runs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
	"lockcheck/nemesis"
)

// TestKillWorkers kills holders of the embedded lock. That does not fail the run, the lock is free again
// after the lease, and the last two workers are spared.
func TestKillWorkers(t *testing.T) {
	t.Parallel()
	outcome := verdictIs(t, checker.Valid, options(t, func(o *Options) {
		o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
			Fault: "kill", Target: "holder", Every: nemesis.Span{Plus: 100 * time.Millisecond}, Times: 4,
		}}}
		o.EndEarly, o.TimeLimit = true, 30*time.Second
		o.Section.Min, o.Section.Max = 200*time.Millisecond, 200*time.Millisecond
	}))
	killed, spared := make(map[string]int64), false
	for _, e := range outcome.History.Events {
		switch {
		case e.Fault == nil:
			if at := killed[e.Process]; at != 0 && e.Time > at {
				t.Errorf("%s did something %s after it was killed", e.Process, time.Duration(e.Time-at))
			}
		case e.Fault.Stage == history.Proven:
			killed[e.Fault.Targets[0]] = e.Time
		case e.Fault.Stage == history.Skipped:
			spared = spared || strings.Contains(e.Fault.Evidence, "too few workers")
		}
	}
	if len(killed) != 3 || !spared {
		t.Errorf("killed %v, spared %v: want three of five, and two spared", killed, spared)
	}
	if s := outcome.Results.Finding(checker.Liveness).Summary; !strings.Contains(s, "killed") {
		t.Errorf("liveness: %s", s)
	}
}

// TestKillServer kills a server on Docker. An embedded server cannot be killed.
func TestKillServer(t *testing.T) {
	t.Parallel()
	var unsupported *nemesis.UnsupportedError
	if _, err := prepare(options(t, func(o *Options) { o.Nemesis = "kill" })); !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "cannot be started again") {
		t.Errorf("embedded: %v", err)
	}
	clustertest.Engine(t)
	outcome := verdictIs(t, checker.Valid, options(t, func(o *Options) {
		o.Lock, o.TTL, o.Nemesis, o.TimeLimit = "redis-aof", time.Second, "kill", 12*time.Second
	}))
	if len(outcome.Results.Faults) == 0 {
		t.Error("nobody was killed")
	}
	if err := clustertest.NothingLeft(outcome.History.Header.Run); err != nil {
		t.Error(err)
	}
}
