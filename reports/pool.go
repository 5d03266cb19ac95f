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
	if p.RunsJudged > 0 {
		row("lost", losses(p))
	}
	row("overlaps", fmt.Sprintf("%s, %s", many(p.Overlaps.BrokenPromises, "broken promise"), many(p.Overlaps.OutlivedLeases, "outlived lease")))
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

// losses is what was lost of what could be.
func losses(p checker.Pool) string {
	text := share(p.Lost, p.Acknowledged, p.LostLow, p.LostHigh, "acknowledged updates") +
		"; in " + share(p.RunsLosing, p.RunsJudged, p.LosingLow, p.LosingHigh, "runs")
	if p.Faults > 0 {
		text += fmt.Sprintf("; %s for each of %s that counted", trimmed(p.LossPerFault(), 2), many(p.Faults, "fault"))
	}
	return text
}

// share is k of n with its 95 % interval in percent.
func share(k, n int64, low, high float64, noun string) string {
	return grouped(k) + " of " + grouped(n) + " " + noun + " (95 % interval " + inPercent(low) + " % to " + inPercent(high) + " %)"
}

// Compared writes how two runs differ, for people.
func Compared(w io.Writer, differences []checker.Difference, o TerminalOptions) error {
	t := newTerminal(o)
	for _, c := range contrasts(differences) {
		t.hang("    ", "", fmt.Sprintf("%s: %s, then %s: %s (p = %s)", c.What, c.First, c.Second, c.Conclusion, c.Chance))
	}
	t.hang("    ", "", chanceNote)
	_, err := w.Write(t.out.Bytes())
	return err
}
