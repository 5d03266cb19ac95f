package checker

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTogetherAtLeast compares with a check of each moment.
func TestTogetherAtLeast(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 10))
		groups := make([][]span, 1+rng.IntN(4))
		for i := range groups {
			for range rng.IntN(4) {
				from := rng.Int64N(30)
				groups[i] = append(groups[i], span{from, from - 2 + rng.Int64N(10)})
			}
			groups[i] = united(groups[i])
		}
		least := 1 + rng.IntN(len(groups))
		got := togetherAtLeast(least, groups)
		for at := int64(0); at < 45; at++ {
			now := func(s span) bool { return s.meets(at, at) }
			n := 0
			for _, group := range groups {
				if slices.ContainsFunc(group, now) {
					n++
				}
			}
			if slices.ContainsFunc(got, now) != (n >= least) {
				t.Fatalf("seed %d: at %d %d of %v, want %d: %v", seed, at, n, groups, least, got)
			}
		}
	}
}
