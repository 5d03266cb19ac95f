package reports

import (
	"strings"
	"testing"

	"lockcheck/checker"
)

// TestSeen: a cell claims no more than its runs saw, and says what is known elsewhere.
func TestSeen(t *testing.T) {
	runs := func(verdicts ...checker.Verdict) []CellRun {
		var all []CellRun
		for _, v := range verdicts {
			all = append(all, CellRun{Verdict: v})
		}
		return all
	}
	lost := Cell{Verdict: checker.Violation, Violated: []checker.Property{checker.NoLostUpdate}, Runs: runs(checker.Valid, checker.Violation), Pool: checker.Pool{Lost: 2, Acknowledged: 1000}}
	for _, c := range []struct {
		cell Cell
		want string
	}{
		{Cell{Verdict: checker.Valid, Runs: runs(checker.Valid)}, "held in 1 (breaks in ≤ 98 %)"},
		{Cell{Verdict: checker.Valid, Runs: runs(checker.Valid, checker.Valid, checker.Valid)}, "held in 3 (breaks in ≤ 71 %)"},
		{lost, "lost (1 of 2 runs, 2/1,000)"},
		{Cell{Verdict: checker.Undecided, Runs: runs(checker.Valid, checker.Undecided)}, "undecided"},
		{Cell{Verdict: checker.Broken, Runs: runs(checker.Broken)}, "broken"},
		{Cell{Unavailable: "x"}, "–"},
		{Cell{}, "…"},
		{Cell{Verdict: checker.Valid, Runs: runs(checker.Valid), Known: &Known{Text: "failed by itself in 4 of 4 runs: x"}}, "held in 1 (breaks in ≤ 98 %); known: failed by itself in 4 of 4 runs: x"},
	} {
		if got := c.cell.seenText(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestFailingFirst: thresholds that were not kept come first, and the page and the Markdown
// name what is known to be worse with the line that shows it.
func TestFailingFirst(t *testing.T) {
	m := held("")
	for i, threshold := range m.thresholds() {
		if i > 0 && threshold.result.Verdict == checker.Violation && m.thresholds()[i-1].result.Verdict == checker.Valid {
			t.Errorf("%s comes after one that was kept", threshold.result.Name)
		}
	}
	m.Cells[0].Known = &Known{Text: "failed by itself in 4 of 4 runs: x", Line: "lockcheck repro x"}
	for _, text := range []string{written(t, MatrixHTML, m), written(t, MatrixMarkdown, m)} {
		if !strings.Contains(text, "Worse is known") || !strings.Contains(text, "lockcheck repro x") {
			t.Errorf("what is known is missing in\n%s", text)
		}
	}
}
