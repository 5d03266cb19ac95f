package present

import (
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// TestNextSteps: what an undecided run advises has figures of that run, and can be copied.
func TestNextSteps(t *testing.T) {
	tooFew := checker.Fact{Kind: checker.FactTooFew, N: 5, Of: 20}
	none := checker.Fact{Kind: checker.FactTooFew, Of: 20}
	missed := checker.Fact{Kind: checker.FactMissedHolders, FaultKind: history.Pause}
	lasted := checker.Results{Begin: 1, End: 1 + int64(9*time.Second)}
	for _, c := range []struct {
		name    string
		header  history.Header
		results checker.Results
		fact    checker.Fact
		want    string
	}{
		{"by how long it was", history.Header{}, lasted, tooFew, "a run with --time-limit 55s would do enough"},
		{"by how long it was to be", history.Header{Parameters: map[string]string{"time-limit": "20s"}}, lasted, tooFew, "a run with --time-limit 2m0s would"},
		{"none under faults", history.Header{Faults: []string{history.Pause}}, checker.Results{Operations: checker.Operations{Busy: 3, Unknown: 2}}, none,
			"run it with --nemesis none first, to see whether the faults are why (of the acquires 0 were granted, 3 found the lock busy, 2 failed or had no answer)"},
		{"none without faults", history.Header{}, checker.Results{Operations: checker.Operations{AcquireFailed: 2}}, none, "look on the page at what the workers were told (of the acquires 0 were granted,"},
		{"nobody tried", history.Header{}, lasted, none, "no worker came to ask for the lock, so the machine is busy: run it with --time-limit 30s"},
		{"faults that missed", history.Header{Workers: []string{"w1", "w2"}}, lasted, missed, "; --time-limit 20s gives it more chances"},
	} {
		p := presenter{header: c.header, results: &c.results}
		if got := p.fact(c.fact); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q in it", c.name, got, c.want)
		}
		for _, nothing := range []presenter{{header: history.Header{Imported: "jepsen"}, results: &lasted}, {results: &checker.Results{Interrupted: true}}} {
			if got := nothing.fact(c.fact); strings.Contains(got, "--") {
				t.Errorf("%s: %q advises flags where there are none", c.name, got)
			}
		}
	}
}

// TestInterrupted: of an interrupted run only that is said, and what was violated before.
func TestInterrupted(t *testing.T) {
	r := checker.Results{Interrupted: true, Verdict: checker.Undecided, Findings: []checker.Finding{
		{Property: checker.NoLostUpdate, Verdict: checker.Undecided, Required: true, Facts: []checker.Fact{{Kind: checker.FactNoUpdate}}},
		{Property: checker.FaultEvidence, Verdict: checker.Undecided, Required: true, Facts: []checker.Fact{{Kind: checker.FactNeverApplied, FaultKind: history.Pause}}},
		{Property: checker.Assumptions, Verdict: checker.Undecided, Required: true, Facts: []checker.Fact{{Kind: checker.FactInterrupted}}},
	}}
	if Render(&r, history.Header{}); r.Sentence != "The run was interrupted before its end; run it again for a verdict." {
		t.Error(r.Sentence)
	}
	r.Verdict = checker.Violation
	r.Findings[0] = checker.Finding{Property: checker.NoStaleWrite, Verdict: checker.Violation, Required: true, Facts: []checker.Fact{{Kind: checker.FactStaleWrites, N: 1}}}
	if Render(&r, history.Header{}); r.Sentence != "1 write was accepted from a holder that a later one had replaced; the run was interrupted." || r.Findings[2].Summary != "the run was interrupted before its end" {
		t.Errorf("%s %s", r.Sentence, r.Findings[2].Summary)
	}
}
