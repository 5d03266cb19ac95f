package profile

import (
	"fmt"
	"math"
	"slices"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/suites"
	"lockcheck/reports"
)

// Schema is the version of the format of profile.json.
const Schema = 1

// Profile is what locks cost, depending on the number of workers.
type Profile struct {
	Schema  int           `json:"schema"`
	Began   time.Time     `json:"began"`
	Time    time.Duration `json:"time_ns"` // of each run
	Think   string        `json:"think"`
	Section string        `json:"section"`
	Points  []Point       `json:"points"` // in the order of the runs
}

// Point is what was measured with a number of workers.
type Point struct {
	Lock    string          `json:"lock"`
	Alone   bool            `json:"alone"` // each worker has its own lock
	Workers int             `json:"workers"`
	Verdict checker.Verdict `json:"verdict"`
	Holds   int64           `json:"holds"`
	// PerSecond is the number of holds per second, summed over all workers.
	PerSecond float64 `json:"per_second"`
	// P50, P99 and P999 are percentiles of the time from a worker's first attempt to its grant; 0 without any
	// grant.
	P50  time.Duration `json:"p50_ns"`
	P99  time.Duration `json:"p99_ns"`
	P999 time.Duration `json:"p999_ns"`
	// Fairness is Jain's index of the workers' grants: 1 if all got equally many, 1/workers if one got all; 0
	// without any grant.
	Fairness float64 `json:"fairness"`
	// Bypassed is the share of grants that overtook a worker who had asked earlier, among the grants that
	// could; nil if none could.
	Bypassed *float64 `json:"bypassed,omitempty"`
}

// String is, for example, "redis, 4 workers, contended".
func (p Point) String() string {
	return reports.Clean(p.Lock) + ", " + reports.Many(p.Workers, "worker") + ", " + contentionWord(p.Alone)
}

func contentionWord(alone bool) string {
	if alone {
		return "alone"
	}
	return "contended"
}

// isConclusive says whether only the load explains the figures. A run with one worker is always undecided, because
// no other worker could overlap with it.
func (p Point) isConclusive() bool {
	return p.Verdict == checker.Valid || p.Workers == 1 && p.Verdict == checker.Undecided
}

func (p Point) figures() string {
	text := fmt.Sprintf("%s/s, p50 %s, p99 %s, fairness %.2f", reports.Many(int64(math.Round(p.PerSecond)), "hold"), reports.Length(p.P50), reports.Length(p.P99), p.Fairness)
	if !p.isConclusive() {
		text += "; the run is " + string(reports.Plain(p.Verdict))
	}
	return text
}

// Page is the profile with its curves and all points.
func (p Profile) Page() reports.Page {
	table := reports.Table{Columns: []reports.Column{
		{Name: "lock"}, {Name: "workers"}, {Name: "contention", Summary: "alone: each worker has a lock of its own; contended: all want the same one"},
		{Name: "holds a second"}, {Name: "p50", Summary: "median time from the first attempt to the grant; p99 and p99.9 are percentiles of the same"}, {Name: "p99"}, {Name: "p99.9"},
		{Name: "fairness", Summary: "Jain's index of how often each worker got the lock: 1 if all got it equally often"},
		{Name: "bypassed", Summary: "share of the grants that came before that of a worker who had asked earlier"},
		{Name: "verdict", Summary: "– with one worker, which cannot overlap with anybody"},
	}}
	for _, point := range p.Points {
		bypassed, verdict := "–", reports.Cell{Text: "–"}
		if point.Bypassed != nil {
			bypassed = reports.Percent(*point.Bypassed)
		}
		if point.Verdict == checker.Valid || !point.isConclusive() {
			v := reports.Plain(point.Verdict)
			verdict = reports.Cell{Text: string(v), Verdict: v}
		}
		cells := reports.Cells(
			point.Lock, fmt.Sprint(point.Workers), contentionWord(point.Alone), reports.Grouped(int64(math.Round(point.PerSecond))),
			reports.Length(point.P50), reports.Length(point.P99), reports.Length(point.P999), fmt.Sprintf("%.2f", point.Fairness), bypassed)
		table.Rows = append(table.Rows, reports.Row{Cells: append(cells, verdict)})
	}
	return reports.Page{Title: title, Blocks: []reports.Block{
		reports.Text(fmt.Sprintf("Each run lasts %s, with %s between two holds of a worker and %s in the critical section. Begun %s.",
			reports.Length(p.Time), p.Think, p.Section, p.Began.UTC().Format(time.RFC1123))),
		table.Terms(),
		reports.Note("All runs share the processors of one machine."),
		reports.Picture{Title: title, File: ChartFile, SVG: p.svg()},
		table,
	}}
}

