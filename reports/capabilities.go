package reports

import (
	"fmt"
	"slices"
	"strings"
)

// capability is something that one chooses a lock by.
type capability struct {
	name string
	text func(m Matrix, lock string) string // "" where nothing is known
}

// capabilitiesNote says where the capabilities come from.
const capabilitiesNote = "Observed in the runs below, without a guard where nothing else is said; but the clock that a lock depends on, " +
	"its number of servers and the source of its token are what is known of it without a run."

// capabilities are the columns that the field compares locks by.
func capabilities() []capability {
	under := func(fault string) func(Matrix, string) string {
		return func(m Matrix, lock string) string { return m.standing(lock, fault) }
	}
	return []capability{
		{"servers", func(m Matrix, lock string) string { return fmt.Sprint(m.About[lock].Servers) }},
		{"one server killed", func(m Matrix, lock string) string { return m.tolerance(lock, "kill:one server") }},
		{"fencing token", func(m Matrix, lock string) string {
			if m.About[lock].Token == "" {
				return "none"
			}
			return clean(m.About[lock].Token) + m.order(lock)
		}},
		{"acquire alone, p50", func(m Matrix, lock string) string {
			return quantile(m.cell(lock, "none", "none").Pool.Measures.Uncontended, 0.5)
		}},
		{"wait for it, p50 / p99", func(m Matrix, lock string) string {
			wait := m.cell(lock, "none", "none").Pool.Measures.Wait
			if wait.N == 0 {
				return ""
			}
			return quantile(wait, 0.5) + " / " + quantile(wait, 0.99)
		}},
		{"depends on the clock", func(m Matrix, lock string) string { return clean(m.About[lock].Clock) }},
		{"clock step", under("clock")},
		{"holder paused", under("pause:holder")},
		{"the same, fenced", func(m Matrix, lock string) string { return m.standingBehind(lock, "fence", "pause:holder") }},
		{"holder cut off", under("partition:holder")},
		{"holder killed: free after / lease", func(m Matrix, lock string) string {
			return m.cell(lock, "none", "kill:holder").failover()
		}},
		{"versions", Matrix.versions},
	}
}

// capabilities are the columns in which there is anything to show.
func (m Matrix) capabilities() []capability {
	return slices.DeleteFunc(capabilities(), func(t capability) bool {
		return !slices.ContainsFunc(m.Locks, func(lock string) bool { return t.text(m, lock) != "" })
	})
}

// versions lists those of the servers of a lock and of the modules of its client.
func (m Matrix) versions(lock string) string {
	for _, cell := range m.Cells {
		if cell.Lock == lock && len(cell.Versions) > 0 {
			return versionsText(cell.Versions)
		}
	}
	return ""
}

// standing says how a lock without a guard stood a fault.
func (m Matrix) standing(lock, fault string) string { return m.standingBehind(lock, "none", fault) }

func (m Matrix) standingBehind(lock, guard, fault string) string {
	cell := m.cell(lock, guard, fault)
	switch {
	case cell.Lock == "":
		return ""
	case cell.Pool.Lost > 0:
		return fmt.Sprintf("lost %s of %s", grouped(cell.Pool.Lost), grouped(cell.Pool.Acknowledged))
	}
	return cell.word()
}

// tolerance says how a lock stood a fault of its servers, and for which share of the time
// of the fault it was granted.
func (m Matrix) tolerance(lock, fault string) string {
	text := m.standing(lock, fault)
	measures := m.cell(lock, "none", fault).Pool.Measures
	if share, known := measures.Availability(); known {
		text += fmt.Sprintf(", available %.0f %%", 100*share)
	}
	return text
}

// order says in how many runs the tokens of a lock were seen to keep their order.
func (m Matrix) order(lock string) string {
	kept, violated := 0, 0
	for _, cell := range m.Cells {
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

// failover is the longest failover against the lease.
func (c Cell) failover() string {
	if c.Unavailable != "" {
		return "–"
	}
	text := quantile(c.Pool.Measures.Failover, 1)
	if stuck := c.Pool.Stuck; stuck > 0 {
		text = strings.TrimPrefix(text+", never for "+many(stuck, "holder"), ", ")
	}
	if text != "" && c.Lease > 0 {
		text += " / " + length(c.Lease)
	}
	return text
}
