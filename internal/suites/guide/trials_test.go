package guide

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/stats"
)

// trial is the trial with number n of clock-stepped on redis.
func trial(n int, change func(*Run)) Run {
	r := Run{
		ID: fmt.Sprintf("t%d", n), When: fmt.Sprintf("2026-01-02T03:04:%02dZ", n), Lock: "redis", Guard: "none", Workload: "set", Lease: time.Second,
		Experiment: attackPrefix + "clock-stepped", Faults: []Fault{{Name: "clock:one server", Asked: 1, Met: 1}},
		Versions: map[string]string{"redis": "7.0.15"}, Verdict: checker.Valid, Updates: &Updates{Acknowledged: 10, Over: "faults"},
		Failover: &Failover{Holders: 1, Longest: time.Duration(n) * time.Millisecond},
	}
	change(&r)
	return r
}

func held(*Run) {}

func lostByClock(r *Run) {
	r.Verdict, r.Violated, r.Causes, r.DoubleGrants = checker.Violation, []checker.Property{checker.NoLostUpdate}, map[string]int64{checker.CauseClock: 2}, 1
	r.Updates.Lost, r.Updates.Units = 3, units{{K: 3, N: 10}}
}

func stuck(r *Run) {
	r.Verdict, r.Violated = checker.Violation, []checker.Property{checker.Liveness}
}

func undecided(r *Run) { r.Verdict, r.Faults[0].Met = checker.Undecided, 0 }

// TestSumTrials: a cell has an entry for each way in which its trials ended, whatever their order.
func TestSumTrials(t *testing.T) {
	trials := []Run{
		trial(1, held), trial(2, stuck), trial(3, lostByClock), trial(4, held), trial(5, lostByClock), trial(6, undecided),
	}
	for range 3 {
		slices.Reverse(trials)
		sums := sumTrials("cell", slices.Clone(trials)).With(nil)
		if len(sums) != 4 {
			t.Fatalf("%d entries: %v", len(sums), sums)
		}
		cell := sums.Cell("redis", "clock:one server", "none")
		g, broken := cell.Worst()
		if !broken || g.Class != ByLock || g.Broke != 2 || g.Less != 1 || g.N != 5 || cell.Held != 2 || numberOf(cell.Silent) != 1 {
			t.Errorf("%+v of %+v", g, cell)
		}
		if g.Pool.Acknowledged != 50 || g.Pool.Lost != 6 {
			t.Errorf("%d of %d lost", g.Pool.Lost, g.Pool.Acknowledged)
		}
		for _, s := range sums {
			if s.cellID() != "cell" {
				t.Errorf("the entry %s does not have the name of its cell", s.ID)
			}
			if s.Class() == ByLock && s.Breaks() && (s.Of != 2 || s.Met != 2 || s.Causes[checker.CauseClock] != 4 || s.DoubleGrants != 2 ||
				s.Faults[0] != (Fault{"clock:one server", 2, 2}) || s.Failover.Holders != 2 || s.Failover.Longest != 5*time.Millisecond ||
				!slices.Contains(s.Updates.Units, stats.Count{K: 3, N: 10})) {
				t.Errorf("%+v", s)
			}
		}
	}
	if trials[0].Updates.Lost+trials[1].Updates.Lost+trials[2].Updates.Lost > 3 || len(trials[0].Faults) != 1 || trials[0].Faults[0].Asked != 1 {
		t.Error("the trials were changed")
	}
}

// TestSumReplaced: when a comparison is continued, its sums replace those that were known.
func TestSumReplaced(t *testing.T) {
	before := sumTrials("cell", []Run{trial(1, held), trial(2, stuck)})
	after := sumTrials("cell", []Run{trial(1, held), trial(2, held), trial(3, held)})
	for _, all := range []Evidence{before.With(after), after.With(before)} { // trial 2 was judged again
		if cell := all.Cell("redis", "clock:one server", "none"); cell.State != Held || cell.Held != 3 {
			t.Errorf("%s", cell.Text())
		}
	}
}

// TestSumsBehindGuard: of trials that a guard kept from losing anything, only those in which two workers held the
// lock break it without the guard.
func TestSumsBehindGuard(t *testing.T) {
	fenced := func(r *Run) { r.Guard = "fence" }
	trials := []Run{trial(1, fenced), trial(2, fenced), trial(3, func(r *Run) { fenced(r); r.UsesAfterExpiry = 2 })}
	cell := sumTrials("cell", trials).Cell("redis", "clock:one server", "none")
	if g, broken := cell.Worst(); !broken || g.Broke != 1 || g.N != 1 {
		t.Errorf("%+v", cell)
	}
}

// TestRandomTrials: a trial under random faults is as weak a proof as any such run.
func TestRandomTrials(t *testing.T) {
	random := func(r *Run) {
		r.Experiment, r.Faults, r.Section = attackPrefix+"random", []Fault{{"partition:holder", 1, 1}}, 100*time.Millisecond
	}
	cell := sumTrials("cell", []Run{trial(1, random), trial(2, random)}).Cell("redis", "partition:holder", "none")
	if cell.State != TooShort || numberOf(cell.Short) != 2 {
		t.Errorf("%s: %+v", cell.Text(), cell)
	}
}
