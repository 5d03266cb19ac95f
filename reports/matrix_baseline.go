package reports

import (
	"fmt"
	"math"
	"strings"
	"time"

	"lockcheck/checker"
)

// Compared is a cell held against the same one of a baseline.
type Compared struct {
	// Verdict: violation if it is worse, undecided if that cannot be told, valid if it is not.
	Verdict checker.Verdict `json:"verdict"`
	New     bool            `json:"new,omitempty"` // the baseline does not have it
	Not     string          `json:"not,omitempty"` // why it cannot be compared; "" if it can
	// Since lists what is violated now and was not in the baseline.
	Since   []string         `json:"since,omitempty"`
	Changes []checker.Change `json:"changes,omitempty"`
	Figures int              `json:"figures"` // how many of all cells are compared
}

// remarks say what came of it.
func (k Compared) remarks() []string {
	switch {
	case k.New:
		return []string{"not in the baseline"}
	case k.Not != "":
		return []string{"cannot be compared with the baseline: " + clean(k.Not)}
	}
	lead := map[checker.Verdict]string{
		checker.Valid: "no worse than the baseline", checker.Violation: "worse than the baseline",
	}[k.Verdict]
	if lead == "" {
		lead = "whether it is worse than the baseline cannot be told"
	}
	if len(k.Since) > 0 {
		lead += ", which did not have " + strings.Join(cleanAll(k.Since), ", ")
	}
	var all []string
	for _, c := range k.Changes {
		all = append(all, k.change(c))
	}
	if len(all) == 0 {
		return []string{lead}
	}
	return []string{lead + ": " + strings.Join(all, "; ")}
}

// change is a figure before and now, and what that amounts to.
func (k Compared) change(c checker.Change) string {
	value := func(v float64) string {
		switch {
		case c.Time && v >= math.MaxInt64:
			return "never"
		case c.Time:
			return length(time.Duration(v))
		}
		return inPercent(v) + " %"
	}
	text := fmt.Sprintf("%s %s before, %s now (p = %.2g, %d and %d)", clean(c.What), value(c.Before), value(c.Now), c.Chance, c.Units[0], c.Units[1])
	switch {
	case !c.Compared:
		text += fmt.Sprintf(", too few to show any difference among %s", many(int64(k.Figures), "figure"))
		if needed := checker.UnitsNeeded(c.Units[1], k.Figures); needed > 0 {
			text += fmt.Sprintf(": it takes %d before", needed)
		}
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
