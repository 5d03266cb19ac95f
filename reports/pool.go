package reports

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"lockcheck/checker"
)

// Pooled writes what several runs of one test came to together, for people.
func Pooled(w io.Writer, p checker.Pool, o TerminalOptions) error {
	t := newTerminal(o)
	t.blank()
	var verdicts []string
	for _, v := range slices.Sorted(maps.Keys(p.Verdicts)) {
		verdicts = append(verdicts, fmt.Sprintf("%d %s", p.Verdicts[v], plain(v)))
	}
	row := func(name, text string) { t.hang("          ", pad(name, 10), text) }
	row("runs", fmt.Sprintf("%d: %s", p.Runs, strings.Join(verdicts, ", ")))
	lost := share(p.Lost, p.Acknowledged, p.LostLow, p.LostHigh, "acknowledged updates")
	lost += "; in " + share(p.RunsLosing, p.Runs, p.LosingLow, p.LosingHigh, "runs")
	if p.Faults > 0 {
		lost += fmt.Sprintf("; %s for each of %s that counted", trimmed(p.LossPerFault(), 2), many(p.Faults, "fault"))
	}
	row("lost", lost)
	row("overlaps", fmt.Sprintf("%s, %s", many(p.BrokenPromises, "broken promise"), many(p.OutlivedLeases, "outlived lease")))
	row("stale", many(p.StaleWrites, "write"))
	if causes := slices.Collect(maps.Keys(p.Causes)); len(causes) > 0 {
		slices.SortFunc(causes, func(a, b string) int {
			return cmp.Or(cmp.Compare(p.Causes[b], p.Causes[a]), cmp.Compare(a, b))
		})
		var parts []string
		for _, c := range causes {
			parts = append(parts, fmt.Sprintf("%s (%d)", c, p.Causes[c]))
		}
		row("lost by", strings.Join(parts, ", "))
	}
	_, err := w.Write(t.out.Bytes())
	return err
}

// share is k of n with its 95 % interval in percent.
func share(k, n int64, low, high float64, noun string) string {
	text := grouped(k) + " of " + grouped(n) + " " + noun
	if n == 0 {
		return text
	}
	return text + " (95 % interval " + trimmed(100*low, 2) + " % to " + trimmed(100*high, 2) + " %)"
}

// Compared writes how two runs differ, for people.
func Compared(w io.Writer, differences []checker.Difference, o TerminalOptions) error {
	t := newTerminal(o)
	for _, d := range differences {
		low1, high1 := checker.Wilson(d.K1, d.N1)
		low2, high2 := checker.Wilson(d.K2, d.N2)
		conclusion := "no difference is shown"
		switch {
		case d.N1 == 0 || d.N2 == 0:
			conclusion = "nothing to compare"
		case d.Worse():
			conclusion = "the second is worse"
		case d.Better():
			conclusion = "the second is better"
		}
		t.hang("    ", "", fmt.Sprintf("%s: %s, then %s: %s (p = %.2g)", d.What,
			share(d.K1, d.N1, low1, high1, ""), share(d.K2, d.N2, low2, high2, ""), conclusion, d.Chance()))
	}
	t.hang("    ", "", "p is the probability of such a difference between runs that do not differ, by Fisher's exact test, which takes events for independent; below 0.017, 0.05 for all three, it is not put down to chance. Faults that hit other moments make runs differ, too: compare several (--test-count).")
	_, err := w.Write(t.out.Bytes())
	return err
}
