package stats

import (
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []time.Duration
		want   time.Duration
	}{
		{nil, 0}, {[]time.Duration{7}, 7}, {[]time.Duration{9, 1}, 1}, {[]time.Duration{9, 1, 5}, 5}, {[]time.Duration{4, 3, 2, 1}, 2},
	} {
		var all Histogram
		for _, d := range c.values {
			all.Add(d)
		}
		if got := Median(c.values); got != c.want {
			t.Errorf("%v: %d, want %d", c.values, got, c.want)
		}
		if got, _ := all.Quantile(0.5); got != c.want {
			t.Errorf("%v: %d by quantiles, want %d", c.values, got, c.want)
		}
	}
}
