package sweep

import (
	"fmt"
	"math"
	"slices"
	"time"

	"lockcheck/reports"
)

// dimension is a quantity that a sweep varies.
type dimension string

const (
	lease   dimension = "lease"
	pause   dimension = "pause"
	section dimension = "section"
)

// field returns a point's field for the dimension.
func (d dimension) field(p *Point) *time.Duration {
	switch d {
	case lease:
		return &p.TTL
	case pause:
		return &p.Pause
	}
	return &p.Section
}

// values lists the distinct values of some points, ascending.
func (d dimension) values(points []Measured) []time.Duration {
	var all []time.Duration
	for _, m := range points {
		all = append(all, *d.field(&m.Point))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// dimensions says which dimension a chart shows on each axis, and which one differs from chart to chart.
type dimensions struct{ x, y, each dimension }

// dimensions puts the pause on the x axis and the lease on the y axis, unless one of them does not vary.
func (s Sweep) dimensions() dimensions {
	varies := func(d dimension) bool { return len(d.values(s.Points)) > 1 }
	switch {
	case !varies(pause) && varies(section):
		return dimensions{x: section, y: lease, each: pause}
	case !varies(lease) && varies(section):
		return dimensions{x: pause, y: section, each: lease}
	}
	return dimensions{x: pause, y: lease, each: section}
}

// panel is the points of one chart: all points with the same value of the third dimension.
type panel struct {
	dimensions
	value  time.Duration
	points []Measured
	xs, ys []time.Duration // distinct values of the points
}

// name is, for example, "section 1 s".
func (p panel) name() string { return string(p.each) + " " + reports.Length(p.value) }

func (s Sweep) panels() []panel {
	known := slices.DeleteFunc(slices.Clone(s.Points), func(m Measured) bool { return m.Pauses == 0 })
	d := s.dimensions()
	var all []panel
	for _, value := range d.each.values(known) {
		p := panel{dimensions: d, value: value}
		for _, m := range known {
			if *d.each.field(&m.Point) == value {
				p.points = append(p.points, m)
			}
		}
		p.xs, p.ys = d.x.values(p.points), d.y.values(p.points)
		all = append(all, p)
	}
	return all
}

// heightOnLine finds the height, between low and high, at which a point is exactly on the line of theory; false if
// there is none.
func (s Sweep) heightOnLine(p Point, y dimension, low, high time.Duration) (time.Duration, bool) {
	above := func(height float64) bool {
		*y.field(&p) = time.Duration(height)
		return p.TTL >= s.Rule.lease(p)
	}
	from, to := float64(low), float64(high)
	if above(from) == above(to) {
		return 0, false
	}
	for range 40 {
		middle := math.Sqrt(from * to)
		if above(middle) == above(to) {
			to = middle
		} else {
			from = middle
		}
	}
	return time.Duration(to), true
}

// charts has two charts for each panel: incidents and availability.
func (s Sweep) charts() []reports.Chart {
	var all []reports.Chart
	for _, p := range s.panels() {
		xs, ys := floats(p.xs), floats(p.ys)
		text := func(v float64) string { return reports.Length(time.Duration(v)) }
		chart := reports.Chart{
			Foot:   fmt.Sprintf("%s → and %s ↑; light is good, dark is bad; dashed: %s", p.x, p.y, s.Rule),
			X:      reports.Axis{Low: xs[0], High: xs[len(xs)-1], Ticks: xs, Text: text},
			Y:      reports.Axis{Low: ys[0], High: ys[len(ys)-1], Ticks: ys, Text: text},
			Curves: []reports.Curve{s.ruleIn(p)},
		}
		for _, of := range []struct {
			title string
			value func(Measured) (float64, bool)
			bad   func(float64) float64
		}{
			{"Share of the pauses that led to overlapping holders", Measured.share, func(v float64) float64 { return v }},
			{"Share of the time of pauses in which the lock was granted", Measured.availability, func(v float64) float64 { return 1 - v }},
		} {
			chart.Title, chart.Dots = of.title+"; "+p.name(), nil
			for _, m := range p.points {
				dot := reports.Dot{X: float64(*p.x.field(&m.Point)), Y: float64(*p.y.field(&m.Point))}
				if v, known := of.value(m); known {
					dot.Fill = colour(of.bad(v))
					dot.Title = fmt.Sprintf("%s: %d of %d pauses led to overlapping holders; here %.0f %%", m.Point, m.Incidents, m.Pauses, 100*v)
				}
				chart.Dots = append(chart.Dots, dot)
			}
			chart.Tiles = reports.Nearest(xs, ys, chart.Dots)
			all = append(all, chart)
		}
	}
	return all
}

func (s Sweep) ruleIn(p panel) reports.Curve {
	const parts = 60
	axis := reports.Axis{Low: float64(p.xs[0]), High: float64(p.xs[len(p.xs)-1])}
	var line reports.Curve
	for i := range parts + 1 {
		at, x := p.points[0].Point, axis.At(float64(i)/parts)
		*p.x.field(&at) = time.Duration(x)
		if y, between := s.heightOnLine(at, p.y, p.ys[0], p.ys[len(p.ys)-1]); between {
			line.Places = append(line.Places, [2]float64{x, float64(y)})
		}
	}
	return line
}

func floats(values []time.Duration) []float64 {
	var all []float64
	for _, v := range values {
		all = append(all, float64(v))
	}
	return all
}

// colour goes from light blue for 0 (good) to dark red for 1 (bad). One end is light and the other dark, so
// they differ without colours too.
func colour(share float64) string {
	from, to := [3]float64{143, 200, 235}, [3]float64{158, 28, 38}
	var rgb [3]int
	for i := range rgb {
		rgb[i] = int(math.Round(from[i] + share*(to[i]-from[i])))
	}
	return fmt.Sprintf("#%02x%02x%02x", rgb[0], rgb[1], rgb[2])
}
