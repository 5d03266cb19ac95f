package guide

import (
	"slices"
	"testing"
	"time"

	"lockcheck/checker"
)

// TestTooShort: a holder that is cut off must work on until the lock passes on, or the run cannot
// tell; whoever is stopped or aimed at can.
func TestTooShort(t *testing.T) {
	const usual = "lockcheck test --lock redis"
	aimed := func(r *Run) { r.Experiment = "claim/x" }
	endless := func(r *Run) { r.Lease = 0 }
	for _, c := range []struct {
		name, lock, fault, line string
		change                  func(*Run)
		short                   bool
	}{
		{name: "sections of the usual length", lock: "redis", fault: "partition:holder", line: usual, short: true},
		{name: "longer than the lease", lock: "redis", fault: "partition:holder", line: usual + " --section 3001ms"},
		{name: "as long", lock: "redis", fault: "partition:holder", line: usual + " --section 3s", short: true},
		{name: "some are longer", lock: "redis", fault: "partition:holder", line: usual + " --section=20ms-4s --seed 1"},
		{name: "an option without its value", lock: "redis", fault: "partition:holder", line: usual + " --section", short: true},
		{name: "an experiment", lock: "redis", fault: "partition:holder", line: usual, change: aimed},
		{name: "one direction", lock: "redis", fault: "one-way:holder", line: usual, short: true},
		{name: "stopped", lock: "redis", fault: "pause:holder", line: usual},
		{name: "its machine is dead", lock: "redis", fault: "crash:holder", line: usual},
		{name: "servers cut off", lock: "redis", fault: "partition:one server", line: usual, short: true},
		{name: "servers stopped", lock: "redis", fault: "pause:one server", line: usual, short: true},
		{name: "servers killed", lock: "redis", fault: "kill:one server", line: usual, short: true},
		{name: "while work goes on", lock: "redis", fault: "kill:one server", line: usual + " --section 3001ms"},
		{name: "a clock, which ends a lease at once", lock: "redis", fault: "clock:one server", line: usual},
		{name: "servers that keep a lock for good", lock: "redis-noexpiry", fault: "kill:one server", line: usual, change: endless, short: true},
		{name: "while somebody holds it for long", lock: "redis-noexpiry", fault: "kill:one server", line: usual + " --section 1s", change: endless},
		{name: "a server aimed at", lock: "redis", fault: "kill:one server", line: usual, change: aimed},
		{name: "longer than the lease, not than the delay", lock: "consul", fault: "partition:holder", line: usual + " --section 20s", short: true},
		{name: "longer than both", lock: "consul", fault: "partition:holder", line: usual + " --section 22s"},
		{name: "a connection lasts longer", lock: "mariadb", fault: "partition:holder", line: usual + " --section 5s", change: endless, short: true},
		{name: "longer than a silent connection", lock: "mariadb", fault: "partition:holder", line: usual + " --section 6s", change: endless},
		{name: "a lock that never ends", lock: "redis-noexpiry", fault: "partition:holder", line: usual, change: endless},
		{name: "a lock whose rule is not known", lock: "mine", fault: "partition:holder", line: usual, short: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := held("1", c.fault)
			run.Lock, run.Lease, run.Line = c.lock, 3*time.Second, c.line
			if c.change != nil {
				c.change(&run)
			}
			if got := run.tooShort(c.fault); got != c.short {
				t.Errorf("%s under %s, %q: too short %v", c.lock, c.fault, c.line, got)
			}
		})
	}
}

// TestLate: a lock is late by its own rule only, and only where a clock was moved; a busy machine
// is no reason to accuse it.
func TestLate(t *testing.T) {
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
		{name: "a shorter delay", lock: "consul", after: 13001 * ms, change: func(r *Run) { r.Setup = []string{"lock delay 0s"} }, late: true},
		{name: "a longer one, by its flag", lock: "consul", after: 60000 * ms, change: func(r *Run) { r.Setup = []string{"--lock-delay=50s"} }},
		{name: "a delay that this lock has not", lock: "redis", after: 4501 * ms, change: func(r *Run) { r.Setup = []string{"lock delay 50s"} }, late: true},
		{name: "a session of ZooKeeper", lock: "zookeeper", after: 6000 * ms},
		{name: "a connection", lock: "postgres-session", after: 6000 * ms, change: func(r *Run) { r.Lease = 0 }},
		{name: "a lock whose rule is not known", lock: "mine", after: time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := passedOn(c.after, held("1", "kill:holder", clock+backwards))
			run.Lock = c.lock
			if c.change != nil {
				c.change(&run)
			}
			if got := run.late(); got != c.late {
				t.Errorf("%s after %s: late %v", c.lock, c.after, got)
			}
		})
	}
}

// TestLongWork: it is the work that was asked to be longer than a lease which nobody renews; work
// that a pause made longer is not.
func TestLongWork(t *testing.T) {
	for _, c := range []struct {
		name, line string
		setup      []string
		outlasted  int64
		long       bool
	}{
		{name: "renewed", line: "lockcheck test --lock redis --renew --section 3s-4s"},
		{name: "never renewed", line: "lockcheck test --lock redis --section 3s-4s", outlasted: 1, long: true},
		{name: "some of it", line: "lockcheck test --lock redis --section 1s-4s", outlasted: 1, long: true},
		{name: "renewals that failed", line: "lockcheck test --renew --section 3s-4s", setup: []string{"--renew=true"}, outlasted: 1},
		{name: "in a comparison", line: "lockcheck test --renew --section 3s-4s", setup: []string{"renewed"}, outlasted: 1},
		{name: "usual work", line: "lockcheck test --lock redis", outlasted: 1},
	} {
		run := Run{Lock: "redis", Lease: 2 * time.Second, Line: c.line, Setup: c.setup, Causes: map[string]int64{checker.CauseCutOff: 1, checker.CauseOutlasted: c.outlasted}}
		if got := run.longWork(); got != c.long {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestSetup: what a run did otherwise than usual, and no more.
func TestSetup(t *testing.T) {
	for _, c := range []struct {
		name, lock, line string
		lease            time.Duration
		setup, want      []string
	}{
		{name: "as usual", lock: "redis", lease: 2 * time.Second, line: "lockcheck test"},
		{name: "another lease", lock: "redis", lease: 20 * time.Second, line: "lockcheck repro x", want: []string{"lease 20s"}},
		{name: "long work", lock: "redis", lease: 2 * time.Second, line: "lockcheck test --section 3s-4s", want: []string{"sections of up to 4s"}},
		{name: "the usual delay", lock: "consul", lease: 2 * time.Second, setup: []string{"lock delay 15s"}},
		{name: "none", lock: "consul", lease: 2 * time.Second, setup: []string{"lock delay 0s", "renewed"}, want: []string{"lock delay 0s", "renewed"}},
		{name: "a delay that the lock has not", lock: "redis", lease: 2 * time.Second, setup: []string{"lock delay 0s", "5 servers"}, want: []string{"5 servers"}},
		{name: "a lock that is not known", lock: "mine", lease: time.Minute, line: "lockcheck test"},
	} {
		if got := (Run{Lock: c.lock, Lease: c.lease, Line: c.line, Setup: c.setup}).setup(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
