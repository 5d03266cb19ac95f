package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/stats"
)

// Compared is a cell held against the same one of a baseline.
type Compared struct {
	// Verdict: violation if it is worse, valid if it is not, and that of the cell by itself, or
	// undecided, if that cannot be told.
	Verdict checker.Verdict `json:"verdict"`
	New     bool            `json:"new,omitempty"` // the baseline does not have it, or no decided run of it
	Not     string          `json:"not,omitempty"` // why it cannot be compared; "" if it can
	// Since lists what is violated now and was not in the baseline.
	Since   []string         `json:"since,omitempty"`
	Changes []checker.Change `json:"changes,omitempty"`
	Figures int              `json:"figures"` // how many of all cells are compared
}

// Worse says whether anything is worse than in the baseline, and not by chance.
func (k Compared) Worse() bool {
	return len(k.Since) > 0 || slices.ContainsFunc(k.Changes, checker.Change.Worse)
}

// TooFew says whether there are too few runs to compare every figure.
func (k Compared) TooFew() bool {
	return slices.ContainsFunc(k.Changes, func(c checker.Change) bool { return !c.Compared })
}

// tooFew says how many cells have too few runs, once for all of them, and how many it takes; "" if
// none has.
func (m Matrix) tooFew() string {
	cells, figures, before, enough := int64(0), 0, 0, true
	var which []string
	for _, c := range m.Cells {
		if c.Compared == nil || !c.Compared.TooFew() {
			continue
		}
		cells++
		figures = c.Compared.Figures
		for _, change := range c.Compared.Changes {
			if change.Compared {
				continue
			}
			if !slices.Contains(which, change.What) {
				which = append(which, change.What)
			}
			needed := checker.UnitsNeeded(change.Units[1], figures)
			before, enough = max(before, needed), enough && needed > 0
		}
	}
	if cells == 0 {
		return ""
	}
	text := fmt.Sprintf("%s with too few runs to be compared with the baseline by %s: ", many(cells, "cell"), strings.Join(cleanAll(which), ", "))
	needed := stats.RunsNeeded(figures, checker.Chance)
	if needed == 0 {
		return text + fmt.Sprintf("%d figures are too many for any number of runs, so compare fewer cells", figures)
	}
	text += fmt.Sprintf("it takes %d that have such a figure on both sides", needed)
	if enough {
		text += fmt.Sprintf(", or %d in the baseline next to those of now", before)
	}
	return text
}

// remarks say what came of it, but for what has too few runs.
func (k Compared) remarks() []string {
	switch {
	case k.New:
		return []string{"not in the baseline, or never decided there"}
	case k.Not != "":
		return []string{"cannot be compared with the baseline: " + clean(k.Not)}
	}
	lead := "no worse than the baseline"
	switch {
	case k.Worse():
		lead = "worse than the baseline"
	case k.Verdict == checker.Undecided || k.Verdict == checker.Broken:
		lead = "whether it is worse than the baseline cannot be told"
	case k.TooFew():
		lead += " as far as it can be told"
	}
	if len(k.Since) > 0 {
		lead += ", which did not have " + strings.Join(cleanAll(k.Since), ", ")
	}
	var all []string
	for _, c := range k.Changes {
		if c.Compared {
			all = append(all, change(c))
		}
	}
	switch {
	case len(all) == 0 && k.TooFew() && !k.Worse():
		return nil
	case len(all) == 0:
		return []string{lead}
	}
	return []string{lead + ": " + strings.Join(all, "; ")}
}

// change is a figure before and now, and what that amounts to.
func change(c checker.Change) string {
	value := func(v float64) string {
		switch {
		case c.Time && v >= math.MaxInt64:
			return "never"
		case c.Time:
			return length(time.Duration(v))
		}
		return inPercent(v) + " %"
	}
	text := fmt.Sprintf("%s %s before, %s now (p = %.2g, of %d %s before and %d now)", clean(c.What), value(c.Before), value(c.Now), c.Chance, c.Units[0], clean(c.Over), c.Units[1])
	switch {
	case c.Worse():
		text += ", worse"
	case c.Better():
		text += ", better"
	case c.Shown:
		text += ", not by enough to count"
	case c.Found > 0:
		text += ", would have shown from " + value(c.Found) + " on"
	}
	return text
}
