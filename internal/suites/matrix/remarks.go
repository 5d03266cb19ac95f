package matrix

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/stats"
	"lockcheck/present"
	"lockcheck/reports"
)

// remarks qualify a verdict: whether it was expected, how often it recurred, how it compares with the
// baseline, and which runs are missing.
func (c Cell) remarks() []string {
	var all []string
	if c.Expected != nil {
		all = append(all, c.Expected.remark(c.Verdict))
	}
	switch n := len(c.Rounds); n {
	case 0:
	case 1:
		all = append(all, "to be repeated with other seeds, which was not done yet")
	default:
		bad := 0
		for _, v := range c.Rounds {
			if v != checker.Valid {
				bad++
			}
		}
		all = append(all, fmt.Sprintf("not valid in %d of %d runs: the first, and %s with other seeds", bad, n, reports.Many(n-1, "repetition")))
	}
	if c.Compared != nil {
		all = append(all, c.Compared.remark())
	}
	if c.OutOfTime > 0 {
		all = append(all, reports.Many(c.OutOfTime, "run")+" not made for lack of time")
	}
	if c.Outdated > 0 {
		all = append(all, outdatedText(c.Outdated))
	}
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

func outdatedText(n int) string {
	return reports.Many(n, "earlier trial") + " left out, because the attack has changed since"
}

// remark says whether the verdict of a cell is the expected one.
func (e Expected) remark(got checker.Verdict) string {
	expected := string(reports.Plain(e.Verdict))
	text := "not as expected: " + expected
	switch {
	case e.Met:
		text = "as expected"
	case got == checker.Valid:
		text = "valid, although " + expected + " is expected"
	case len(e.Properties) > 0:
		text += " of " + reports.Properties(e.Properties) + " only"
	}
	if e.Because != "" {
		text += " (" + e.Because + ")"
	}
	return text
}

// Compared is the result of comparing a cell with the same cell of a baseline.
type Compared struct {
	// Verdict is violation if the cell is worse than the baseline, and valid if it is not. If that cannot be
	// decided, it is the cell's own verdict or undecided.
	Verdict checker.Verdict `json:"verdict"`
	New     bool            `json:"new,omitempty"` // the baseline lacks the cell, or has no decided run of it
	Not     string          `json:"not,omitempty"` // why the cell cannot be compared; "" if it can
	// Since lists what is violated now and was not violated in the baseline.
	Since   []string         `json:"since,omitempty"`
	Changes []checker.Change `json:"changes,omitempty"`
	Figures int              `json:"figures"` // number of figures compared, over all cells
}

// worse says whether anything is worse than in the baseline, and not by chance.
func (k Compared) worse() bool {
	return len(k.Since) > 0 || slices.ContainsFunc(k.Changes, checker.Change.Worse)
}

// tooFew says whether there are too few runs to compare every figure.
func (k Compared) tooFew() bool {
	return slices.ContainsFunc(k.Changes, func(c checker.Change) bool { return !c.Compared })
}

// remark says how the cell compares with the baseline. It is "" if there are too few runs to compare
// anything, which Comparison.tooFew reports for all cells at once.
func (k Compared) remark() string {
	switch {
	case k.New:
		return "not in the baseline, or never decided there"
	case k.Not != "":
		return "cannot be compared with the baseline: " + k.Not
	}
	var changes []string
	for _, c := range k.Changes {
		if c.Compared {
			changes = append(changes, changeText(c))
		}
	}
	lead := "no worse than the baseline"
	switch {
	case k.worse():
		lead = "worse than the baseline"
	case len(changes) == 0 && k.tooFew():
		return ""
	case k.Verdict == checker.Undecided || k.Verdict == checker.Broken:
		lead = "not known whether it is worse than the baseline"
	case k.tooFew():
		lead += " in the figures that can be compared"
	}
	if len(k.Since) > 0 {
		lead += ", which did not have " + strings.Join(k.Since, ", ")
	}
	if len(changes) == 0 {
		return lead
	}
	return lead + ": " + strings.Join(changes, "; ")
}

// changeText is a figure before and now, and whether the difference matters.
func changeText(c checker.Change) string {
	value := func(v float64) string {
		switch {
		case c.Time && v >= math.MaxInt64:
			return "never"
		case c.Time:
			return reports.Length(time.Duration(v))
		}
		return reports.Percent(v)
	}
	text := fmt.Sprintf("%s %s before, %s now (p = %.2g, of %d %s before and %d now)", present.Quantity(c.What), value(c.Before), value(c.Now), c.Chance, c.Units[0], c.Over, c.Units[1])
	switch {
	case c.Worse():
		text += ", worse"
	case c.Better():
		text += ", better"
	case c.Shown:
		text += ", not by enough to count"
	case c.Found > 0:
		text += ", a difference would show from " + value(c.Found) + " on"
	}
	return text
}

// tooFew says how many cells have too few runs for the baseline, and how many runs they need; "" if no cell
// has too few.
func (c Comparison) tooFew() string {
	cells, figures, before, enough := 0, 0, 0, true
	var which []string
	for _, cell := range c.Cells {
		if cell.Compared == nil || !cell.Compared.tooFew() {
			continue
		}
		cells++
		figures = cell.Compared.Figures
		for _, change := range cell.Compared.Changes {
			if change.Compared {
				continue
			}
			if what := present.Quantity(change.What); !slices.Contains(which, what) {
				which = append(which, what)
			}
			needed := checker.UnitsNeeded(change.Units[1], figures)
			before, enough = max(before, needed), enough && needed > 0
		}
	}
	if cells == 0 {
		return ""
	}
	text := fmt.Sprintf("%s with too few runs to compare %s with the baseline: ", reports.Many(cells, "cell"), strings.Join(which, ", "))
	needed := stats.RunsNeeded(figures, checker.Chance)
	if needed == 0 {
		return text + fmt.Sprintf("no number of runs is enough for %d figures, so compare fewer cells", figures)
	}
	text += fmt.Sprintf("it takes %d runs with such a figure on both sides", needed)
	if enough {
		text += fmt.Sprintf(", or %d in the baseline next to those of now", before)
	}
	return text
}

func (c Comparison) remarkList() reports.List {
	var list reports.List
	for _, cell := range c.Cells {
		for _, text := range cell.remarks() {
			list.Items = append(list.Items, reports.Item{Text: cell.String() + ": " + text})
		}
	}
	return list
}

// repetition is the command for the most informative run of a cell that is not as wanted: the first run with
// the verdict of the runs, otherwise the first run. A reproduction of what an attack found comes first. It is
// nil if the cell is as wanted, has no run, or the command is unknown.
func (c Cell) repetition() []string {
	// No run would show that a valid cell cannot be compared with a baseline.
	wanted := c.countedVerdict() == checker.Valid || c.Verdict == checker.Valid && c.countedVerdict() != checker.Violation
	if len(c.Runs) == 0 || wanted {
		return nil
	}
	if c.Repro != nil && c.OfRuns == checker.Violation {
		return c.Repro
	}
	i := slices.IndexFunc(c.Runs, func(r Run) bool { return r.Verdict == c.OfRuns })
	return c.Runs[max(i, 0)].Command
}

// repetitions lists the commands of all cells that are not as wanted, at most `most` of them; 0 for all.
func (c Comparison) repetitions(most int) reports.List {
	list := reports.List{Summary: "Repeat a run of each cell that is not as wanted"}
	for _, cell := range c.Cells {
		if command := cell.repetition(); command != nil {
			text := cell.String()
			if cell.isAttack() {
				text += ": " + strings.TrimSpace(cell.wordOrProperties()+" "+cell.details())
			}
			list.Items = append(list.Items, reports.Item{Text: text, Command: command})
		}
	}
	if rest := len(list.Items) - cmp.Or(most, len(list.Items)); rest > 0 {
		list.Items = append(list.Items[:most], reports.Item{Text: reports.Grouped(int64(rest)) + " more are in comparison.md and junit.xml"})
	}
	return list
}
