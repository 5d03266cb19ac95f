package matrix

import (
	"strings"
	"testing"

	"lockcheck/checker"
)

func TestCheckExpected(t *testing.T) {
	const suite = "locks: [memory, redis]\nfaults: [none, 'pause:holder']\nguards: [none]\nexpected:\n"
	for _, c := range []struct{ name, entries, wrong string }{
		{"any cell", "  - reason: so", ""},
		{"by patterns", "  - {lock: 'm*', fault: 'pause:*', guard: none, verdict: undecided}", ""},
		{"two", "  - {lock: memory}\n  - {lock: redis, properties: [no-lost-update], link: 'https://example.org/1'}", ""},
		{"no such cell", "  - {lock: memory}\n  - {lock: etcd}", "line 6: suite: expected: entry 2 is about no cell"},
		{"behind another", "  - {}\n  - {lock: redis}", "entry 2 is about no cell"},
		{"no pattern", "  - {lock: '[m'}", "line 5: suite: expected: lock: [m is no pattern"},
		{"valid", "  - {verdict: valid}", "line 5: suite: expected: verdict valid"},
		{"no such property", "  - {properties: [no-lost-updates]}", `did you mean "no-lost-update"?`},
		{"unknown key", "  - {lok: memory}", `there is no key "lok"`},
	} {
		_, err := ReadSuite(strings.NewReader(suite + c.entries))
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v, want %q", c.name, err, c.wrong)
		}
	}
}

// TestExpect: only an expected verdict counts as valid. An expected violation that does not happen passes
// unless it must happen.
func TestExpect(t *testing.T) {
	place := Place{"redis", "pause:holder", "none"}
	lost := Cell{Verdict: checker.Violation, Violated: []checker.Property{checker.NoLostUpdate}}
	slow := Cell{Verdict: checker.Violation, Thresholds: []ThresholdResult{{Name: "wait_p99", Verdict: checker.Violation}}}
	bounded := Cell{Verdict: checker.Violation, Thresholds: []ThresholdResult{{Name: "lost", Counts: checker.NoLostUpdate, Verdict: checker.Violation}}}
	valid, open := Cell{Verdict: checker.Valid}, Cell{Verdict: checker.Undecided}
	loss := Expectation{Lock: "redis", Properties: []checker.Property{checker.NoLostUpdate}}
	for _, c := range []struct {
		name     string
		expected []Expectation
		must     bool
		cell     Cell
		counts   checker.Verdict
		remarks  string // on the page; "" for none
	}{
		{"nothing expected", nil, false, lost, checker.Violation, ""},
		{"of another cell", []Expectation{{Lock: "etcd"}}, false, lost, checker.Violation, ""},
		{"any violation", []Expectation{{Fault: "pause:*", Reason: "a lease", Link: "https://example.org/1"}}, false, lost, checker.Valid, "as expected (a lease https://example.org/1)"},
		{"that violation", []Expectation{loss}, false, lost, checker.Valid, "as expected"},
		{"that violation, by a threshold", []Expectation{loss}, false, bounded, checker.Valid, "as expected"},
		{"another violation", []Expectation{{Properties: []checker.Property{checker.MutualExclusion}}}, false, lost, checker.Violation, "not as expected: violation of mutual-exclusion only"},
		{"a figure where a property is named", []Expectation{loss}, false, slow, checker.Violation, "not as expected"},
		{"a figure where none is", []Expectation{{}}, false, slow, checker.Valid, "as expected"},
		{"undecided where a violation is expected", []Expectation{loss}, false, open, checker.Undecided, "not as expected: violation"},
		{"undecided", []Expectation{{Verdict: checker.Undecided}}, false, open, checker.Valid, "as expected"},
		{"valid after all", []Expectation{loss}, false, valid, checker.Valid, "valid, although violation is expected"},
		{"valid after all, and must not be", []Expectation{loss}, true, valid, checker.Violation, "valid, although violation is expected"},
		{"not run", []Expectation{loss}, true, Cell{}, "", ""},
	} {
		s, cell := Suite{Expected: c.expected, MustFail: c.must}, c.cell
		cell.Lock, cell.Fault, cell.Guard = place.Lock, place.Fault, place.Guard
		if s.applyExpectation(&cell); cell.Counts != c.counts {
			t.Errorf("%s: counts as %q, want %q", c.name, cell.Counts, c.counts)
		}
		if cell.OfRuns = cell.Verdict; len(cell.Thresholds) > 0 {
			cell.OfRuns = checker.Valid
		}
		cell.Runs = []Run{{Verdict: cell.Verdict}}
		m := Comparison{Cells: []Cell{cell}}
		if text := strings.Join(cell.remarks(), "; "); !strings.Contains(text, c.remarks) {
			t.Errorf("%s: %q, want %q", c.name, text, c.remarks)
		}
		junit := written(t, junitOf, m)
		if failed := strings.Contains(junit, "<failure"); failed != (c.counts == checker.Violation) {
			t.Errorf("%s: a failure: %v\n%s", c.name, failed, junit)
		}
		if skipped := strings.Contains(junit, "<skipped"); skipped != (c.counts == checker.Valid && cell.Verdict != checker.Valid) && cell.Verdict != "" {
			t.Errorf("%s: skipped: %v\n%s", c.name, skipped, junit)
		}
		annotated := strings.Contains(written(t, annotationsOf, m), "title=lockcheck%3A redis")
		if annotated != (c.counts != checker.Valid && c.counts != "") {
			t.Errorf("%s: annotated: %v", c.name, annotated)
		}
	}
}
