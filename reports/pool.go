package reports

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/present"
)

// Pooled writes the pooled results of several runs of one test, for people.
func Pooled(w io.Writer, p checker.Pool, o TerminalOptions) error {
	t := newTerminal(o)
	t.blank()
	var verdicts []string
	for _, v := range slices.Sorted(maps.Keys(p.Verdicts)) {
		verdicts = append(verdicts, fmt.Sprintf("%d %s", p.Verdicts[v], Plain(v)))
	}
	row := func(name, text string) { t.writeIndented("          ", pad(name, 10), text) }
	row("runs", fmt.Sprintf("%d: %s", p.Runs, strings.Join(verdicts, ", ")))
	if p.RunsJudged > 0 {
		row("lost", losses(p))
	}
	row("overlaps", fmt.Sprintf("%s, %s after expiry", Many(p.Overlaps.DoubleGrants, "double grant"), Many(p.Overlaps.UsesAfterExpiry, "use")))
	row("stale", Many(p.StaleWrites, "write"))
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

// losses says how many acknowledged updates were lost, and in how many runs.
func losses(p checker.Pool) string {
	text := Grouped(p.Lost) + " of " + Many(p.Acknowledged, "acknowledged update") + " (" + interval(p.LossInterval) + "); in " +
		Grouped(p.RunsLosing) + " of " + Many(p.RunsJudged, "run") + " (95 % interval: " + Percent(p.LosingLow) + " to " + Percent(p.LosingHigh) + ")"
	if p.Faults > 0 {
		text += fmt.Sprintf("; %s for each of %s that counted", Trimmed(p.LossPerFault(), 2), Many(p.Faults, "fault"))
	}
	return text
}

// interval is the interval of the share of lost updates in percent, and the units that it is over.
func interval(i checker.LossInterval) string {
	name := "95 % interval"
	if units := present.Units(i); units != "" {
		name += " over " + units
	}
	if !i.IntervalKnown() {
		return "no " + name
	}
	return name + ": " + Percent(i.LostLow) + " to " + Percent(i.LostHigh)
}

// LossInterval is the interval for a cell of a table: "15–23 % (5 faults)".
func LossInterval(i checker.LossInterval) string {
	text := "no interval"
	if i.IntervalKnown() {
		text = inPercent(i.LostLow) + "–" + inPercent(i.LostHigh) + " %"
	}
	if units := present.Units(i); units != "" {
		text += " (" + units + ")"
	}
	return text
}
