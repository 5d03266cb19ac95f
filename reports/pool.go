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

// Difference is how often something happened in two runs, of how many times that it
// could have.
type Difference struct {
	What string
	// K1 of N1 in the first run, K2 of N2 in the second.
	K1, N1, K2, N2 int64
}

// significant is the probability below which a difference is not put down to chance: 5 %
// for all that two runs are compared by together (C. E. Bonferroni).
const significant = 0.05 / 3

// Chance is the probability of such a difference between runs that do not differ.
func (d Difference) Chance() float64 { return checker.SameShare(d.K1, d.N1, d.K2, d.N2) }

// Worse says whether the second run has a higher share, and not by chance.
func (d Difference) Worse() bool {
	return float64(d.K2)*float64(d.N1) > float64(d.K1)*float64(d.N2) && d.Chance() < significant
}

// Differences are those that two runs are compared by. Of lost updates the writes that
// lost them are counted: one write can lose many.
func Differences(a, b checker.Results) []Difference {
	stale := func(r checker.Results) int64 {
		for _, f := range r.Findings {
			if f.Property == checker.NoStaleWrite {
				return int64(f.Total)
			}
		}
		return 0
	}
	return []Difference{
		{What: "writes that lost updates", K1: a.Updates.LossEvents, N1: a.Updates.Acknowledged, K2: b.Updates.LossEvents, N2: b.Updates.Acknowledged},
		{What: "stale writes", K1: stale(a), N1: a.Operations.Acknowledged, K2: stale(b), N2: b.Operations.Acknowledged},
		{What: "locks gone at release", K1: a.Operations.GoneAtRelease, N1: a.Operations.Acquired, K2: b.Operations.GoneAtRelease, N2: b.Operations.Acquired},
	}
}

// Compared writes how two runs differ, for people.
func Compared(w io.Writer, differences []Difference, o TerminalOptions) error {
	t := newTerminal(o)
	for _, d := range differences {
		low1, high1 := checker.Wilson(d.K1, d.N1)
		low2, high2 := checker.Wilson(d.K2, d.N2)
		conclusion := "no difference is shown"
		switch p := d.Chance(); {
		case d.N1 == 0 || d.N2 == 0:
			conclusion = "nothing to compare"
		case d.Worse():
			conclusion = "the second is worse"
		case p < significant:
			conclusion = "the second is better"
		}
		t.hang("    ", "", fmt.Sprintf("%s: %s, then %s: %s (p = %.2g)", d.What,
			share(d.K1, d.N1, low1, high1, ""), share(d.K2, d.N2, low2, high2, ""), conclusion, d.Chance()))
	}
	t.hang("    ", "", "p is the probability of such a difference between runs that do not differ, by Fisher's exact test, which takes events for independent; below 0.017, 0.05 for all three, it is not put down to chance. Faults that hit other moments make runs differ, too: compare several (--test-count).")
	_, err := w.Write(t.out.Bytes())
	return err
}
