package checker

import (
	"math"
	"testing"
	"time"

	"lockcheck/internal/stats"
)

// TestFigures checks that each figure has data only if its event was possible.
func TestFigures(t *testing.T) {
	var times stats.Histogram
	times.Add(time.Second)
	worked := Pool{Runs: 1, Acknowledged: 10, Lost: 2, Refused: 5, Measures: Measures{
		Work: 10, Active: 5 * time.Second, Acquire: times, Uncontended: times, Wait: times, Failover: times, Handover: times, Notified: times,
		FaultTime: 4 * time.Second, Outage: time.Second, Wakes: 3, WakeReleases: 2,
	}}
	want := map[string]float64{
		"lost": 2, "lost_share": 0.2, "ops": 10, "throughput": 2, "availability": 0.75, "wakes_per_release": 1.5,
		"acquire_p50": 1e9, "acquire_p99": 1e9, "uncontended_p50": 1e9, "uncontended_p99": 1e9,
		"wait_p50": 1e9, "wait_p99": 1e9, "failover_p50": 1e9, "failover_p99": 1e9, "handover_p50": 1e9, "handover_p99": 1e9,
		"overlaps": 0, "double_grants": 0, "stale_writes": 0, "repeated": 0, "refused": 5, "refused_per_op": 0.5, "notified": 0, "notified_p50": 1e9, "notified_p99": 1e9,
	}
	for _, f := range Figures() {
		value, known := f.Of(worked)
		if wanted, listed := want[f.Name]; !listed || !known || value != wanted {
			t.Errorf("%s is %v, %v", f.Name, value, known)
		}
		if _, known := f.Of(Pool{}); known {
			t.Errorf("%s is known without a run", f.Name)
		}
	}
	if _, known := figure(t, "lost").Of(Pool{Runs: 1}); known {
		t.Error("what was not written is known not to be lost")
	}
}

// TestEndless: a lock that never failed over takes longer than any measured time.
func TestEndless(t *testing.T) {
	var times stats.Histogram
	for i := range 3 {
		times.Add(time.Duration(i+1) * time.Nanosecond)
	}
	for _, c := range []struct {
		stuck int64
		q     float64
		want  float64
	}{
		{0, 0.5, 2}, {0, 0.99, 3}, {1, 0.5, 2}, {1, 0.75, 3}, {1, 0.99, math.Inf(1)}, {3, 0.5, 3}, {4, 0.6, math.Inf(1)},
	} {
		if got, known := quantileOf(times, c.stuck, c.q); !known || got != c.want {
			t.Errorf("quantile %v with %d that never ended is %v, want %v", c.q, c.stuck, got, c.want)
		}
	}
	if got, known := quantileOf(stats.Histogram{}, 1, 0.5); !known || !math.IsInf(got, 1) {
		t.Errorf("if none ended it is %v, %v", got, known)
	}
}

func figure(t *testing.T, name string) Figure {
	t.Helper()
	f, known := FigureByName(name)
	if !known {
		t.Fatalf("there is no figure %s", name)
	}
	return f
}
