package checker

import (
	"fmt"
	"slices"
	"testing"

	"lockcheck/history"
)

// unseen lists what no entry of the corpus shows, because no recorded real run has shown it. Hand-written
// histories show it (testdata/cases, and the tests of each checker).
var unseen = []string{
	"class " + ClassDuplicated,
	"class " + ClassPhantom,
	"verdict of " + string(FaultEvidence) + ": " + string(Broken),
}

// TestCorpusCovers checks that the corpus shows everything that it must show. So nobody can empty it
// unnoticed, and a new property or cause needs a run that shows it.
func TestCorpusCovers(t *testing.T) {
	shown := make(map[string][]string) // maps each shown item to the entries that show it
	for _, e := range judgedCorpus(t) {
		for what := range e.shows() {
			shown[what] = append(shown[what], e.name)
		}
	}
	for _, what := range covered() {
		switch entries, is := shown[what], slices.Contains(unseen, what); {
		case len(entries) == 0 && !is:
			t.Errorf("no entry shows %s", what)
		case len(entries) > 0 && is:
			t.Errorf("%s shows %s: take it off the list of what is unseen, and out of the README", entries[0], what)
		}
	}
}

// covered lists what the corpus must show. It includes unseen, which the test exempts.
func covered() (all []string) {
	add := func(format string, names ...string) {
		for _, name := range names {
			all = append(all, fmt.Sprintf(format, name))
		}
	}
	add("lock %s",
		"none", "memory", "file",
		"redis", "redis-aof", "redis-failover", "redis-noexpiry", "redis-unsafe-release", "redislock", "redlock", "redsync", "valkey",
		"etcd", "etcd-header-revision", "etcd-v3lock", "etcd-v3lock-retry",
		"consul", "zookeeper", "zookeeper-herd", "zookeeper-lib",
		"postgres-session", "postgres-xact", "postgres-row", "postgres-lease", "postgres-pgbouncer", "mariadb")
	add("workload %s", history.WorkloadSet, history.WorkloadCounter, history.WorkloadMutex, history.WorkloadReadWrite)
	add("guard %s", history.GuardNone, history.GuardFence, history.GuardFenceWrites, history.GuardAsk, history.GuardDatabase, history.GuardVersions)
	add("fault %s",
		"pause of workers", "pause of servers", "kill of workers", "kill of servers", "clock of servers",
		"partition of workers", "partition of servers", "packet-delay of workers", "delay-write of workers", "that missed")
	add("%s",
		"a run that was interrupted", "a history that was cut off", "an import", "a semaphore", "a reentrant lock",
		"a violation in a run that failed", "a required property besides the usual ones", "a tolerated violation", "tokens", "sessions", "wake-ups",
		"a lease that is renewed", "a loss that the service notified of", "a loss found at the deadline", "a loss found at release",
		"several keys", "a listing that was cut short", "an observed service", "a write that was refused")
	add("run is %s", string(Valid), string(Violation), string(Undecided), string(Broken))
	for _, p := range Properties() {
		for _, v := range []Verdict{Valid, Violation, Undecided, Broken, NotApplicable} {
			if possible(p, v) {
				add("verdict of %s", fmt.Sprintf("%s: %s", p, v))
			}
		}
	}
	for _, c := range Causes() {
		add("cause %s", c.Name)
	}
	add("class %s", DoubleGrant, UseAfterExpiry, ClassLost, ClassDuplicated, ClassPhantom)
	add("earlier holder was %s", string(HolderHealthy), string(HolderPaused), string(HolderCutOff))
	return all
}

// possible says whether a property can have a verdict.
func possible(p Property, v Verdict) bool {
	switch p {
	case FaultEvidence:
		return v != Violation
	case Assumptions:
		return v != Violation && v != NotApplicable
	case NoWrongRenewal:
		return v != Broken && v != Undecided
	case NoUntrueLoss, NoIdleLock, PromptFailover: // of runs that were made to judge them
		return false
	case MutualExclusion, NoExpiredGrant, RepeatableRead, Linearizability, Liveness:
		return v != Broken && v != NotApplicable
	}
	return v != Broken
}

func (e judgedEntry) shows() map[string]bool {
	all := make(map[string]bool)
	show := func(is bool, format string, args ...any) {
		if is {
			all[fmt.Sprintf(format, args...)] = true
		}
	}
	h, r := e.header, e.results
	ours := h.Imported == ""
	show(ours, "lock %s", h.Lock)
	show(ours, "workload %s", h.Workload)
	show(ours, "guard %s", h.Guard)
	show(!ours, "an import")
	show(r.Interrupted, "a run that was interrupted")
	show(e.cutOff, "a history that was cut off")
	show(h.Permits > 1, "a semaphore")
	show(h.Reentrant > 1, "a reentrant lock")
	show(r.Verdict == Violation && r.Finding(Assumptions).Verdict == Broken, "a violation in a run that failed")
	show(len(h.Require) > 0, "a required property besides the usual ones")
	show(h.Tokens, "tokens")
	show(h.Session, "sessions")
	show(r.Measures.Wakes > 0, "wake-ups")
	show(r.LossNotifications.AtRelease > 0, "a loss found at release")
	show(r.Fence.RefusedWrites > 0, "a write that was refused")
	show(true, "run is %s", r.Verdict)
	for _, f := range r.Faults {
		workers, servers := workersAndServers(h, f)
		show(f.Counts() && workers, "fault %s of workers", f.Kind)
		show(f.Counts() && servers, "fault %s of servers", f.Kind)
		show(f.Proven && !f.Exercised, "fault that missed")
	}
	keys := make(map[string]bool)
	for i := range e.events {
		event := &e.events[i]
		if event.F == history.Acquire {
			keys[event.Key] = true
		}
		show(event.F == history.Renew && event.Type == history.OK, "a lease that is renewed")
		show(event.F == history.Lost && event.Error == history.ByService, "a loss that the service notified of")
		show(event.F == history.Lost && event.Error == history.ByDeadline, "a loss found at the deadline")
		show(event.F == history.Claimed, "an observed service")
	}
	show(len(keys) > 1, "several keys")
	for _, f := range r.Findings {
		show(true, "verdict of %s: %s", f.Property, f.Verdict)
		show(f.Tolerated, "a tolerated violation")
		show(len(f.Violations) < f.Total && len(f.Violations) == MaxListed, "a listing that was cut short")
		for cause := range f.Causes {
			show(true, "cause %s", cause)
		}
		for _, v := range f.Violations {
			show(true, "class %s", v.Class)
		}
	}
	for _, state := range []HolderState{HolderHealthy, HolderPaused, HolderCutOff} {
		n, _ := r.Overlaps.earlier(state)
		show(n > 0, "earlier holder was %s", state)
	}
	return all
}
