package guide

import (
	"testing"
	"time"

	"lockcheck/reports"
)

// TestFailovers: median, longest and lease are those of the same runs.
func TestFailovers(t *testing.T) {
	run := func(lease, took time.Duration, faults ...string) Run {
		return changed(held("1", faults...), func(r *Run) {
			r.Lease, r.Failover = lease*time.Second, &Failover{Holders: 1, Median: took * time.Second, Longest: took * time.Second}
		})
	}
	stuck := changed(run(0, 0), func(r *Run) { r.Failover.Stuck = 1 })
	consul := func(r Run, setup ...string) Run { r.Lock, r.Setup = "consul", setup; return r }
	const s = time.Second
	for _, c := range []struct {
		name string
		runs Evidence
		want reports.GuideSpeed
	}{
		{"none", Evidence{held("1")}, reports.GuideSpeed{}},
		{"one", Evidence{run(2, 2)}, reports.GuideSpeed{Failovers: 1, FailoverP50: 2 * s, FailoverMax: 2 * s, Lease: 2 * s}},
		{"another lease once", Evidence{run(30, 30), run(2, 2), run(2, 3)}, reports.GuideSpeed{Failovers: 2, FailoverP50: 3 * s, FailoverMax: 3 * s, Lease: 2 * s}},
		{"each lease once", Evidence{run(6, 6), run(2, 2)}, reports.GuideSpeed{Failovers: 1, FailoverP50: 6 * s, FailoverMax: 6 * s, Lease: 6 * s}},
		{"a moved clock", Evidence{run(2, 9, clock), run(2, 2)}, reports.GuideSpeed{Failovers: 1, FailoverP50: 2 * s, FailoverMax: 2 * s, Lease: 2 * s}},
		{"stopped", Evidence{held("1", "pause:holder"), changed(held("2", "pause:holder"), func(r *Run) { r.Faults[0].Met = 3 })}, reports.GuideSpeed{Stops: 4}},
		{"behind a guard", Evidence{run(2, 2), behind("ask", run(2, 3)), behind("ask", held("3", "pause:holder"))}, reports.GuideSpeed{Failovers: 2, FailoverP50: 3 * s, FailoverMax: 3 * s, Lease: 2 * s}},
		{"never", Evidence{stuck}, reports.GuideSpeed{Failovers: 1, Stuck: 1}},
		{
			"another lock delay once", Evidence{consul(run(2, 5), "lock delay 1s"), consul(run(2, 19)), consul(run(2, 20), "lock delay 15s")},
			reports.GuideSpeed{Failovers: 2, FailoverP50: 20 * s, FailoverMax: 20 * s, Lease: 2 * s, LockDelay: 15 * s},
		},
	} {
		got := c.runs.speed(c.runs[0].Lock)
		if got.FailoverP50 != c.want.FailoverP50 || got.FailoverMax != c.want.FailoverMax || got.Failovers != c.want.Failovers ||
			got.Stuck != c.want.Stuck || got.Stops != c.want.Stops || got.Lease != c.want.Lease || got.LockDelay != c.want.LockDelay {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestAlone: how long an acquire takes is told by runs in which nobody else asked, and by no other,
// however many acquires that has.
func TestAlone(t *testing.T) {
	run := func(acquires, updates int64) Run {
		return changed(held("1"), func(r *Run) { r.Acquire, r.Updates = &Acquire{N: acquires}, &Updates{Acknowledged: updates} })
	}
	for _, c := range []struct {
		name string
		runs Evidence
		want int64 // acquires; 0 for no run
	}{
		{"one worker", Evidence{run(95, 100)}, 95},
		{"others waited", Evidence{run(94, 100)}, 0},
		{"more acquires, and others waited", Evidence{run(95, 100), run(500, 900)}, 95},
		{"more of them", Evidence{run(95, 100), run(190, 200)}, 190},
		{"too few", Evidence{run(19, 19)}, 0},
		{"no update was acknowledged", Evidence{changed(run(95, 0), func(r *Run) { r.Updates = nil })}, 0},
		{"not measured", Evidence{changed(run(95, 100), func(r *Run) { r.Acquire = nil })}, 0},
		{"behind a guard", Evidence{behind("ask", run(95, 100))}, 0},
	} {
		var got int64
		if a := c.runs.alone("redis"); a != nil {
			got = a.N
		}
		if got != c.want {
			t.Errorf("%s: of %d acquires, want %d", c.name, got, c.want)
		}
	}
}
