// Package application judges the history of a test of a user's own application: what its invariants answered, and
// what its replicas said that they held and did. It is pure, and has no words: package present has them.
package application

import (
	"cmp"

	"lockcheck/checker"
	"lockcheck/history"
)

// property is a row of the table that drives the checkers.
type property struct {
	name checker.Property
	// guarded: a guard that the header names is there to make its violations harmless.
	guarded bool
	judge   func(*run) checker.Finding
}

// properties is that table, in the order of findings: what became of the data, what replicas did, and what a verdict on
// both rests on. All of them are required; those of lines that the app file does not describe are not applicable.
func properties() []property {
	return []property{
		{checker.Invariants, false, invariants},
		{checker.NoLostUpdate, false, noLostUpdate},
		{checker.ExactlyOnce, false, exactlyOnce},
		{checker.NoStaleEffect, false, noStaleEffect},
		{checker.MutualExclusion, true, mutualExclusion},
		{checker.FencingOrder, false, fencingOrder},
		{checker.FaultEvidence, false, faultEvidence},
		{checker.Assumptions, false, assumptions},
	}
}

// Properties returns all of them, in the order of findings.
func Properties() []checker.Property {
	var names []checker.Property
	for _, p := range properties() {
		names = append(names, p.name)
	}
	return names
}

// Check judges a history of an application, which the caller has validated; the prefix that a killed run leaves is fine.
func Check(h *history.History) checker.Results {
	r := newRun(h)
	res := checker.Results{
		Schema: checker.Schema, Begin: cmp.Or(r.phase(history.PhaseReady), r.begin), End: r.end, Faults: r.coverage(), Failovers: r.failovers(),
		Application: r.summary(), Holds: r.described(),
	}
	_, res.Interrupted = r.phases[history.PhaseInterrupted]
	for _, p := range properties() {
		found := p.judge(r)
		found.Weigh(true, p.guarded && guarded(r.header) || inherent(found), r.header.Require)
		if found.Required && found.Verdict != checker.NotApplicable {
			res.Required = append(res.Required, p.name)
		}
		res.Findings = append(res.Findings, found)
	}
	res.Verdict = checker.Conclude(res.Findings, false)
	return res
}

// Inherent says whether a lock with a lease lets a violation of a property happen by itself, by its cause: an earlier holder
// was paused or cut off, or its hold outlasted the lease. The other properties judge what that does to the data: with
// a unique key, a holder that was paused may do the work that its successor has not done yet, and nothing is done twice.
func Inherent(p checker.Property, cause string) bool {
	return (p == checker.MutualExclusion || p == checker.NoStaleEffect) && cause != CauseHolderHealthy
}

// inherent says that of all violations in a finding.
func inherent(f checker.Finding) bool {
	return f.Verdict == checker.Violation && Inherent(f.Property, "") && f.Causes[CauseHolderHealthy] == 0
}

func guarded(h history.Header) bool { return h.Guard != "" && h.Guard != history.GuardNone }

// because makes facts what the verdict of a property rests on.
func because(f *checker.Finding, v checker.Verdict, facts ...checker.Fact) {
	f.Verdict, f.Facts = v, append(f.Facts, facts...)
}

// unsaid is the finding on a property that needs lines which the app file does not describe; false if it describes
// all of them.
func (r *run) unsaid(p checker.Property, needed ...history.Function) (checker.Finding, bool) {
	for _, f := range needed {
		if !r.says(f) {
			return checker.Finding{Property: p, Verdict: checker.NotApplicable, Facts: []checker.Fact{{Kind: FactUnsaid, Said: string(f)}}}, true
		}
	}
	return checker.Finding{}, false
}

func (r *run) says(f history.Function) bool {
	_, said := r.app.Says[f]
	return said
}
