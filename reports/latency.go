package reports

import (
	"math"
	"slices"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"lockcheck/history"
	"lockcheck/internal/stats"
)

const (
	maxDots   = 2000
	stretches = 400 // time steps in which more dots are summed up
)

// latencyChart draws how long each granted acquire took; false if none was granted.
func latencyChart(rec *record) (picture, bool) {
	calls := rec.calls[history.Acquire]
	if len(calls) == 0 {
		return picture{}, false
	}
	shortest, longest := calls[0].took, calls[0].took
	for _, l := range calls {
		shortest, longest = min(shortest, l.took), max(longest, l.took)
	}
	axis := decades(shortest, longest)
	c := newChart(rec, "latency", levelsOf(axis))
	c.Title = "Latency of acquire over time"
	c.Desc = "Time from left to right; upwards, on a logarithmic scale, how long each of " + Many(int64(len(calls)), "granted acquire") +
		" took: from " + Length(shortest) + " to " + Length(longest) + ". Shaded where a fault was in force. The table of latencies has the figures."
	if len(calls) <= maxDots {
		c.dots(calls, axis)
		c.Notes = append(c.Notes, "A dot is an acquire that was granted, at the time of its grant.")
	} else {
		c.drawSummaries(calls, axis)
		c.Notes = append(c.Notes, Grouped(int64(len(calls)))+" granted acquires, gathered into "+strconv.Itoa(stretches)+
			" stretches of time: a line from the fastest to the slowest of each, and a dot at their median.")
	}
	return c.picture, true
}

func (c *canvas) dots(calls []call, axis Axis) {
	p := pen{c: c}
	for _, l := range calls {
		p.dot(l.done, heightOf(l.took, axis))
	}
	p.draw("dots")
}

// drawSummaries draws many calls as a spread per time step, which keeps the extremes.
func (c *canvas) drawSummaries(calls []call, axis Axis) {
	var all [stretches][]time.Duration
	width := (c.to-c.from)/stretches + 1
	for _, l := range calls {
		n := min(max((l.done-c.from)/width, 0), stretches-1)
		all[n] = append(all[n], l.took)
	}
	spread, medians := pen{c: c}, pen{c: c}
	for n, took := range all {
		if len(took) == 0 {
			continue
		}
		middle := c.from + int64(n)*width + width/2
		spread.move(middle, heightOf(slices.Min(took), axis))
		spread.line(middle, heightOf(slices.Max(took), axis))
		medians.dot(middle, heightOf(stats.Median(took), axis))
	}
	spread.draw("spread")
	medians.draw("dots")
}

// decades is a logarithmic axis in ns, between two powers of ten.
func decades(shortest, longest time.Duration) Axis {
	low := int(math.Floor(math.Log10(float64(max(1, shortest)))))
	high := int(math.Ceil(math.Log10(float64(max(1, longest)))))
	return Axis{Low: math.Pow10(low), High: math.Pow10(max(high, low+1))}
}

func levelsOf(decades Axis) []level {
	var out []level
	for d := decades.Low; d <= decades.High; d *= 10 {
		out = append(out, levelAt(decades.along(d), Length(time.Duration(d))))
	}
	return out
}

func heightOf(took time.Duration, on Axis) float64 { return on.along(float64(max(1, took))) }

// latencyRows has, for each operation, the number of calls, quantiles, and the longest call.
func latencyRows(rec *record) (rows [][]string) {
	for _, f := range operations() {
		calls := rec.calls[f]
		if len(calls) == 0 {
			continue
		}
		var took stats.Histogram
		for _, l := range calls {
			took.Add(l.took)
		}
		row := []string{string(f), Grouped(took.N)}
		for _, q := range []float64{0.5, 0.9, 0.99, 0.999} { // as the columns of the table
			row = append(row, quantileText(took, q))
		}
		rows = append(rows, append(row, Length(took.Max)))
	}
	return rows
}

// latencyTable is the table of latencies; nil without rows.
func latencyTable(rows [][]string) g.Node {
	if len(rows) == 0 {
		return nil
	}
	return g.Group{html.H3(html.Class("latencies"), g.Text("Latencies")),
		html.Div(attributes("class", "wide latencies", "role", "region", "tabindex", "0", "aria-label", "Table of latencies"), html.Table(html.Class("numbers"),
			html.Caption(g.Text("From the call to its answer, of those that succeeded; for an acquire that is with the wait in the queue of the service, if it has one. A dash: too few to tell from the longest.")),
			Heads("Operation", "n", "p50", "p90", "p99", "p99.9", "longest"),
			html.TBody(g.Map(rows, func(row []string) g.Node {
				return html.Tr(RowHead(g.Text(row[0])), g.Map(row[1:], func(text string) g.Node { return TextCell("", text) }))
			}))))}
}

// quantileText is a dash if there are too few values to tell the quantile from the maximum.
func quantileText(h stats.Histogram, q float64) string {
	if float64(h.N)*(1-q) < 1-1e-9 {
		return "–"
	}
	return Quantile(h, q)
}

// Quantile formats a quantile of a histogram; "" without measurements.
func Quantile(h stats.Histogram, q float64) string {
	d, known := h.Quantile(q)
	if !known {
		return ""
	}
	return Length(d)
}
