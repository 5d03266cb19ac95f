package present

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/checker/application"
	"lockcheck/history"
)

// applied is the presenter of a run of an application that began at 10 ms.
func applied() presenter {
	return presenter{
		header:  history.Header{Workload: history.WorkloadApplication, Application: &history.Application{Replicas: []string{"b1", "b2"}}},
		results: &checker.Results{Begin: 10 * ms, Application: &checker.ApplicationSummary{}},
	}
}

// kindsOfApplication lists the constants of a type, such as FactKind, in package application: the names by
// their values.
func kindsOfApplication(t *testing.T, typ string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../checker/application/facts.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if name, is := spec.Type.(*ast.SelectorExpr); is && name.Sel.Name == typ {
			kinds[strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`)] = spec.Names[0].Name
		}
		return true
	})
	if len(kinds) < 5 {
		t.Fatalf("%s has %d kinds", typ, len(kinds))
	}
	return kinds
}

// TestApplicationFacts: each kind of fact about an application has its sentence.
func TestApplicationFacts(t *testing.T) {
	key, worked := []string{"billed"}, applied()
	worked.results.Application = &checker.ApplicationSummary{Replicas: make([]checker.ReplicaSummary, 3), Restarts: 1, Holds: 2, Effects: 3, Accepted: 4}
	seen := make(map[string]bool)
	for _, c := range []struct {
		p    presenter
		fact checker.Fact
		want string
	}{
		{applied(), checker.Fact{Kind: application.FactNoInvariants}, "the app file has no invariants"},
		{applied(), checker.Fact{Kind: application.FactViolated, Keys: key, N: 1, At: 15 * ms}, "invariant billed did not hold, first seen at 5 ms"},
		{applied(), checker.Fact{Kind: application.FactViolated, Keys: key, N: 3, At: 15 * ms}, "invariant billed did not hold, first seen at 5 ms (3 incidents)"},
		{applied(), checker.Fact{Kind: application.FactNeverAnswered, Keys: key, Said: "refused"}, "invariant billed was never answered: refused"},
		{applied(), checker.Fact{Kind: application.FactFinalUnanswered, Keys: key}, "invariant billed was not answered after the faults"},
		{applied(), checker.Fact{Kind: application.FactTooEarly, Keys: key, Limit: time.Second}, "invariant billed was last asked before 1 s had passed since the last fault"},
		{applied(), checker.Fact{Kind: application.FactNothingAccepted, Keys: key}, "invariant billed cannot be judged: the load reported no accepted work"},
		{applied(), checker.Fact{Kind: application.FactHealUnknown, Keys: key, Faults: []string{"f1", "f2"}}, "invariant billed cannot be judged: nobody knows when f1, f2 ended"},
		{applied(), checker.Fact{Kind: application.FactHeld, N: 1, Of: 2}, "1 answer to 2 invariants held"},
		{applied(), checker.Fact{Kind: application.FactUnknownAnswers, N: 1, Of: 2}, "1 of 2 questions had no answer"},
		{applied(), checker.Fact{Kind: application.FactLongestGap, Keys: key, At: 15 * ms, Length: time.Second}, "the longest gap between two answers was 1 s (billed, from 5 ms)"},
		{applied(), checker.Fact{Kind: application.FactLongestGap, Keys: key, At: 15 * ms, Length: time.Second, Faults: []string{"f1"}}, "the longest gap between two answers was 1 s (billed, from 5 ms, during f1)"},
		{applied(), checker.Fact{Kind: application.FactUnsaid, Said: "did"}, "the app file describes no line for did"},
		{applied(), checker.Fact{Kind: application.FactEndsUnsaid}, "the app file describes no line that ends a hold (releasing or released)"},
		{applied(), checker.Fact{Kind: application.FactNoHold}, "no replica said that it held a key; compare the pattern says.holding with what the replicas print"},
		{applied(), checker.Fact{Kind: application.FactFewHolders, N: 1}, "only 1 holder ever held a key, so nothing shows that others are kept out"},
		{applied(), checker.Fact{Kind: application.FactHoldersOverlap, N: 2}, "2 holds began while another holder had the same key"},
		{applied(), checker.Fact{Kind: application.FactHoldersApart, N: 2}, "2 holds, never two at once"},
		{applied(), checker.Fact{Kind: application.FactStaleEffects, N: 1}, "1 effect came after another holder had taken over"},
		{applied(), checker.Fact{Kind: application.FactEffectsCurrent, N: 2}, "2 effects in holds, none after another holder had taken over"},
		{applied(), checker.Fact{Kind: application.FactNoEffectHeld}, "no work was done in a hold"},
		{applied(), checker.Fact{Kind: application.FactTokensUnordered, N: 2}, "2 tokens, no two of which are certain to be in order"},
		{applied(), checker.Fact{Kind: application.FactTokensLate, N: 1}, "1 hold was reported after one with a greater token, perhaps by a late line"},
		{applied(), checker.Fact{Kind: application.FactDoneTwice, N: 2}, "2 pieces of work were done again"},
		{applied(), checker.Fact{Kind: application.FactDoneOnce, N: 1}, "1 piece of work, none done twice"},
		{applied(), checker.Fact{Kind: application.FactNothingDone}, "no replica said that it did any work; compare the pattern says.did with what the replicas print"},
		{applied(), checker.Fact{Kind: application.FactNoResource}, "the app file has no resource (app.resource)"},
		{applied(), checker.Fact{Kind: application.FactOverwritten, N: 1, Of: 7}, "1 value in the resource was replaced by a client that had not seen it (7 replacements judged)"},
		{applied(), checker.Fact{Kind: application.FactOverwritten, N: 2, Of: 7}, "2 values in the resource were replaced by a client that had not seen them (7 replacements judged)"},
		{applied(), checker.Fact{Kind: application.FactReplacedSeen, N: 2}, "2 values in the resource were replaced, each by a client that had seen it"},
		{applied(), checker.Fact{Kind: application.FactReplacedBlind, N: 1}, "not judged: 1 replacement by a client that had not read the value since its start, or said that it overwrites any version"},
		{applied(), checker.Fact{Kind: application.FactNothingReplaced}, "no client replaced a value that it had read from the resource"},
		{applied(), checker.Fact{Kind: application.FactRefused, N: 2}, "the resource refused 2 requests for an old token or another version"},
		{applied(), checker.Fact{Kind: application.FactNoWork, Of: 1}, "nothing shows that the application did any work; say in the app file what does: load, says.did or work"},
		{applied(), checker.Fact{Kind: application.FactNoWork, N: 1, Of: 2}, "only 1 effect was seen, 2 are needed; a run with a longer --time-limit would do enough"},
		{applied(), checker.Fact{Kind: application.FactFewReplicas, N: 1}, "only 1 replica started, 2 are needed; write app.replicas: 2 or more in the app file"},
		{applied(), checker.Fact{Kind: application.FactNothingJudged}, "the app file has no invariants and describes no lines, so there is nothing to judge; add an invariant"},
		{applied(), checker.Fact{Kind: application.FactLinesLost, Workers: []string{"b1"}, Said: "too many"}, "lines of b1 are missing: too many"},
		{applied(), checker.Fact{Kind: application.FactWorkUnanswered, N: 40, Said: "no such table"}, "work was never answered (unknown 40 of 40): no such table"},
		{worked, checker.Fact{Kind: application.FactWorked}, "3 replicas, 1 restart, 2 holds, 3 effects, 4 accepted pieces of work"},
	} {
		seen[string(c.fact.Kind)] = true
		if got := c.p.fact(c.fact); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.fact.Kind, got, c.want)
		}
	}
	for kind, name := range kindsOfApplication(t, "FactKind") {
		if !seen[kind] {
			t.Errorf("application.%s has no sentence here", name)
		}
	}
}

// TestApplicationIncidents: each kind of incident of an application has its sentence.
func TestApplicationIncidents(t *testing.T) {
	two := []string{"b1", "b2"}
	row := &checker.Seen{Rows: []string{"job-17\t2"}, Count: 1}
	seen := make(map[string]bool)
	for _, c := range []struct {
		incident checker.Incident
		want     string
	}{
		{checker.Incident{Kind: application.KindRepeatedWork, Key: "billed", Seen: row}, "invariant billed did not hold: job-17, 2"},
		{checker.Incident{Kind: application.KindRepeatedWork, Key: "billed", Seen: &checker.Seen{Rows: []string{"job-17\t2"}, Columns: []string{"job", "count"}, Count: 1}}, "invariant billed did not hold: job job-17, count 2"},
		{checker.Incident{Kind: application.KindNever, Key: "billed", Seen: &checker.Seen{Rows: []string{"a\tb\tc"}, Columns: []string{"job", "count"}, Count: 1}}, "invariant billed did not hold: a, b, c"},
		{checker.Incident{Kind: application.KindNever, Key: "billed", From: 15 * ms, To: 20 * ms, Seen: &checker.Seen{Rows: []string{"a", "b"}, Count: 7}}, "invariant billed did not hold: a; b and 5 more (until 10 ms)"},
		{checker.Incident{Kind: application.KindNever, Key: "billed", Seen: &checker.Seen{}}, "invariant billed did not hold"},
		{checker.Incident{Kind: application.KindAlways, Key: "billed", Seen: &checker.Seen{}}, "invariant billed did not hold: its answer was empty"},
		{checker.Incident{Kind: application.KindNotKept, Key: "billed", Seen: &checker.Seen{Rows: []string{"a", "b"}, Count: 2, Of: 9}}, "invariant billed lacks 2 of 9 accepted pieces of work at the end: a; b"},
		{checker.Incident{Kind: application.KindEventually, Key: "billed", Seen: &checker.Seen{}, Figures: checker.IncidentFigures{Length: 31 * time.Second}}, "invariant billed did not hold 31 s after the last fault"},
		{checker.Incident{Kind: application.KindHoldersOverlap, Key: "k", Workers: two, To: 9 * ms, Figures: checker.IncidentFigures{Holder: checker.HolderPaused}}, "b1 and b2 both held k for 9 ms (b1 was paused)"},
		{checker.Incident{Kind: application.KindStaleEffect, Key: "k", Workers: two, Figures: checker.IncidentFigures{Holder: checker.HolderCutOff, ID: "j", Length: time.Second}}, "b1 did j in its hold of k, 1 s after b2 had said that it held k (b1 was cut off)"},
		{checker.Incident{Kind: application.KindOverwritten, Key: "c", Workers: two, Figures: checker.IncidentFigures{N: 1, Next: 5, Holder: checker.HolderHealthy}, Overwrite: &checker.Overwrite{Seen: 3, SeenAt: 11 * ms, Unseen: 4, UnseenAt: 12 * ms}},
			"b1 read version 3 of c at 1 ms, b2 wrote version 4 at 2 ms, and b1 then replaced it by version 5 without having seen version 4"},
		{checker.Incident{Kind: application.KindOverwritten, Key: "c", Workers: two, Figures: checker.IncidentFigures{N: 2, Next: 6, Holder: checker.HolderPaused}, Overwrite: &checker.Overwrite{Seen: 3, SeenAt: 11 * ms, Wrote: true, Unseen: 4, UnseenAt: 12 * ms, Appended: "l"}},
			"b1 wrote version 3 of c at 1 ms, b2 appended l, which made version 4, at 2 ms, and b1 then replaced version 5 by version 6 without having seen versions 4 to 5 (b1 was paused in between)"},
		{checker.Incident{Kind: application.KindOverwritten, Key: "c", Workers: two, Figures: checker.IncidentFigures{N: 1, Next: 2}, Overwrite: &checker.Overwrite{SeenAt: 11 * ms, Unseen: 1, UnseenAt: 12 * ms}},
			"b1 read at 1 ms that there was no c, b2 wrote version 1 at 2 ms, and b1 then replaced it by version 2 without having seen version 1"},
		{checker.Incident{Kind: application.KindDoneTwice, Workers: two, Figures: checker.IncidentFigures{ID: "j", Length: time.Second}}, "j was done by b1, and again 1 s later by b2"},
	} {
		seen[string(c.incident.Kind)] = true
		if got := applied().incident(c.incident); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.incident.Kind, got, c.want)
		}
	}
	for kind, name := range kindsOfApplication(t, "IncidentKind") {
		if !seen[kind] {
			t.Errorf("application.%s has no sentence here", name)
		}
	}
}

// TestSeen: the explanation of a violated invariant says when the invariant last held, and what happened
// since.
func TestSeen(t *testing.T) {
	s := checker.Seen{
		Invariant: history.InvariantOnce, Held: 15 * ms,
		Faults: []checker.InForce{{ID: "f1", Kind: history.Pause, Targets: []string{"b1"}, From: 12 * ms, To: 16 * ms}, {ID: "f2", Kind: history.Kill, From: 14 * ms}},
		Hit:    []checker.Hit{{Replica: "b1", State: checker.HolderPaused}},
		Said:   []checker.Said{{Replica: "b1", F: history.Holding, Key: "k", At: 11 * ms}, {Replica: "b2", F: history.Did, ID: "j", At: 17 * ms}, {Replica: "b3", F: history.Write, Key: "c", At: 18 * ms}, {Replica: "b4", F: history.Write, Key: "c", ID: "l", At: 18 * ms}},
	}
	want := "it held when it was asked at 5 ms; fault f1 (pause of b1) was in force from 2 ms to 6 ms; fault f2 (kill) was in force from 4 ms; b1 was paused; b1 last said that it held k, at 1 ms; b2 last said that it did j, at 7 ms; b3 last wrote c, at 8 ms; b4 last appended l to c, at 8 ms"
	if got := applied().why(checker.Incident{Seen: &s}); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := applied().why(checker.Incident{Seen: &checker.Seen{Invariant: history.InvariantNever}}); got != "no answer showed before that it held" {
		t.Error(got)
	}
	if got := applied().why(checker.Incident{Seen: &checker.Seen{Invariant: history.InvariantKept}}); got != "" {
		t.Error(got)
	}
}

// TestApplicationMeanings: each property and each cause of an application is explained.
func TestApplicationMeanings(t *testing.T) {
	for _, p := range application.Properties() {
		if Property(p) == "" {
			t.Errorf("property %s is not explained", p)
		}
	}
	for _, c := range application.Causes() {
		if Cause(c) == "" {
			t.Errorf("cause %s is not explained", c)
		}
	}
	twice := checker.Incident{Kind: application.KindDoneTwice, Cause: application.CauseDecidedBeforeLock}
	if got := applied().why(twice); got != Cause(twice.Cause) {
		t.Error(got)
	}
}

// TestRenderApplication: the sentence about a run of an application explains the verdict, and does not
// mention locks.
func TestRenderApplication(t *testing.T) {
	held := []checker.Fact{{Kind: application.FactHeld, N: 40, Of: 2}, {Kind: application.FactLongestGap, Keys: []string{"billed"}, At: 15 * ms, Length: time.Second}}
	valid := checker.Finding{Property: checker.Invariants, Verdict: checker.Valid, Required: true, Facts: held}
	violated := valid
	violated.Verdict, violated.Facts = checker.Violation, append([]checker.Fact{{Kind: application.FactViolated, Keys: []string{"billed"}, N: 1, At: 15 * ms}}, held...)
	twice := checker.Finding{Property: checker.ExactlyOnce, Verdict: checker.Violation, Required: true, Total: 1, Facts: []checker.Fact{{Kind: application.FactDoneTwice, N: 1}}}
	overlap := checker.Finding{Property: checker.MutualExclusion, Verdict: checker.Violation, Tolerated: true, Total: 1, Facts: []checker.Fact{{Kind: application.FactHoldersOverlap, N: 1}}}
	fault := checker.FaultCoverage{Kind: history.Kill, Targets: []string{"b1"}, Applied: true, Proven: true, Exercised: true}
	for _, c := range []struct {
		name    string
		results checker.Results
		want    string
	}{
		{"valid", checker.Results{Verdict: checker.Valid, Findings: []checker.Finding{valid}, Faults: []checker.FaultCoverage{fault}},
			"No violation: 40 answers to 2 invariants held; the longest gap between two answers was 1 s (billed, from 5 ms); 2 replicas, 3 effects; 1 of 1 kill fault proven and exercised."},
		{"tolerated", checker.Results{Verdict: checker.Valid, Findings: []checker.Finding{overlap}}, "No violation: 2 replicas, 3 effects; no faults were injected; not counted, because every lease allows it: 1 hold began while another holder had the same key."},
		{"violated", checker.Results{Verdict: checker.Violation, Findings: []checker.Finding{violated, twice}}, "Invariant billed did not hold, first seen at 5 ms; 1 piece of work was done again."},
		{"undecided", checker.Results{Verdict: checker.Undecided, Findings: []checker.Finding{{Property: checker.Assumptions, Verdict: checker.Undecided, Required: true, Facts: []checker.Fact{{Kind: application.FactFewReplicas, N: 1}}}}}, "Only 1 replica started, 2 are needed; write app.replicas: 2 or more in the app file."},
	} {
		c.results.Begin = 10 * ms
		c.results.Application = &checker.ApplicationSummary{Replicas: make([]checker.ReplicaSummary, 2), Effects: 3}
		if Render(&c.results, applied().header); c.results.Sentence != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, c.results.Sentence, c.want)
		}
	}
}
