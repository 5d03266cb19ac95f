package reports

import (
	"errors"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
)

// TestLoad: each point is in the table, and is a dot of each curve that it has a value for;
// names of locks are text, whatever is in them.
func TestLoad(t *testing.T) {
	bypassed := 0.25
	p := LoadProfile{Time: time.Second, Think: "0s", Section: "0s", Points: []LoadPoint{
		{Lock: "redis", Alone: true, Workers: 1, Verdict: checker.Valid, Holds: 10, PerSecond: 10, P50: 1e6, P99: 2e6, P999: 3e6, Fairness: 1},
		{Lock: "redis", Alone: true, Workers: 64, Verdict: checker.Valid, Holds: 100, PerSecond: 100, P50: 1e7, P99: 2e7, P999: 3e7, Fairness: 0.5},
		{Lock: "etcd", Workers: 1, Verdict: checker.Undecided},
		{Lock: "etcd", Workers: 2, Verdict: checker.Undecided},
		{Lock: "<a>&", Workers: 2, Verdict: checker.Broken, PerSecond: 5, P50: 1e6, P99: 1e6, P999: 1e6, Bypassed: &bypassed},
	}}
	var picture, page, data strings.Builder
	if err := errors.Join(LoadChart(&picture, p), LoadMarkdown(&page, p), LoadJSON(&data, p)); err != nil {
		t.Fatal(err)
	}
	dots := dotsOf(t, picture.String())
	if dots != 14 {
		t.Errorf("%d dots, want 5 of each point but for the fairness of the last", dots)
	}
	for _, want := range []string{"| redis | 64 | alone | 100 | 10 ms | 20 ms | 30 ms | 0.50 | – | valid |", "| 2 | contended | 5 |", "| etcd | 1 | contended | 0 | 0 ns | 0 ns | 0 ns | 0.00 | – | – |", "| etcd | 2 | contended | 0 | 0 ns | 0 ns | 0 ns | 0.00 | – | undecided |", "25 %", "broken"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%q is not in\n%s", want, page.String())
		}
	}
}

// TestLoadScale: equal ratios are equally far apart, and one value is in the middle.
func TestLoadScale(t *testing.T) {
	var s loadScale
	for _, v := range []float64{1, 100, 0} {
		s.take(v)
	}
	if s.along(10) != 0.5 || s.value(0.5) != 10 {
		t.Errorf("10 is at %v, the middle is %v", s.along(10), s.value(0.5))
	}
	if share := (loadScale{high: 1, linear: true}); share.along(0.25) != 0.25 || share.value(0.75) != 0.75 {
		t.Errorf("a share is at %v", share.along(0.25))
	}
	one := loadScale{low: 5, high: 5}
	if one.along(5) != 0.5 || one.value(1) != 5 {
		t.Errorf("one value is at %v", one.along(5))
	}
}
