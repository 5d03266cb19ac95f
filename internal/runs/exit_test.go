package runs

import (
	"errors"
	"testing"
	"time"

	"lockcheck/history"
	"lockcheck/workloads"
)

// TestExitOnLoss: a worker that learns of the loss of its lock exits and works on as a new process, each
// time. Here its lease ends in the second of two sections, each time.
func TestExitOnLoss(t *testing.T) {
	t.Parallel()
	outcome := runTest(t, options(t, func(o *Options) {
		o.Nemesis, o.Concurrency, o.TimeLimit, o.Updates = "none", 1, 8*time.Second, 2
		o.TTL, o.Section = 400*time.Millisecond, workloads.Range{Min: 250 * time.Millisecond, Max: 250 * time.Millisecond}
		o.CheckBeforeWrite, o.ExitOnLoss = true, true
	}))
	lost, elements := make(map[string]bool), make(map[int64]bool)
	for _, e := range outcome.History.Events {
		switch {
		case e.F == history.Lost:
			lost[e.Grant] = true
		case e.F == history.Release && lost[e.Grant]:
			t.Errorf("it gave back what was lost: %+v", e)
		case e.F == history.Write && e.Type == history.Invoke:
			if elements[e.Element] {
				t.Errorf("element %d is written twice", e.Element)
			}
			elements[e.Element] = true
		}
	}
	if len(lost) < 3 || len(elements) < 2 {
		t.Errorf("the lock was lost %d times after %d writes, want more", len(lost), len(elements))
	}
}

// TestExitOnLossAccepted: exiting on loss is refused for a client that is a user's program, and for a worker
// that never learns of a loss.
func TestExitOnLossAccepted(t *testing.T) {
	const own = "../../examples/python-embedded/lock.yaml"
	exits := workloads.Use{ExitOnLoss: true}
	for _, c := range []struct {
		name, lock string
		use        workloads.Use
		workers    []workloads.Use
		ok         bool
	}{
		{"own client", own, exits, nil, false},
		{"own client, without it", own, workloads.Use{}, nil, true},
		{"a worker of an own client", own, workloads.Use{}, []workloads.Use{exits}, false},
		{"never notified", "file", exits, nil, false},
		{"not renewed", "redis", exits, nil, false},
		{"renewed", "redis", workloads.Use{ExitOnLoss: true, Renew: true}, nil, true},
		{"renewed by a worker that does not exit", "redis", workloads.Use{}, []workloads.Use{exits, {Renew: true}}, false},
		{"deadline looked at", "redis", workloads.Use{ExitOnLoss: true, CheckBeforeWrite: true}, nil, true},
		{"a session has no deadline", "etcd", workloads.Use{ExitOnLoss: true, CheckBeforeWrite: true}, nil, false},
		{"a session that is watched", "etcd+watch-session", exits, nil, true},
		{"notified", "k8s-lease", exits, nil, true},
	} {
		o := options(t, func(o *Options) {
			o.Lock, o.Nemesis, o.TimeLimit, o.Use, o.Workers = c.lock, "none", 0, c.use, c.workers
		})
		_, err := OutlineOf(o)
		var usage *UsageError
		if (err == nil) != c.ok || err != nil && !errors.As(err, &usage) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
