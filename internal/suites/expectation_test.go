package suites

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/checker/application"
	"lockcheck/internal/runs"
	"lockcheck/nemesis"
)

// judgedValid are results of which all properties are valid.
func judgedValid() checker.Results {
	r := checker.Results{Verdict: checker.Valid}
	for _, p := range checker.Properties() {
		r.Findings = append(r.Findings, checker.Finding{Property: p, Verdict: checker.Valid, Required: true})
	}
	return r
}

// TestExpectationMissed: only exactly what was expected counts as reproduced. Each row without a miss has a
// twin that differs in one thing.
func TestExpectationMissed(t *testing.T) {
	type change func(*checker.Results)
	results := func(v checker.Verdict, changes ...change) checker.Results {
		r := judgedValid()
		r.Verdict = v
		for _, c := range changes {
			c(&r)
		}
		return r
	}
	is := func(v checker.Verdict, properties ...checker.Property) change {
		return func(r *checker.Results) {
			for i, f := range r.Findings {
				if slices.Contains(properties, f.Property) {
					r.Findings[i].Verdict = v
				}
			}
		}
	}
	violated := func(properties ...checker.Property) change { return is(checker.Violation, properties...) }
	both := violated(checker.MutualExclusion, checker.NoLostUpdate)
	twice := func(r *checker.Results) { r.Overlaps.DoubleGrants = 1 }
	whilePaused := func(r *checker.Results) { r.Overlaps.EarlierPaused = 1 }
	overlaps := func(o checker.OverlapSummary) change { return func(r *checker.Results) { r.Overlaps = o } }
	told := func(r *checker.Results) { r.Operations.Lost = 1 }
	orphaned := func(longest time.Duration, stuck int64) change {
		return func(r *checker.Results) { r.Orphans = checker.OrphanSummary{Killed: 1, Longest: longest, Stuck: stuck} }
	}
	violation := Expectation{Verdict: checker.Violation, Violated: []checker.Property{checker.MutualExclusion, checker.NoLostUpdate}}
	with := func(f func(*Expectation)) Expectation {
		e := violation
		f(&e)
		return e
	}
	valid := Expectation{Verdict: checker.Valid}
	because := func(cause string) change {
		return func(r *checker.Results) { r.Findings[0].Causes = map[string]int64{cause: 1} } // a cause of the violation of mutual exclusion
	}
	byClock := with(func(e *Expectation) { e.Cause = checker.CauseClock })
	kept := Expectation{Kept: []checker.Property{checker.MutualExclusion}}
	either := Expectation{MayViolate: []checker.Property{checker.MutualExclusion}}
	late := Expectation{OrphanedFor: 16 * time.Second}
	soon := Expectation{FreeWithin: 8 * time.Second}
	fast := Expectation{Verdict: checker.Valid, Figures: Bounds{{Figure: "ops", Low: 2, High: math.Inf(1)}}}
	updates := func(n int64) change { return func(r *checker.Results) { r.Measures.Work = n } }
	billed := Expectation{Verdict: checker.Violation, Invariants: []string{"billed-once"}}
	invariant := func(name string) change {
		return func(r *checker.Results) {
			r.Findings = append(r.Findings, checker.Finding{
				Property: checker.Invariants, Verdict: checker.Violation, Required: true,
				Facts: []checker.Fact{{Kind: application.FactViolated, Keys: []string{name}, N: 1}, {Kind: application.FactHeld, Keys: []string{"billed-once"}}},
			})
		}
	}
	for _, c := range []struct {
		name   string
		expect Expectation
		got    checker.Results
		want   string // part of what was missed; "" for nothing
	}{
		{"as expected", violation, results(checker.Violation, both), ""},
		{"and more", violation, results(checker.Violation, both, twice, violated(checker.NoStaleWrite)), ""},
		{"valid", violation, results(checker.Valid), "the verdict is valid, not violation"},
		{"undecided", violation, results(checker.Undecided), "the verdict is undecided, not violation"},
		{"kept, and something else undecided", kept, results(checker.Undecided, is(checker.Undecided, checker.Liveness)), "the run is undecided"},
		{"of which nothing was judged", valid, checker.Results{Verdict: checker.Valid}, "fault-evidence was not judged"},
		{"of a run that failed", violation, results(checker.Violation, both, is(checker.Broken, checker.Assumptions)), "assumptions is broken"},
		{"of a run that did too little", violation, results(checker.Violation, both, is(checker.Undecided, checker.Assumptions)), "assumptions is undecided"},
		{"without its fault", violation, results(checker.Violation, both, is(checker.Undecided, checker.FaultEvidence)), "fault-evidence is undecided"},
		{"without faults asked for", violation, results(checker.Violation, both, is(checker.NotApplicable, checker.FaultEvidence)), ""},
		{"nothing was lost", violation, results(checker.Violation, violated(checker.MutualExclusion)), "no-lost-update was not violated (only mutual-exclusion)"},
		{"by the cause", byClock, results(checker.Violation, both, because(checker.CauseClock)), ""},
		{"by another cause", byClock, results(checker.Violation, both, because(checker.CausePaused)), "was caused by: clock step"},

		{"invariant", billed, results(checker.Violation, invariant("billed-once")), ""},
		{"another invariant", billed, results(checker.Violation, invariant("kept")), "invariant billed-once was not violated"},
		{"invariant, whatever the verdict", Expectation{Invariants: billed.Invariants}, results(checker.Violation, invariant("billed-once")), ""},
		{"invariant, and a property", Expectation{Invariants: billed.Invariants}, results(checker.Violation, invariant("billed-once"), violated(checker.Liveness)), "liveness was violated"},

		{"valid control", valid, results(checker.Valid), ""},
		{"control that is a violation", valid, results(checker.Violation, violated(checker.MutualExclusion)), "the verdict is violation, not valid"},
		{"control that is undecided", valid, results(checker.Undecided), "the verdict is undecided, not valid"},

		{"kept", kept, results(checker.Valid), ""},
		{"not kept", kept, results(checker.Violation, violated(checker.MutualExclusion)), "mutual-exclusion is not shown to be kept: violation"},
		{"kept for want of data", kept, results(checker.Undecided, is(checker.Undecided, checker.MutualExclusion)), "mutual-exclusion is not shown to be kept: undecided"},
		{"kept, and another violated", kept, results(checker.Violation, violated(checker.Liveness)), "liveness was violated"},

		{"violated where it does not matter", either, results(checker.Violation, violated(checker.MutualExclusion)), ""},
		{"kept where it does not matter", either, results(checker.Valid), ""},
		{"another one violated", either, results(checker.Violation, violated(checker.Liveness)), "liveness was violated"},

		{"double grant", with(func(e *Expectation) { e.DoubleGrant = true }), results(checker.Violation, both, twice), ""},
		{"use after expiry only", with(func(e *Expectation) { e.DoubleGrant = true }), results(checker.Violation, both), "no overlap was a double grant"},
		{"holder paused", with(func(e *Expectation) { e.Earlier = "paused" }), results(checker.Violation, both, whilePaused), ""},
		{
			"double grant to a healthy holder", with(func(e *Expectation) { e.DoubleGrant, e.Earlier = true, "healthy" }),
			results(checker.Violation, both, overlaps(checker.OverlapSummary{DoubleGrants: 1, EarlierHealthy: 1, DoubleGrantsHealthy: 1})), "",
		},
		{
			"double grant to a paused one, another one healthy", with(func(e *Expectation) { e.DoubleGrant, e.Earlier = true, "healthy" }),
			results(checker.Violation, both, overlaps(checker.OverlapSummary{DoubleGrants: 1, UsesAfterExpiry: 1, EarlierHealthy: 1, EarlierPaused: 1, DoubleGrantsPaused: 1})),
			"in no overlap by a double grant the earlier holder was healthy",
		},
		{"holder healthy", with(func(e *Expectation) { e.Earlier = "healthy" }), results(checker.Violation, both, whilePaused), "in no overlap the earlier holder was healthy"},
		{"somebody to notify", with(func(e *Expectation) { e.Notified = true }), results(checker.Violation, both, told), ""},
		{"nobody to notify", with(func(e *Expectation) { e.Notified = true }), results(checker.Violation, both), "no worker was notified"},
		{"nobody notified", with(func(e *Expectation) { e.NeverNotified = true }), results(checker.Violation, both), ""},
		{"somebody notified", with(func(e *Expectation) { e.NeverNotified = true }), results(checker.Violation, both, told), "1 times a worker was notified"},

		{"orphaned", late, results(checker.Valid, orphaned(20*time.Second, 0)), ""},
		{"free too soon", late, results(checker.Valid, orphaned(10*time.Second, 0)), "not after 16s at the earliest"},
		{"nobody killed", late, results(checker.Valid), "no holder was killed"},
		{"free in time", soon, results(checker.Valid, orphaned(5*time.Second, 0)), ""},
		{"free too late", soon, results(checker.Valid, orphaned(10*time.Second, 0)), "not for 8s at the latest"},
		{"figure within", fast, results(checker.Valid, updates(3)), ""},
		{"figure beyond", fast, results(checker.Valid, updates(1)), "ops 1, not 2 at least"},
		{"never free", soon, results(checker.Valid, orphaned(5*time.Second, 1)), "not for 8s at the latest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.expect.Missed(c.got); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("missed %q, want %q", got, c.want)
			}
		})
	}
}