const title = "What locks cost, by the number of workers"

// colours distinguishes curves on light and on dark backgrounds.
func colours() []string {
	return []string{"#1f77b4", "#d95f02", "#2a9d5c", "#c2389a", "#8c6d1f", "#6a5acd", "#008b8b", "#b22222"}
}

// svg has a chart for each figure, with a curve for each lock. Axes are logarithmic, except for shares.
func (p Profile) svg() string {
	seconds := func(v float64) string { return reports.Length(time.Duration(v)) }
	var charts []reports.Chart
	for _, alone := range []bool{true, false} {
		for _, figure := range []struct {
			title string
			value func(Point) float64
			text  func(float64) string
			share bool // drawn from 0 to 1, not logarithmically
		}{
			{"Holds a second", func(p Point) float64 { return p.PerSecond }, func(v float64) string { return reports.Trimmed(v, 1) }, false},
			{"Time to the grant, median", func(p Point) float64 { return float64(p.P50) }, seconds, false},
			{"Time to the grant, 99th percentile", func(p Point) float64 { return float64(p.P99) }, seconds, false},
			{"Time to the grant, 99.9th percentile", func(p Point) float64 { return float64(p.P999) }, seconds, false},
			{"Fairness (Jain's index)", func(p Point) float64 { return p.Fairness }, func(v float64) string { return reports.Trimmed(v, 2) }, true},
		} {
			chart := reports.Chart{
				Title: figure.title + ", " + contentionWord(alone), Foot: "workers",
				X: reports.Axis{Text: func(v float64) string { return reports.Trimmed(v, 0) }}, Y: reports.Axis{Text: figure.text},
			}
			if figure.share {
				chart.Y.Linear, chart.Y.High = true, 1
			}
			for _, point := range p.Points {
				if point.Alone == alone {
					addToCurve(&chart, point, figure.value(point))
				}
			}
			chart.Y.Ticks = chart.Y.Quarters()
			slices.Sort(chart.X.Ticks)
			chart.X.Ticks = slices.Compact(chart.X.Ticks)
			charts = append(charts, chart)
		}
	}
	return reports.SVG(title, charts)
}

// addToCurve adds a point to the curve of its lock. A value of 0 means that the point has no value.
func addToCurve(chart *reports.Chart, p Point, value float64) {
	workers := float64(p.Workers)
	chart.X.Ticks = append(chart.X.Ticks, workers)
	chart.X.Include(workers)
	i := slices.IndexFunc(chart.Curves, func(c reports.Curve) bool { return c.Name == p.Lock })
	if i < 0 {
		i = len(chart.Curves)
		chart.Curves = append(chart.Curves, reports.Curve{Name: p.Lock, Colour: colours()[i%len(colours())]})
	}
	if value <= 0 {
		return
	}
	if !chart.Y.Linear {
		chart.Y.Include(value)
	}
	curve := &chart.Curves[i]
	curve.Places = append(curve.Places, [2]float64{workers, value})
	chart.Dots = append(chart.Dots, reports.Dot{X: workers, Y: value, Fill: curve.Colour, Title: p.String() + ": " + chart.Y.Text(value)})
}

// WriteReports writes the profile as pages and as JSON into a folder.
func (p Profile) WriteReports(folder string) error {
	return suites.WriteReports(folder, "profile", p, p.Page())
}
