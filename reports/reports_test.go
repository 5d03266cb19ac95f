package reports

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/stats"
)

// run is one verdict with the data behind it.
type run struct {
	name string
	h    *history.History
	r    checker.Results
}

func runs() []run {
	violation, rv := realistic("none")
	tolerated, rt := realistic("fence")
	undisturbed := newStory("none")
	undisturbed.undisturbed(200, 40*ms)
	valid, rq := undisturbed.finish(checker.Valid, "No property was violated in 200 holds.")
	few := newStory("none")
	few.undisturbed(3, 40*ms)
	undecided, ru := few.finish(checker.Undecided, "Too few operations to say: 3 acknowledged updates of at least 100.")
	judge(&ru, checker.NoLostUpdate, checker.Undecided)
	judge(&ru, checker.Linearizability, checker.Undecided)
	judge(&ru, checker.FencingOrder, checker.NotApplicable)
	brokenHistory := &history.History{Header: history.Header{Lock: "redis", Workload: "set", Guard: "none"}, Truncated: 7}
	broken := checker.Results{Verdict: checker.Broken, Sentence: "The cluster never became healthy."}
	return []run{
		{"violation", violation, rv}, {"tolerated", tolerated, rt}, {"valid", valid, rq},
		{"undecided", undecided, ru}, {"broken", brokenHistory, broken},
	}
}

func judge(r *checker.Results, p checker.Property, v checker.Verdict) {
	for i := range r.Findings {
		if r.Findings[i].Property == p {
			r.Findings[i].Verdict = v
		}
	}
}

const hostile = "<script>alert(1)</script>\x1b[31m\x00\x07\u202e\ufffe]]></title>\"' onload=alert(1)"

// poisoned is a violation with hostile text wherever text can come from outside.
func poisoned() run {
	h, r := realistic("none")
	h.Header.Lock, h.Header.Workload, h.Header.Run, h.Header.Version = hostile, hostile, hostile, hostile
	h.Header.Faults = append(h.Header.Faults, hostile)
	h.Header.Command = []string{hostile}
	h.Header.Parameters = map[string]string{hostile: hostile}
	h.Events = append(h.Events, history.Event{Time: r.End, Process: history.Harness, F: history.Phase, Note: history.PhaseBroken, Error: hostile})
	for i := range h.Events {
		if f := h.Events[i].Fault; f != nil {
			f.Evidence, f.Kind = hostile, hostile
		}
	}
	r.Sentence += hostile
	for i := range r.Findings {
		r.Findings[i].Summary += hostile
		for j := range r.Findings[i].Violations {
			r.Findings[i].Violations[j].What += hostile
			r.Findings[i].Violations[j].Class = hostile
		}
	}
	for i := range r.Faults {
		r.Faults[i].Kind, r.Faults[i].Reason, r.Faults[i].Peers = hostile, hostile, []string{hostile}
	}
	for i := range r.Holds {
		if i%7 == 0 {
			r.Holds[i].Worker = hostile
		}
	}
	watched(h, r)
	return run{"hostile", h, r}
}