// TestExperimentMissed: each step of a schedule must have been in force and exercised in at least one of its
// rounds.
func TestExperimentMissed(t *testing.T) {
	fault := func(id string, proven, exercised bool) checker.FaultCoverage {
		return checker.FaultCoverage{ID: id, Applied: true, Proven: proven, Exercised: exercised}
	}
	e := Experiment{Expect: Expectation{Verdict: checker.Valid}, Options: runs.Options{Schedule: &nemesis.Schedule{Steps: []nemesis.Step{
		{ID: "cut-w1"}, {ID: "stop", Every: nemesis.Span{Plus: time.Second}},
	}}}}
	for _, c := range []struct {
		name   string
		faults []checker.FaultCoverage
		want   string
	}{
		{"all", []checker.FaultCoverage{fault("cut-w1", true, true), fault("stop.2", true, true)}, ""},
		{"one of several rounds", []checker.FaultCoverage{fault("cut-w1", true, true), fault("stop.1", true, false), fault("stop.2", true, true)}, ""},
		{"none of the first step", []checker.FaultCoverage{fault("stop.2", true, true)}, "step cut-w1"},
		{"one unproven", []checker.FaultCoverage{fault("cut-w1", false, false), fault("stop.2", true, true)}, "step cut-w1"},
		{"one that met nobody", []checker.FaultCoverage{fault("cut-w1", true, true), fault("stop.2", true, false)}, "step stop"},
		{"another of a similar name", []checker.FaultCoverage{fault("cut-w1", true, true), fault("stop-2", true, true)}, "step stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := judgedValid()
			r.Faults = c.faults
			ofApplication := Experiment{Expect: e.Expect, Application: &runs.ApplicationOptions{Schedule: e.Options.Schedule}}
			for _, e := range []Experiment{e, ofApplication} {
				if got := e.Missed(r); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
					t.Errorf("missed %q, want %q", got, c.want)
				}
			}
		})
	}
}
