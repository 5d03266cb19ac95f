package matrix

import (
	"strings"
	"testing"

	"lockcheck/checker"
)

// TestSeen: a cell claims no more than its runs showed, and says what is known from other runs.
func TestSeen(t *testing.T) {
	runs := func(verdicts ...checker.Verdict) []Run {
		var all []Run
		for _, v := range verdicts {
			all = append(all, Run{Verdict: v})
		}
		return all
	}
	lost := Cell{Verdict: checker.Violation, Violated: []checker.Property{checker.NoLostUpdate}, Runs: runs(checker.Valid, checker.Violation), Pool: checker.Pool{Lost: 2, Acknowledged: 1000}}
	for _, c := range []struct {
		cell Cell
		want string
	}{
		{Cell{Verdict: checker.Valid, Runs: runs(checker.Valid)}, "valid: no failure in 1 run, so almost nothing is known"},
		{Cell{Verdict: checker.Valid, Runs: runs(checker.Valid, checker.Valid, checker.Valid)}, "valid: no failure in 3 runs; up to 71 % may fail"},
		{lost, "lost: in 1 of 2 runs, 2/1,000 updates"},
		{Cell{Verdict: checker.Undecided, Runs: runs(checker.Valid, checker.Undecided)}, "undecided: "},
		{Cell{Verdict: checker.Broken, Runs: runs(checker.Broken)}, "broken: "},
		{Cell{Unavailable: "x"}, "–: "},
		{Cell{}, "…: "},
	} {
		if got := c.cell.word() + ": " + c.cell.details(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestFailingFirst: missed thresholds come first. A cell for which worse is known is listed with the command
// that shows it.
func TestFailingFirst(t *testing.T) {
	c := withThresholds("")
	var verdicts []string
	for _, row := range c.thresholds().Rows {
		verdicts = append(verdicts, row.Cells[6].Text)
	}
	if got := strings.Join(verdicts, " "); got != "violation undecided valid" {
		t.Error(got)
	}
	c.Cells[0].Known = &Known{Text: "failed by itself in 4 of 4 runs: x", Line: "lockcheck repro x"}
	for _, text := range []string{written(t, htmlOf, c), written(t, markdownOf, c)} {
		if !strings.Contains(text, "Worse is known") || !strings.Contains(text, "lockcheck repro x") {
			t.Errorf("what is known is missing in\n%s", text)
		}
	}
}
