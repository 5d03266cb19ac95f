package sweep

import (
	"math"
	"slices"
	"time"

	"lockcheck/internal/runs"
	"lockcheck/workloads"
)

// Point is a combination of the quantities that a sweep varies.
type Point struct {
	TTL     time.Duration `json:"ttl_ns"`
	Pause   time.Duration `json:"pause_ns"`
	Section time.Duration `json:"section_ns"`
}

// depth is how often the distance between neighbours can be halved.
const depth = 3

// place is the position of a point on the finest grid: along lease, pause and section.
type place [3]int

// axis is one of the three quantities that may vary.
type axis struct {
	span  workloads.Range
	steps int
}

// last is the highest position on the axis; 0 if the axis does not vary.
func (a axis) last() int {
	if a.span.Min == a.span.Max {
		return 0
	}
	return (a.steps - 1) << depth
}

// value is the value at a position. The values grow by a constant ratio.
func (a axis) value(position int) time.Duration {
	switch position {
	case 0:
		return a.span.Min
	case a.last():
		return a.span.Max
	}
	share := float64(position) / float64(a.last())
	return rounded(float64(a.span.Min) * math.Pow(float64(a.span.Max)/float64(a.span.Min), share))
}

// rounded keeps two digits and rounds to whole milliseconds.
func rounded(ns float64) time.Duration {
	unit := math.Pow(10, math.Floor(math.Log10(ns))-1)
	return max(time.Duration(math.Round(ns/unit)*unit).Round(time.Millisecond), time.Millisecond)
}

func (p Plan) axes() [3]axis {
	return [3]axis{{p.TTL, p.Steps}, {p.Pause, p.Steps}, {p.Section, p.Steps}}
}

// pointAt is the point at a place. Its lease is rounded up to what the service grants.
func (p Plan) pointAt(at place) Point {
	axes := p.axes()
	point := Point{TTL: axes[0].value(at[0]), Pause: axes[1].value(at[1]), Section: axes[2].value(at[2])}
	if step := p.info.TTLStep; step > 0 {
		point.TTL = (point.TTL + step - 1) / step * step
	}
	return point
}

// cell is a part of the grid between neighbours: its lowest corner, and its length along each axis, 0 along an
// axis that does not vary.
type cell struct{ corner, length place }

// cells are the cells of the grid that the sweep begins with.
func (p Plan) cells() []cell {
	all := []cell{{}}
	for a, axis := range p.axes() {
		if axis.last() == 0 {
			continue
		}
		var more []cell
		for _, c := range all {
			for i := 0; i < axis.last(); i += 1 << depth {
				c.corner[a], c.length[a] = i, 1<<depth
				more = append(more, c)
			}
		}
		all = more
	}
	return all
}

// corners are the places at both ends of the cell along each axis.
func (c cell) corners() []place {
	all := []place{c.corner}
	for a, length := range c.length {
		for _, at := range all {
			if length > 0 {
				at[a] += length
				all = append(all, at)
			}
		}
	}
	return all
}

// halves are the cells that the cell divides into; nil for a cell of the finest grid.
func (c cell) halves() []cell {
	half := c
	for a := range half.length {
		half.length[a] /= 2
	}
	if slices.Max(half.length[:]) == 0 {
		return nil
	}
	var all []cell
	for _, corner := range half.corners() {
		all = append(all, cell{corner, half.length})
	}
	return all
}

// Check returns what is wrong with a plan, as an error of usage; nil if nothing is.
func (p Plan) Check() error {
	varied := 0
	for i, name := range []string{"ttl", "pause", "section"} {
		a := p.axes()[i]
		switch {
		case a.span.Min <= 0:
			return runs.Usagef("--%s %s: it must be positive, as in --%s 100ms..30s", name, a.span, name)
		case a.span.Min != a.span.Max:
			varied++
		}
	}
	switch {
	case varied == 0:
		return runs.Usagef("--ttl, --pause or --section must vary, as in --pause 100ms..30s")
	case p.Steps < 2 || p.Steps > maxSteps:
		return runs.Usagef("--steps %d: must be between 2 and %d", p.Steps, maxSteps)
	}
	return nil
}

const maxSteps = 20