func terminalText(t *testing.T, c run, o TerminalOptions) string {
	t.Helper()
	o.Header = c.h.Header
	var b bytes.Buffer
	if err := Terminal(&b, c.r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRunLine: how the workers used the lock is reported once, whatever set it.
func TestRunLine(t *testing.T) {
	for _, c := range []struct {
		name             string
		renewed, checked bool
		parameters       map[string]string
		want             string
	}{
		{"plain", false, false, nil, "0 workers; seed 7"},
		{"of a reproduction", true, false, nil, "0 workers; seed 7; use renewed leases"},
		{"of flags", true, true, map[string]string{"renew": "true", "check-before-write": "true"}, "0 workers; seed 7; use renewed leases, deadlines checked before each write"},
		{"for some workers", false, false, map[string]string{"renew": "true"}, "0 workers; seed 7; renew"},
	} {
		var b bytes.Buffer
		h := history.Header{Seed: 7, Renewed: c.renewed, Checked: c.checked, Parameters: c.parameters}
		if err := Terminal(&b, checker.Results{}, TerminalOptions{Header: h, Width: 200}); err != nil {
			t.Fatal(err)
		}
		if line := b.String(); !strings.Contains(line, c.want+"\n") {
			t.Errorf("%s: want %q in\n%s", c.name, c.want, line)
		}
	}
}

func TestTerminal(t *testing.T) {
	want := map[string][]string{
		"violation": {"VIOLATION  Two workers held", "judged: mutual-exclusion,", "section 20ms..60ms; time-limit 60s", "mutual-exclusion  VIOLATION", "pause      4 injected, 4 proven, 3 hit a holder, 3 outlasted the lease",
			"1 does not count: it hit the worker outside its critical section", "at 5.990 s: w2 still acted", "and 5 more", "store/x/report.html"},
		"tolerated": {"VALID  Workers overlapped", "judged: no-stale-write,", "mutual-exclusion  tolerated"},
		"valid":     {"VALID  No property", "pause      asked for, never injected"},
		"undecided": {"UNDECIDED  Too few", "no-lost-update    undecided", "fencing-order     n/a"},
		"broken":    {"BROKEN  The cluster never", "judged: nothing"},
		"hostile":   {"VIOLATION  Two workers", "<script>alert(1)</script>"},
	}
	for _, c := range append(runs(), poisoned()) {
		for _, width := range []int{0, 60, 132} {
			t.Run(fmt.Sprint(c.name, width), func(t *testing.T) {
				text := terminalText(t, c, TerminalOptions{Width: width, Folder: "store/x"})
				if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' }) {
					t.Error("control characters without colour")
				}
				limit := width
				if limit == 0 {
					limit = 80
				}
				for _, line := range strings.Split(text, "\n") {
					if n := utf8.RuneCountInString(line); n > limit {
						t.Errorf("%d columns: %s", n, line)
					}
				}
				for _, part := range want[c.name] {
					if width == 0 && !strings.Contains(text, part) {
						t.Errorf("missing %q in\n%s", part, text)
					}
				}
				// Colour adds to the text and never replaces a word.
				colored := terminalText(t, c, TerminalOptions{Width: width, Folder: "store/x", Color: true})
				if bare := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(colored, ""); bare != text || colored == text {
					t.Error("the text differs with colour, or has none")
				}
			})
		}
	}
}

func TestExamplesPreferWhatTellsMost(t *testing.T) {
	r := checker.Results{Findings: []checker.Finding{
		{Property: checker.Liveness, Verdict: checker.Violation, Violations: []checker.Incident{{What: "stuck"}}},
		{Property: checker.MutualExclusion, Verdict: checker.Violation, Required: true, Violations: []checker.Incident{
			{What: "expired", Class: "use after expiry"}, {What: "costly", Class: "use after expiry", Grants: []string{"a"}}, {What: "broken", Class: "double grant"}}},
		{Property: checker.NoLostUpdate, Verdict: checker.Violation, Required: true, Violations: []checker.Incident{{What: "lost", Class: checker.ClassLost, Grants: []string{"a"}}}},
	}}
	var got []string
	for _, e := range examples(r, ordered(r.Findings), 5) {
		got = append(got, e.Incident.What)
	}
	if want := []string{"broken", "lost", "stuck", "costly", "expired"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCoverageNeverHidesAFault(t *testing.T) {
	h := history.Header{Workers: []string{"w1"}, Lease: time.Second}
	for _, c := range []struct {
		faults []checker.FaultCoverage
		line   string
		why    []string
	}{
		{[]checker.FaultCoverage{{Kind: "pause", Targets: []string{"w1"}, Applied: true, Proven: true, Exercised: true, Outlasted: true}},
			"1 injected, 1 proven, 1 hit a holder, 1 outlasted the lease, 1 NOT PROVEN HEALED", nil},
		{[]checker.FaultCoverage{{Kind: "pause", Targets: []string{"n1"}, Applied: true, Proven: true, Exercised: true, Healed: true}},
			"1 injected, 1 proven, 1 exercised", nil},
		{[]checker.FaultCoverage{{Kind: "pause", Role: "waiter", Targets: []string{"w1"}, Applied: true, Proven: true, Exercised: true, Healed: true}},
			"1 injected, 1 proven, 1 exercised", nil},
		{[]checker.FaultCoverage{{Kind: "clock", Reason: "no driver"}, {Kind: "clock", Reason: "no driver"}, {Kind: "clock", Applied: true, Healed: true}},
			"1 injected, 0 proven, 0 exercised", []string{"2 do not count: no driver", "1 does not count: no proof that it was in force"}},
	} {
		got := coverages(h, c.faults)
		if len(got) != 1 || got[0].line() != c.line || strings.Join(got[0].notCounted(), "|") != strings.Join(c.why, "|") {
			t.Errorf("got %q %q, want %q %q", got[0].line(), got[0].notCounted(), c.line, c.why)
		}
	}
}

// TestCoverageBySort: pauses of a holder, of a waiter and of a server are three groups.
func TestCoverageBySort(t *testing.T) {
	pause := func(role, target string) checker.FaultCoverage {
		return checker.FaultCoverage{Kind: "pause", Role: role, Targets: []string{target}, Applied: true, Proven: true, Exercised: true, Healed: true}
	}
	h := history.Header{Workers: []string{"w1"}, Faults: []string{"clock", "pause"}, Lease: time.Second}
	var got []string
	for _, c := range coverages(h, []checker.FaultCoverage{{Kind: "kill"}, pause("waiter", "w1"), pause("leader", "n1"), pause("holder", "w1")}) {
		got = append(got, c.name+": "+c.line())
	}
	want := []string{
		"clock: asked for, never injected",
		"waiter pause: 1 injected, 1 proven, 1 exercised",
		"server pause: 1 injected, 1 proven, 1 exercised",
		"pause: 1 injected, 1 proven, 1 hit a holder, 0 outlasted the lease",
		"server kill: 0 injected, 0 proven, 0 exercised",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	h.Lease = 0
	if line := coverages(h, []checker.FaultCoverage{pause("holder", "w1")})[1].line(); line != "1 injected, 1 proven, 1 hit a holder" {
		t.Errorf("without a lease: %s", line)
	}
}

func TestJSON(t *testing.T) {
	for _, c := range append(runs(), poisoned()) {
		var b bytes.Buffer
		if err := JSON(&b, c.h.Header, c.r); err != nil {
			t.Fatal(err)
		}
		var d Document
		decoder := json.NewDecoder(&b)
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&d); err != nil {
			t.Fatal(err)
		}
		c.r.Holds = nil
		if d.Schema != DocumentSchema || !reflect.DeepEqual(d.Header, c.h.Header) || !reflect.DeepEqual(d.Results, c.r) {
			t.Errorf("%s: does not come back as it was", c.name)
		}
	}
}

func TestJUnit(t *testing.T) {
	type counts struct{ tests, failures, errors, skipped int }
	want := map[string]counts{
		"violation": {10, 3, 0, 0}, "tolerated": {10, 0, 0, 0}, "valid": {10, 0, 0, 0},
		"undecided": {10, 0, 1, 2}, "broken": {1, 0, 1, 0}, "hostile": {10, 3, 0, 0},
	}
	for _, c := range append(runs(), poisoned()) {
		var b bytes.Buffer
		if err := JUnit(&b, c.h.Header, c.r); err != nil {
			t.Fatal(err)
		}
		got := suiteIn(t, b.String())
		w := want[c.name]
		if (counts{got.Tests, got.Failures, got.Errors, got.Skipped}) != w || len(got.Testcases) != w.tests {
			t.Errorf("%s: %d tests, %d failures, %d errors, %d skipped; want %v\n%s", c.name, got.Tests, got.Failures, got.Errors, got.Skipped, w, b.String())
		}
		if last := got.Testcases[len(got.Testcases)-1]; last.Name != "run" || last.Time != got.Time || c.name == "violation" && got.Time != "38.710" {
			t.Errorf("%s: the run took %s, its case %q %s", c.name, got.Time, last.Name, last.Time)
		}
		var elements counts
		for _, k := range got.Testcases {
			elements.tests++
			elements.failures += one(k.Failure != nil)
			elements.errors += one(k.Error != nil)
			elements.skipped += one(k.Skipped != nil)
			if c.name == "tolerated" && k.Name == string(checker.MutualExclusion) && (k.SystemOut == nil || !strings.HasPrefix(k.SystemOut.Data, "tolerated: ")) {
				t.Errorf("tolerated is not said: %+v", k)
			}
		}
		if elements != w {
			t.Errorf("%s: elements %v, want %v", c.name, elements, w)
		}
	}
}

// suiteIn reads the only suite of a file.
func suiteIn(t *testing.T, text string) junit.Testsuite {
	t.Helper()
	var all junit.Testsuites
	if err := xml.Unmarshal([]byte(text), &all); err != nil || len(all.Suites) != 1 {
		t.Fatalf("%d suites, %v in\n%s", len(all.Suites), err, text)
	}
	return all.Suites[0]
}

// TestJUnitNeverPassesWhatIsNotValid: CI cannot show green for a run that was not judged valid.
func TestJUnitNeverPassesWhatIsNotValid(t *testing.T) {
	for _, v := range []checker.Verdict{"", "new", checker.Violation, checker.Undecided, checker.Broken, checker.NotApplicable} {
		var b bytes.Buffer
		r := checker.Results{Verdict: v, Findings: []checker.Finding{{Property: checker.Liveness, Verdict: checker.Valid, Required: true}}}
		if err := JUnit(&b, history.Header{}, r); err != nil {
			t.Fatal(err)
		}
		got := suiteIn(t, b.String())
		if got.Failures+got.Errors == 0 {
			t.Errorf("%q passes", v)
		}
	}
}

// TestPercent: a share that is not 0 or 100 % does not look like 0 or 100 %.
func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0", 1: "100", 0.25: "25", 0.4237: "42", 0.0512: "5.1", 0.0000178: "0.0018", 0.99999: "99.999", 0.5: "50",
	} {
		if got := inPercent(share); got != want {
			t.Errorf("%g is %s, want %s", share, got, want)
		}
	}
	low, high := stats.Wilson(1, 100_000)
	if got := inPercent(low) + "–" + inPercent(high); got != "0.00018–0.0057" {
		t.Errorf("1 of 100,000: %s", got)
	}
	for _, n := range []int64{1, 7, 100, 12345, 99999} {
		if low, high := stats.Wilson(0, n); inPercent(low) != "0" || inPercent(high) == "0" {
			t.Errorf("0 of %d: %s to %s", n, inPercent(low), inPercent(high))
		}
		if low, high := stats.Wilson(n, n); inPercent(high) != "100" || inPercent(low) == "100" {
			t.Errorf("%d of %d: %s to %s", n, n, inPercent(low), inPercent(high))
		}
	}
}

func TestTickStep(t *testing.T) {
	for _, seconds := range []float64{0.001, 0.0033, 0.5, 1, 3.2, 4, 5, 60, 61, 7200} {
		if n := seconds / tickStep(seconds); n < 4-1e-9 || n > 10+1e-9 {
			t.Errorf("%v s: %v ticks", seconds, n)
		}
	}
}

func TestProgressLive(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, true, false)
	p.now = func() time.Time { return p.start }
	p.Status("%d acquired", 7)
	p.Step("pause of %s", "w1\x1b[2J")
	p.Status("%s", strings.Repeat("x", 200))
	p.Done()
	p.Done()
	want := clearLine + "7 acquired" + clearLine + "   0.0 s  pause of w1[2J\n7 acquired" + clearLine + strings.Repeat("x", 78) + "…" + clearLine
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// progressFrom returns progress in a log, what the progress writes, and its clock.
func progressFrom(begin time.Time) (*Progress, *bytes.Buffer, *time.Time) {
	b, now := new(bytes.Buffer), &begin
	p := NewProgress(b, false, false)
	p.now = func() time.Time { return *now }
	p.start, p.last = begin, begin
	return p, b, now
}

func TestProgressInALog(t *testing.T) {
	p, b, now := progressFrom(time.Unix(0, 0))
	for second := range 26 {
		*now = time.Unix(int64(second), 0)
		if second == 4 {
			p.Step("faults begin")
		}
		p.Status("second %d", second)
	}
	p.Done()
	if want := "   4.0 s  faults begin\n  14.0 s  second 14\n  24.0 s  second 24\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// TestProgressStartCount: the seconds count from StartCount, and the heartbeat continues.
func TestProgressStartCount(t *testing.T) {
	p, b, now := progressFrom(time.Unix(0, 0))
	for second := range 13 {
		*now = time.Unix(int64(second), 0)
		if second == 2 {
			p.Step("starting")
			p.StartCount()
		}
		p.Status("second %d", second)
	}
	if want := "   2.0 s  starting\n  10.0 s  second 12\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestProgressFromManyGoroutines(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, true, true)
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() { p.Status("%d", n); p.Step("step %d", n); p.Done() })
	}
	group.Wait()
	if n := strings.Count(b.String(), "\n"); n != 8 {
		t.Errorf("%d lines", n)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct{ text, whole, cut string }{
		{"", "", ""},
		{"one two", "one two", "one two"},
		{"one  two\nthree", "one two|three", "one two|three"},
		{"one two three four", "one two|three|four", "one two|three|four"}, // later lines are shorter
		{"extraordinary one", "extraordinary|one", "extraord|inary|one"},
		{"zwölf äöü", "zwölf|äöü", "zwölf|äöü"},
		{"wölf äöü", "wölf äöü", "wölf äöü"},
	} {
		whole, cut := strings.Join(Wrap(c.text, 8, 6, false), "|"), strings.Join(Wrap(c.text, 8, 6, true), "|")
		if whole != c.whole || cut != c.cut {
			t.Errorf("%q is wrapped to %s, and cut to %s; want %s, %s", c.text, whole, cut, c.whole, c.cut)
		}
	}
}

// TestWhy: the explanation of an incident ends with its cause. A stuck lock has no cause.
func TestWhy(t *testing.T) {
	for cause, want := range map[string]string{"": "why: w1 never released it\n", checker.CauseTwice: "why: w1 never released it (granted twice)\n"} {
		i := checker.Incident{What: "nobody could acquire it", Why: "w1 never released it", Cause: cause}
		r := checker.Results{Findings: []checker.Finding{{Property: checker.Liveness, Verdict: checker.Violation, Required: true, Violations: []checker.Incident{i}, Total: 1}}}
		var b bytes.Buffer
		if err := Terminal(&b, r, TerminalOptions{Width: 100}); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%v: %q is not in\n%s", err, want, b.String())
		}
	}
}
