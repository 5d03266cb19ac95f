package reports

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/stats"
)

// TestQuantile: a quantile is omitted if there are too few values to tell it from the maximum. Histograms are
// exact up to 127 ns.
func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		n    int
		q    float64
		want string
	}{
		{0, 0.5, "–"}, {1, 0.5, "–"}, {2, 0.5, "1 ns"}, {3, 0.5, "2 ns"}, {10, 0.9, "9 ns"}, {9, 0.9, "–"},
		{100, 0.99, "99 ns"}, {99, 0.99, "–"}, {101, 0.5, "51 ns"},
	} {
		var upTo stats.Histogram
		for i := range c.n {
			upTo.Add(time.Duration(i + 1))
		}
		if got := quantileText(upTo, c.q); got != c.want {
			t.Errorf("quantile %v of 1 to %d ns: %s, want %s", c.q, c.n, got, c.want)
		}
	}
}

func TestPerSecond(t *testing.T) {
	for _, c := range []struct {
		times             []int64
		begin, end, width int64
		want              []float64
	}{
		{[]int64{5}, 5, 5 + s, s, []float64{1}},
		{[]int64{0, s - 1, s}, 0, 2 * s, s, []float64{2, 1}},
		{[]int64{0, 2*s + s/2}, 0, 3*s - s/2, s, []float64{1, 1 / 1.5}}, // the last step includes the rest
		{[]int64{0, s / 4}, 0, s / 2, s, []float64{4}},                  // shorter than one step
		{[]int64{-1, 3 * s}, 0, 2 * s, s, []float64{1, 1}},              // timestamps outside the run
	} {
		if got := perSecond(c.times, c.begin, c.end, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%v in steps of %d: %v, want %v", c.times, c.width, got, c.want)
		}
	}
}

func TestLevels(t *testing.T) {
	for _, most := range []float64{0.03, 1, 7.5, 80, 1234} {
		levels, top := levelsTo(most)
		if top < most || top > 1.6*most || len(levels) < 3 || len(levels) > 7 {
			t.Errorf("%v: %d levels up to %v", most, len(levels), top)
		}
	}
	if levels, _ := levelsTo(50_000); levels[len(levels)-1].Label != "60,000/s" {
		t.Errorf("%v", levels)
	}
	for _, c := range []struct {
		shortest, longest time.Duration
		want              string
	}{
		{0, 0, "1 ns, 10 ns"},
		{time.Millisecond, time.Millisecond, "1 ms, 10 ms"},
		{15 * time.Microsecond, 2 * time.Second, "10 µs, 100 µs, 1 ms, 10 ms, 100 ms, 1 s, 10 s"},
	} {
		var names []string
		for _, l := range levelsOf(decades(c.shortest, c.longest)) {
			names = append(names, l.Label)
		}
		if got := strings.Join(names, ", "); got != c.want {
			t.Errorf("from %v to %v: %s, want %s", c.shortest, c.longest, got, c.want)
		}
	}
}

// acquiring is a record of n acquires of 1 ms each, one of which takes a second.
func acquiring(n int) *record {
	h := &history.History{}
	for i := range int64(n) {
		took := ms
		if i == int64(n)/2 {
			took = s
		}
		h.Events = append(h.Events,
			history.Event{Time: i * ms, Process: "w1", Type: history.Invoke, F: history.Acquire, Op: i + 1},
			history.Event{Time: i*ms + took, Process: "w1", Type: history.OK, F: history.Acquire, Op: i + 1})
	}
	return newRecord(h, checker.Results{End: int64(n)*ms + s})
}

