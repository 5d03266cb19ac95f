package reports

import (
	"fmt"
	"slices"
	"strings"
)

// trait is something that one chooses a lock by.
type trait struct {
	name string
	text func(c Comparison, lock string) string // "" where nothing is known
}

// traitsNote says where the traits come from.
const traitsNote = "Observed in the runs below, without a guard where nothing else is said; but the clock that a lock depends on, " +
	"its number of servers and the source of its token are what is known of it without a run."

// traits are the columns that the field compares locks by.
func traits() []trait {
	under := func(fault string) func(Comparison, string) string {
		return func(c Comparison, lock string) string { return c.standing(lock, fault) }
	}
	return []trait{
		{"servers", func(c Comparison, lock string) string { return fmt.Sprint(c.About[lock].Servers) }},
		{"one server killed", func(c Comparison, lock string) string { return c.tolerance(lock, "kill:one server") }},
		{"fencing token", func(c Comparison, lock string) string {
			if c.About[lock].Token == "" {
				return "none"
			}
			return clean(c.About[lock].Token) + c.order(lock)
		}},
		{"acquire alone, p50", func(c Comparison, lock string) string {
			return quantile(c.cell(lock, "none", "none").Pool.Measures.Uncontended, 0.5)
		}},
		{"wait for it, p50 / p99", func(c Comparison, lock string) string {
			m := c.cell(lock, "none", "none").Pool.Measures
			if m.Wait.N == 0 {
				return ""
			}
			return quantile(m.Wait, 0.5) + " / " + quantile(m.Wait, 0.99)
		}},
		{"depends on the clock", func(c Comparison, lock string) string { return clean(c.About[lock].Clock) }},
		{"clock step", under("clock")},
		{"holder paused", under("pause:holder")},
		{"the same, fenced", func(c Comparison, lock string) string { return c.standingBehind(lock, "fence", "pause:holder") }},
		{"holder cut off", under("partition:holder")},
		{"holder killed: free after / lease", func(c Comparison, lock string) string {
			return c.cell(lock, "none", "kill:holder").handover()
		}},
		{"versions", Comparison.versions},
	}
}

// traits are the columns in which there is anything to show.
func (c Comparison) traits() []trait {
	return slices.DeleteFunc(traits(), func(t trait) bool {
		return !slices.ContainsFunc(c.Locks, func(lock string) bool { return t.text(c, lock) != "" })
	})
}

// versions lists those of the servers of a lock and of the modules of its client.
func (c Comparison) versions(lock string) string {
	for _, cell := range c.Cells {
		if cell.Lock == lock && len(cell.Versions) > 0 {
			return versionsText(cell.Versions)
		}
	}
	return ""
}

// standing says how a lock without a guard stood a fault.
func (c Comparison) standing(lock, fault string) string { return c.standingBehind(lock, "none", fault) }

func (c Comparison) standingBehind(lock, guard, fault string) string {
	cell := c.cell(lock, guard, fault)
	switch {
	case cell.Lock == "":
		return ""
	case cell.Pool.Lost > 0:
		return fmt.Sprintf("lost %s of %s", grouped(cell.Pool.Lost), grouped(cell.Pool.Acknowledged))
	}
	return cell.word()
}

// tolerance says how a lock stood a fault of its servers, and for which share of the time
// of the fault it could be had.
func (c Comparison) tolerance(lock, fault string) string {
	text := c.standing(lock, fault)
	m := c.cell(lock, "none", fault).Pool.Measures
	if share, known := m.Availability(); known {
		text += fmt.Sprintf(", available %.0f %%", 100*share)
	}
	return text
}

// order says in how many runs the tokens of a lock were seen to keep their order.
func (c Comparison) order(lock string) string {
	kept, violated := 0, 0
	for _, cell := range c.Cells {
		if cell.Lock == lock {
			kept, violated = kept+cell.TokensKept, violated+cell.TokensViolated
		}
	}
	switch {
	case violated > 0:
		return fmt.Sprintf("; out of order in %d of %s", violated, many(int64(kept+violated), "run"))
	case kept > 0:
		return fmt.Sprintf("; in order in %s", many(int64(kept), "run"))
	}
	return ""
}

// handover is the longest hand-over against the lease.
func (c ComparedCell) handover() string {
	if c.Unavailable != "" {
		return "–"
	}
	text := quantile(c.Pool.Measures.Handover, 1)
	if stuck := c.Pool.Stuck; stuck > 0 {
		text = strings.TrimPrefix(text+", never for "+many(stuck, "holder"), ", ")
	}
	if text != "" && c.Lease > 0 {
		text += " / " + length(c.Lease)
	}
	return text
}
