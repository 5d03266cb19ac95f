package matrix

import (
	"fmt"
	"slices"
	"strings"

	"lockcheck/reports"
)

// columns of the table of figures, in its order.
func columns() []column {
	return []column{
		{"lost", "acknowledged updates that are lost, of all", func(c Cell) string {
			if c.Pool.Acknowledged == 0 {
				return ""
			}
			return reports.Grouped(c.Pool.Lost) + "/" + reports.Grouped(c.Pool.Acknowledged)
		}},
		{"95 %", "interval of the share of lost updates, and how many independent parts of the runs it is over", func(c Cell) string {
			if c.Pool.Acknowledged == 0 {
				return ""
			}
			return reports.LossInterval(c.Pool.LossInterval)
		}},
		{"overlaps", "overlapping holders: with a healthy earlier holder / with one that was paused or cut off", func(c Cell) string {
			o := c.Pool.Overlaps
			return fmt.Sprintf("%d / %d", o.EarlierHealthy, o.EarlierPaused+o.EarlierCutOff)
		}},
		{"double grants", "overlaps in which the service granted the lock twice", func(c Cell) string { return reports.Grouped(c.Pool.Overlaps.DoubleGrants) }},
		{"stale", "stale writes", func(c Cell) string { return reports.Grouped(c.Pool.StaleWrites) }},
		{"refused", "accesses that the guard refused", func(c Cell) string { return reports.Grouped(c.Pool.Refused) }},
		{"acquire alone", "median time to acquire the lock while nobody else wants it", func(c Cell) string { return reports.Quantile(c.Pool.Measures.Uncontended, 0.5) }},
		{"wait p50", "median time from a worker's first attempt to its grant", func(c Cell) string { return reports.Quantile(c.Pool.Measures.Wait, 0.5) }},
		{"p99", "the same, of 99 of 100", func(c Cell) string { return reports.Quantile(c.Pool.Measures.Wait, 0.99) }},
		{"updates/s", "acknowledged updates, or holds if nothing is updated, a second", func(c Cell) string {
			rate, known := c.Pool.Measures.Throughput()
			if !known {
				return ""
			}
			return reports.Trimmed(rate, 1)
		}},
		{"failover", "longest time from the stop, cut or end of a holder to the next grant, against the lease", Cell.failover},
		{"notified", "longest time from the next grant until the replaced holder was notified; late, those who learned of it at their release or never", func(c Cell) string {
			n := c.Pool.LossNotifications
			switch text := reports.Quantile(c.Pool.Measures.Notified, 1); {
			case n.Replaced == 0:
				return ""
			case n.Never+n.AtRelease == 0:
				return text
			case text == "":
				return fmt.Sprintf("late (%d)", n.Never+n.AtRelease)
			default:
				return fmt.Sprintf("%s, late %d of %d", text, n.Never+n.AtRelease, n.Replaced)
			}
		}},
		{"available", "share of the time of faults without an outage", func(c Cell) string {
			share, known := c.Pool.Measures.Availability()
			if !known {
				return ""
			}
			return reports.Trimmed(100*share, 0) + " %"
		}},
		{"wake-ups", "notifications of waiters for each release, if the client counts them", func(c Cell) string {
			wakes, known := c.Pool.Measures.WakesPerRelease()
			if !known {
				return ""
			}
			return reports.Trimmed(wakes, 2)
		}},
		{"bypassed", "grants given past somebody who had asked before, of those that waited", func(c Cell) string {
			m := c.Pool.Measures
			if m.Waited == 0 {
				return ""
			}
			return reports.Grouped(m.Bypassed) + "/" + reports.Grouped(m.Waited)
		}},
	}
}

// columns are those of the table of figures in which there is anything to show.
func (c Comparison) columns() []column {
	return slices.DeleteFunc(columns(), func(col column) bool {
		return !slices.ContainsFunc(c.Cells, func(cell Cell) bool { return len(cell.Runs) > 0 && col.text(cell) != "" })
	})
}

// column is one figure of a cell.
type column struct {
	name, summary string
	text          func(Cell) string // "" where there is no data
}

// failover is the longest failover against the lease.
func (c Cell) failover() string {
	text := reports.Quantile(c.Pool.Measures.Failover, 1)
	if stuck := c.Pool.Stuck; stuck > 0 {
		text = strings.TrimPrefix(text+", never for "+reports.Many(stuck, "holder"), ", ")
	}
	if text != "" && c.Lease > 0 {
		text += " / " + reports.Length(c.Lease)
	}
	return text
}