func TestLatencyChart(t *testing.T) {
	if _, ok := latencyChart(acquiring(0)); ok {
		t.Error("a chart of nothing")
	}
	if _, ok := throughputChart(acquiring(0)); ok {
		t.Error("a throughput of nothing")
	}
	few, _ := latencyChart(acquiring(5))
	if len(few.Paths) != 1 || strings.Count(few.Paths[0].D, "h0") != 5 {
		t.Errorf("not a dot for each acquire: %v", few.Paths)
	}
	many, _ := latencyChart(acquiring(maxDots + 1))
	if len(many.Paths) != 2 || !strings.Contains(strings.Join(many.Notes, " "), "gathered") {
		t.Fatalf("%d acquires are drawn one by one, or nothing says that they are not", maxDots+1)
	}
	// The only slow acquire is at the top of its stretch in both charts.
	top := " " + chartY(heightOf(time.Second, decades(time.Millisecond, time.Second)))
	for _, c := range []picture{few, many} {
		if !strings.Contains(c.Paths[0].D, top) {
			t.Error("the slowest is not in the picture")
		}
	}
	if strings.Contains(many.Paths[1].D, top) {
		t.Error("a median is as slow as the slowest of many")
	}
}

func TestLatencyRowsCountWhatSucceeded(t *testing.T) {
	call := func(f history.Function, op, took int64, outcome history.Type) []history.Event {
		return []history.Event{{Time: op * s, Process: "w1", Type: history.Invoke, F: f, Op: op}, {Time: op*s + took, Process: "w1", Type: outcome, F: f, Op: op}}
	}
	h := &history.History{Events: slices.Concat(
		call(history.Acquire, 1, 2*ms, history.OK), call(history.Acquire, 2, 90*ms, history.Fail), call(history.Acquire, 3, 4*ms, history.OK),
		call(history.Release, 4, 5*ms, history.OK), call(history.Release, 5, 90*ms, history.Info), call(history.Write, 6, 90*ms, history.Fail),
		[]history.Event{{Time: 9, Process: "w1", Type: history.OK, F: history.Release, Op: 9}}, // never invoked
	)}
	rows := latencyRows(newRecord(h, checker.Results{}))
	want := [][]string{{"acquire", "2", "2 ms", "–", "–", "–", "4 ms"}, {"release", "1", "–", "–", "–", "–", "5 ms"}}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
}

func TestThroughputChartAddsUp(t *testing.T) {
	h, r := realistic("none")
	rec := newRecord(h, r)
	times := rec.acknowledgedTimes()
	if int64(len(times)) != r.Updates.Acknowledged {
		t.Errorf("%d updates, want %d", len(times), r.Updates.Acknowledged)
	}
	fenced, rf := realistic("fence")
	if n := int64(len(newRecord(fenced, rf).acknowledgedTimes())); n != rf.Updates.Acknowledged || rf.Fence.RefusedWrites == 0 {
		t.Errorf("%d updates with %d refused, want %d", n, rf.Fence.RefusedWrites, rf.Updates.Acknowledged)
	}
	width := s / 2
	sum := 0.0
	rates := perSecond(times, rec.begin, rec.end, width)
	for n, rate := range rates {
		taken := width
		if n == len(rates)-1 {
			taken = rec.end - rec.begin - int64(n)*width
		}
		sum += rate * float64(taken) / 1e9
	}
	if math.Abs(sum-float64(len(times))) > 1e-6 {
		t.Errorf("the steps add up to %v of %d", sum, len(times))
	}
}

func TestHTMLHasCharts(t *testing.T) {
	for _, c := range runs() {
		page := pageOf(t, c)
		drawn := strings.Contains(page, `id="latency"`) && strings.Contains(page, `id="throughput"`) && strings.Contains(page, "Table of latencies")
		if want := len(c.r.Holds) > 0; drawn != want {
			t.Errorf("%s: charts: %v, want %v", c.name, drawn, want)
		}
		applied := 0
		for _, f := range c.r.Faults {
			applied += one(f.Applied)
		}
		if n := parseSVG(t, page)["band"]; n != 2*applied {
			t.Errorf("%s: %d bands in two charts for %d faults", c.name, n, applied)
		}
	}
}
