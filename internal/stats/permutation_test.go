package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func runs(of int64, lost ...int64) []Count {
	var all []Count
	for _, k := range lost {
		all = append(all, Count{k, of})
	}
	return all
}

func TestPermutation(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second []Count
		want          float64
	}{
		{"nothing", nil, nil, 1},
		{"nothing in one", runs(10, 1, 2), nil, 1},
		{"runs in which nothing could happen", runs(0, 0, 0), runs(10, 1, 2), 1},
		{"one run each, however much they differ", runs(1000, 0), runs(1000, 1000), 1},
		{"the same", runs(10, 1, 2, 3), runs(10, 1, 2, 3), 1},
		{"none at all", runs(10, 0, 0, 0, 0), runs(10, 0, 0, 0, 0), 1},
		{"two of 6 ways", runs(10, 1, 2), runs(10, 3, 4), 2.0 / 6},
		{"two of 70 ways", runs(10, 0, 1, 0, 1), runs(10, 5, 6, 7, 8), 2.0 / 70},
		{"one of 5 ways", runs(10, 9), runs(10, 1, 2, 3, 4), 1.0 / 5},
		{"four of 6 ways", runs(10, 1, 3), runs(10, 2, 4), 4.0 / 6},
		{"one of which tells nothing", append(runs(10, 1, 2), runs(0, 0)...), runs(10, 3, 4), 2.0 / 6},
		{"many, drawn", runs(10, slices.Repeat([]int64{1, 2}, 10)...), runs(10, slices.Repeat([]int64{3, 4}, 10)...), 1.0 / mostExact},
	} {
		got := Permutation(c.first, c.second)
		if math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
		if back := Permutation(c.second, c.first); math.Abs(got-back) > 1e-12 {
			t.Errorf("%s: %g, the other way round %g", c.name, got, back)
		}
	}
}

// TestPermutationDraws: the result of drawn partitions is near that of all partitions.
func TestPermutationDraws(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for range 20 {
		var first, second []Count
		for range 6 {
			first = append(first, Count{random.Int64N(20), 50 + random.Int64N(20)})
			second = append(second, Count{random.Int64N(30), 50 + random.Int64N(20)})
		}
		exact := Permutation(first, second)
		all := slices.Concat(first, second)
		p := parting{all: all, sum: Sum(all), size: len(first)}
		p.seen = p.apart(Sum(first)) - 1e-12
		p.draw()
		if drawn := float64(p.atLeastAsFar) / float64(p.tried); math.Abs(drawn-exact) > 0.02 {
			t.Errorf("%g drawn, %g of all", drawn, exact)
		}
	}
}

func TestRunsNeeded(t *testing.T) {
	for comparisons, want := range map[int]int{1: 4, 2: 5, 3: 5, 6: 5, 7: 6, 1000: 9, 1001: 0} {
		if got := RunsNeeded(comparisons, 0.05); got != want {
			t.Errorf("%d comparisons need %d runs, want %d", comparisons, got, want)
		}
	}
	for _, c := range []struct {
		first, second int
		want          float64
	}{
		{0, 5, 1}, {1, 1, 1}, {4, 4, 1.0 / 35}, {3, 5, 1.0 / 56}, {1, 19, 1.0 / 20}, {200, 200, 1.0 / mostExact},
	} {
		if got := Least(c.first, c.second); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d and %d runs: %g, want %g", c.first, c.second, got, c.want)
		}
	}
}

func TestSignificant(t *testing.T) {
	for _, c := range []struct {
		probabilities []float64
		want          []bool
	}{
		{nil, []bool{}},
		{[]float64{0.05}, []bool{true}},
		{[]float64{0.06}, []bool{false}},
		{[]float64{0.03, 0.04}, []bool{false, false}},
		{[]float64{0.04, 0.02}, []bool{true, true}},
		{[]float64{0.2, 0.001, 0.03}, []bool{false, true, false}},
		{[]float64{0.2, 0.001, 0.025}, []bool{false, true, true}},
	} {
		if got := Significant(c.probabilities, 0.05); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.probabilities, got, c.want)
		}
	}
}

// TestPermutationHolds: few sets that are alike are called different, whatever bursts they lose in, and many
// sets that differ are.
func TestPermutationHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	draw := func(most int64) []Count {
		all := make([]Count, 6)
		for i := range all {
			for range 5 { // bursts of up to most
				all[i].K += random.Int64N(most + 1)
				all[i].N += 80
			}
		}
		return all
	}
	const trials = 400
	same, different := 0, 0
	for range trials {
		if Permutation(draw(30), draw(30)) <= 0.05 {
			same++
		}
		if Permutation(draw(20), draw(50)) <= 0.05 {
			different++
		}
	}
	if same > trials*8/100 || different < trials*8/10 {
		t.Errorf("%d of %d called different though alike, %d though not", same, trials, different)
	}
}
