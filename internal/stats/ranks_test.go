package stats

import (
	"math"
	"testing"
)

// TestRanks: the probability is that of the tables for the rank test, whatever the distances.
func TestRanks(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second []float64
		want          float64
	}{
		{"apart", []float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 2.0 / 70},
		{"far apart", []float64{1, 2, 3, 4}, []float64{5, 6, 7, math.Inf(1)}, 2.0 / 70},
		{"one swapped", []float64{1, 2, 3, 5}, []float64{4, 6, 7, 8}, 4.0 / 70},
		{"all equal", []float64{1, 1}, []float64{1, 1}, 1},
		{"one and one", []float64{1}, []float64{2}, 1},
	} {
		a, b := Ranks(c.first, c.second)
		if got := Permutation(a, b); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}
