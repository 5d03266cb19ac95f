package reports

import (
	"math"
	"slices"
	"time"
)

// dimension is what a sweep varies, by its name.
type dimension string

const (
	leases   dimension = "lease"
	pauses   dimension = "pause"
	sections dimension = "section"
)

// of is where a point has its value.
func (d dimension) of(p *SweepPoint) *time.Duration {
	switch d {
	case leases:
		return &p.TTL
	case pauses:
		return &p.Pause
	}
	return &p.Section
}

// values are those of some points, ascending.
func (d dimension) values(points []SweepPoint) []time.Duration {
	var all []time.Duration
	for _, p := range points {
		all = append(all, *d.of(&p))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// sweepAxes are what the charts of a sweep have to the right and upwards, and what differs
// from one chart to the next.
type sweepAxes struct{ x, y, each dimension }

// axes are the pause to the right and the lease upwards, unless one does not vary.
func (s Sweep) axes() sweepAxes {
	varies := func(d dimension) bool { return len(d.values(s.Points)) > 1 }
	switch {
	case !varies(pauses) && varies(sections):
		return sweepAxes{x: sections, y: leases, each: pauses}
	case !varies(leases) && varies(sections):
		return sweepAxes{x: pauses, y: sections, each: leases}
	}
	return sweepAxes{x: pauses, y: leases, each: sections}
}

// measured are the points of which something is known.
func (s Sweep) measured() []SweepPoint {
	return slices.DeleteFunc(slices.Clone(s.Points), func(p SweepPoint) bool { return p.Pauses == 0 })
}

// charted are the points of one chart.
func (s Sweep) charted(each time.Duration) []SweepPoint {
	by := s.axes().each
	return slices.DeleteFunc(s.measured(), func(p SweepPoint) bool { return *by.of(&p) != each })
}

// onLine is the height at which a point is exactly on the line of theory, between two others.
func (s Sweep) onLine(p SweepPoint, low, high time.Duration) (time.Duration, bool) {
	y := s.axes().y
	above := func(height float64) bool {
		*y.of(&p) = time.Duration(height)
		return p.TTL >= s.Rule.lease(p.Pause, p.Section)
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
