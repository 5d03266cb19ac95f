package guide

import (
	"slices"
	"testing"
	"time"

	"lockcheck/checker"
)

// TestTooShort: a run with a holder that is cut off is conclusive only if the holder works until the lock
// passes on. Pauses and aimed experiments are always conclusive.
func TestTooShort(t *testing.T) {
	const s = time.Second
	aimed := func(r *Run) { r.Experiment = "claim/x" }
	endless := func(r *Run) { r.Lease = 0 }
	for _, c := range []struct {
		name, lock, fault string
		section           time.Duration // 0 for the default length
		change            func(*Run)
		short             bool
	}{
		{name: "sections of the usual length", lock: "redis", fault: "partition:holder", short: true},
		{name: "longer than the lease", lock: "redis", fault: "partition:holder", section: 3001 * time.Millisecond},
		{name: "as long", lock: "redis", fault: "partition:holder", section: 3 * s, short: true},
		{name: "an experiment", lock: "redis", fault: "partition:holder", change: aimed},
		{name: "one direction", lock: "redis", fault: "one-way:holder", short: true},
		{name: "stopped", lock: "redis", fault: "pause:holder"},
		{name: "its machine is dead", lock: "redis", fault: "crash:holder"},
		{name: "servers cut off", lock: "redis", fault: "partition:one server", short: true},
		{name: "servers stopped", lock: "redis", fault: "pause:one server", short: true},
		{name: "servers killed", lock: "redis", fault: "kill:one server", short: true},
		{name: "while work goes on", lock: "redis", fault: "kill:one server", section: 3001 * time.Millisecond},
		{name: "a clock, which ends a lease at once", lock: "redis", fault: "clock:one server"},
		{name: "servers that keep a lock for good", lock: "redis-noexpiry", fault: "kill:one server", change: endless, short: true},
		{name: "while somebody holds it for long", lock: "redis-noexpiry", fault: "kill:one server", section: 1 * s, change: endless},
		{name: "a server aimed at", lock: "redis", fault: "kill:one server", change: aimed},
		{name: "longer than the lease, not than the delay", lock: "consul", fault: "partition:holder", section: 20 * s, short: true},
		{name: "longer than both", lock: "consul", fault: "partition:holder", section: 22 * s},
		{name: "a connection lasts longer", lock: "mariadb", fault: "partition:holder", section: 5 * s, change: endless, short: true},
		{name: "longer than a silent connection", lock: "mariadb", fault: "partition:holder", section: 6 * s, change: endless},
		{name: "a lock that never ends", lock: "redis-noexpiry", fault: "partition:holder", change: endless},
		{name: "a lock whose rule is not known", lock: "mine", fault: "partition:holder", short: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := heldRun("1", c.fault)
			run.Lock, run.Lease, run.Section = c.lock, 3*s, c.section
			if c.change != nil {
				c.change(&run)
			}
			if got := run.tooShort(c.fault); got != c.short {
				t.Errorf("%s under %s, %s: too short %v", c.lock, c.fault, c.section, got)
			}
		})
	}
}

// TestLate: a lock is late only by its own rule and only if a clock moved. A busy machine is no reason to
// accuse it.
func TestLate(t *testing.T) {
	longDelay := 50 * time.Second
	const ms = time.Millisecond
	for _, c := range []struct {
		name, lock string
		after      time.Duration
		change     func(*Run)
		late       bool
	}{
		{name: "in time", lock: "redis", after: 3000 * ms},
		{name: "a holder was never silent", lock: "redis", change: func(r *Run) { r.Failover = nil }},
		{name: "within what liveness allows", lock: "redis", after: 4500 * ms},
		{name: "beyond it", lock: "redis", after: 4501 * ms, late: true},
		{name: "another version of its servers", lock: "etcd-v3lock@3.4.3", after: 7001 * ms, late: true},
		{name: "no clock was moved", lock: "redis", after: time.Minute, change: func(r *Run) { r.Faults = r.Faults[:1] }},
		{name: "no clock is proven to have been moved", lock: "redis", after: time.Minute, change: func(r *Run) { r.Faults[1].Met = 0 }},
		{name: "worse happened", lock: "redis", after: time.Minute, change: func(r *Run) { r.Verdict = checker.Violation }},
		{name: "twice the lease, the delay and the grace", lock: "consul", after: 28000 * ms},
		{name: "longer", lock: "consul", after: 28001 * ms, late: true},
		{name: "a shorter delay", lock: "consul", after: 13001 * ms, change: func(r *Run) { r.LockDelay = new(time.Duration) }, late: true},
		{name: "a longer one, by its flag", lock: "consul", after: 60000 * ms, change: func(r *Run) { r.LockDelay = &longDelay }},
		{name: "a delay that this lock has not", lock: "redis", after: 4501 * ms, change: func(r *Run) { r.LockDelay = &longDelay }, late: true},
		{name: "a session of ZooKeeper", lock: "zookeeper", after: 6000 * ms},
		{name: "a connection", lock: "postgres-session", after: 6000 * ms, change: func(r *Run) { r.Lease = 0 }},
		{name: "a lock whose rule is not known", lock: "mine", after: time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := passedOn(c.after, heldRun("1", "kill:holder", clock+backwards))
			run.Lock = c.lock
			if c.change != nil {
				c.change(&run)
			}
			if got := run.passedOnLate(); got != c.late {
				t.Errorf("%s after %s: late %v", c.lock, c.after, got)
			}
		})
	}
}

// TestLongWork: work counts as long if the run asked for it to outlast an unrenewed lease. Work that a pause
// made longer does not count.
func TestLongWork(t *testing.T) {
	const long = 4 * time.Second
	for _, c := range []struct {
		name      string
		section   time.Duration
		renewed   bool
		outlasted int64
		long      bool
	}{
		{name: "renewed", section: long, renewed: true},
		{name: "never renewed", section: long, outlasted: 1, long: true},
		{name: "renewals that failed", section: long, renewed: true, outlasted: 1},
		{name: "usual work", outlasted: 1},
	} {
		run := Run{Lock: "redis", Lease: 2 * time.Second, Section: c.section, Renewed: c.renewed, Causes: map[string]int64{checker.CauseCutOff: 1, checker.CauseOutlasted: c.outlasted}}
		if got := run.longWork(); got != c.long {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestSetup: the setup lists what was unusual in a run, and nothing else.
func TestSetup(t *testing.T) {
	delay := func(d time.Duration) *time.Duration { return &d }
	for _, c := range []struct {
		name string
		run  Run
		want []string
	}{
		{"as usual", Run{Lock: "redis", Lease: 2 * time.Second}, nil},
		{"another lease", Run{Lock: "redis", Lease: 20 * time.Second}, []string{"lease 20s"}},
		{"long work", Run{Lock: "redis", Lease: 2 * time.Second, Section: 4 * time.Second}, []string{"sections of up to 4s"}},
		{"the usual delay", Run{Lock: "consul", Lease: 2 * time.Second, LockDelay: delay(15 * time.Second)}, nil},
		{"no delay", Run{Lock: "consul", Lease: 2 * time.Second, LockDelay: delay(0), Setup: []string{"renewed"}}, []string{"renewed", "lock delay 0s"}},
		{"a delay that the lock has not", Run{Lock: "redis", Lease: 2 * time.Second, LockDelay: delay(0), Setup: []string{"5 servers"}}, []string{"5 servers"}},
		{"a lock that is not known", Run{Lock: "mine", Lease: time.Minute}, nil},
	} {
		if got := c.run.setup(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
