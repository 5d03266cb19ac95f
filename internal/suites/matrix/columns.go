package matrix

import (
	"fmt"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/internal/stats"
	"lockcheck/reports"
)

type column struct {
	name, summary string
	text          func(Cell) string // "" if the cell has no data for it
}

// columns lists the columns of the table of figures that have data in at least one cell.
func (c Comparison) columns() []column {
	all := []column{
		{"lost", "acknowledged updates that are lost, of all", func(c Cell) string { return ratioOf(c.Pool.Lost, c.Pool.Acknowledged) }},
		{"95 %", "interval of the share of lost updates, and how many independent parts of the runs it is over", func(c Cell) string {
			return textIf(c.Pool.Acknowledged > 0, reports.LossInterval(c.Pool.LossInterval))
		}},
		{"overlaps", "overlapping holders: with a healthy earlier holder / with one that was paused or cut off", func(c Cell) string {
			return fmt.Sprintf("%d / %d", c.Pool.Overlaps.EarlierHealthy, c.Pool.Overlaps.EarlierPaused+c.Pool.Overlaps.EarlierCutOff)
		}},
		{"double grants", "overlaps in which the service granted the lock twice", func(c Cell) string { return reports.Grouped(c.Pool.Overlaps.DoubleGrants) }},
		{"stale", "stale writes", func(c Cell) string { return reports.Grouped(c.Pool.StaleWrites) }},
		{"refused", "accesses that the guard refused", func(c Cell) string { return reports.Grouped(c.Pool.Refused) }},
		quantile("acquire alone", "median time to acquire the lock while nobody else wants it", 0.5, func(m checker.Measures) stats.Histogram { return m.Uncontended }),
		quantile("wait p50", "median time from a worker's first attempt to its grant", 0.5, func(m checker.Measures) stats.Histogram { return m.Wait }),
		quantile("p99", "the same, of 99 of 100", 0.99, func(m checker.Measures) stats.Histogram { return m.Wait }),
		{"updates/s", "acknowledged updates, or holds if nothing is updated, a second", func(c Cell) string {
			rate, known := c.Pool.Measures.Throughput()
			return textIf(known, reports.Trimmed(rate, 1))
		}},
		{"failover", "longest time from the stop, cut or end of a holder to the next grant, against the lease", failover},
		{"notified", "longest time from the next grant until the replaced holder was notified; late: holders that learned of it at their release or never", notified},
		{"available", "share of the time of faults without an outage", func(c Cell) string {
			share, known := c.Pool.Measures.Availability()
			return textIf(known, reports.Trimmed(100*share, 0)+" %")
		}},
		{"wake-ups", "notifications of waiters for each release, if the client counts them", func(c Cell) string {
			wakes, known := c.Pool.Measures.WakesPerRelease()
			return textIf(known, reports.Trimmed(wakes, 2))
		}},
		{"bypassed", "grants given past somebody who had asked before, of those that waited", func(c Cell) string {
			return ratioOf(c.Pool.Measures.Bypassed, c.Pool.Measures.Waited)
		}},
	}
	return slices.DeleteFunc(all, func(col column) bool {
		return !slices.ContainsFunc(c.Cells, func(cell Cell) bool { return len(cell.Runs) > 0 && col.text(cell) != "" })
	})
}

func quantile(name, summary string, q float64, of func(checker.Measures) stats.Histogram) column {
	return column{name, summary, func(c Cell) string { return reports.Quantile(of(c.Pool.Measures), q) }}
}

// textIf is the text if the figure is known, otherwise "".
func textIf(known bool, text string) string {
	if !known {
		return ""
	}
	return text
}

func ratioOf(part, all int64) string {
	return textIf(all > 0, reports.Grouped(part)+"/"+reports.Grouped(all))
}

func failover(c Cell) string {
	text := reports.Quantile(c.Pool.Measures.Failover, 1)
	if c.Pool.Stuck > 0 {
		text = strings.TrimPrefix(text+", never for "+reports.Many(c.Pool.Stuck, "holder"), ", ")
	}
	if text != "" && c.Lease > 0 {
		text += " / " + reports.Length(c.Lease)
	}
	return text
}

func notified(c Cell) string {
	n := c.Pool.LossNotifications
	late := n.Never + n.AtRelease
	switch text := reports.Quantile(c.Pool.Measures.Notified, 1); {
	case n.Replaced == 0:
		return ""
	case late == 0:
		return text
	case text == "":
		return fmt.Sprintf("late (%d)", late)
	default:
		return fmt.Sprintf("%s, late %d of %d", text, late, n.Replaced)
	}
}
