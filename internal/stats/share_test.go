package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestExact compares the bounds of few units with published tables.
func TestExact(t *testing.T) {
	for _, c := range []struct {
		k, n      int64
		low, high float64
	}{
		{0, 0, 0, 1}, {0, 1, 0, 0.975}, {1, 1, 0.025, 1}, {0, 3, 0, 0.7076}, {4, 4, 0.3976, 1}, {1, 10, 0.0025, 0.4450}, {5, 10, 0.1871, 0.8129},
	} {
		low, high := Exact(c.k, c.n)
		if math.Abs(low-c.low) > 5e-4 || math.Abs(high-c.high) > 5e-4 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", c.k, c.n, low, high, c.low, c.high)
		}
	}
}

func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n      int64
		low, high float64
	}{
		{0, 0, 0, 1},
		{0, 10, 0, 0.2775},
		{10, 10, 0.7225, 1},
		{5, 10, 0.2366, 0.7634},
		{3, 41, 0.0252, 0.1943},
	} {
		low, high := Wilson(c.k, c.n)
		if math.Abs(low-c.low) > 5e-4 || math.Abs(high-c.high) > 5e-4 {
			t.Errorf("%d of %d: %.4f to %.4f", c.k, c.n, low, high)
		}
	}
}

// alike are n units with the same count.
func alike(n int, k, of int64) []Count { return slices.Repeat([]Count{{k, of}}, n) }

func TestShareOf(t *testing.T) {
	for _, c := range []struct {
		name      string
		units     []Count
		low, high float64
	}{
		{"nothing", nil, 0, 1},
		{"units without data", alike(5, 0, 0), 0, 1},
		{"one unit, none", alike(1, 0, 100), 0, 0.95},
		{"one unit, all", alike(1, 100, 100), 0.05, 1},
		{"one unit, some", alike(1, 7, 100), 0, 1},
		{"three units, some", alike(3, 7, 100), 0, 1},
		{"units without data do not count", append(alike(1, 7, 100), alike(9, 0, 0)...), 0, 1},
		{"none in ten units: 1 - 0.05^(1/10)", alike(10, 0, 50), 0, 0.2589},
		{"all in ten units", alike(10, 50, 50), 0.7411, 1},
		{"none in two units, one of which is all but all", []Count{{0, 1_000_000}, {0, 1}}, 0, 0.95},
		// Like independent events: 20 of 200; t with 18 degrees is 2.1009, and the deviation of the logit is
		// 1/sqrt(200 0.1 0.9).
		{"no burst", alike(20, 1, 10), 0.06342, 0.15414},
		// Leaving out one unit gives 1/9 of 50 or 0: the variance is 9/10 (1/81/4 90/10) = 0.025. The
		// kurtosis is 11/9, so t with 8 degrees is 2.3060, and the deviation 0.15811/0.25.
		{"five of ten units, wholly", append(alike(5, 5, 5), alike(5, 0, 5)...), 0.17839, 0.82161},
	} {
		low, high := ShareOf(c.units)
		if math.Abs(low-c.low) > 2e-3 || math.Abs(high-c.high) > 2e-3 {
			t.Errorf("%s: %.5f to %.5f, want %g to %g", c.name, low, high, c.low, c.high)
		}
	}
}

// TestShareOfHolds checks invariants that hold for any units.
func TestShareOfHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		units := make([]Count, 1+random.IntN(12))
		for i := range units {
			n := random.Int64N(50)
			units[i] = Count{random.Int64N(n + 1), n}
			if random.IntN(3) == 0 {
				units[i].K = 0
			}
		}
		low, high := ShareOf(units)
		all := Sum(units)
		if math.IsNaN(low+high) || low < 0 || high > 1 || low > high || all.N > 0 && (low > all.Share() || high < all.Share()) {
			t.Fatalf("%v: %g to %g of %g", units, low, high, all.Share())
		}
		others := make([]Count, len(units)) // complementary counts, in another order
		for i, u := range units {
			others[len(units)-1-i] = Count{u.N - u.K, u.N}
		}
		if l, h := ShareOf(others); math.Abs(l-(1-high)) > 1e-9 || math.Abs(h-(1-low)) > 1e-9 {
			t.Fatalf("%v: %g to %g, but what did not happen %g to %g", units, low, high, l, h)
		}
		if all.K == 0 || all.K == all.N {
			continue
		}
		if l, h := Wilson(all.K, all.N); high-low < 0.9*(h-l) {
			t.Fatalf("%v: %g to %g is narrower than of independent events, %g to %g", units, low, high, l, h)
		}
		if l, h := ShareOf(slices.Repeat(units, 8)); len(Informative(units)) > 1 && h-l > high-low {
			t.Fatalf("%v: %g to %g, of eight times as many %g to %g", units, low, high, l, h)
		}
	}
}

// TestStudent has percentiles from the tables of that distribution.
func TestStudent(t *testing.T) {
	for degrees, want := range map[float64]float64{1: 12.7062, 2: 4.3027, 3: 3.1824, 9: 2.2622, 30: 2.0423, 1e6: 1.95997} {
		if got := student(degrees); math.Abs(got-want) > 1e-3 {
			t.Errorf("%g degrees: %g, want %g", degrees, got, want)
		}
	}
}

// TestShareOfCovers: the interval covers the long-run share of units with various bursts. An interval that
// treats losses as independent does not. "make coverage" prints more of this.
func TestShareOfCovers(t *testing.T) {
	const trials = 1500
	for _, c := range []struct {
		name       string
		units      int
		lost       func(*rand.Rand) int64 // in a unit of 100
		truth      float64
		least      int // in percent
		mostNaive  int
		leastNaive int
	}{
		{"1 to 40 in each", 5, func(r *rand.Rand) int64 { return 1 + r.Int64N(40) }, 0.205, 95, 60, 0},
		{"1 to 40 in each", 30, func(r *rand.Rand) int64 { return 1 + r.Int64N(40) }, 0.205, 93, 60, 0},
		{"20 in one of four", 14, func(r *rand.Rand) int64 { return 20 * ((r.Int64N(4) + 1) / 4) }, 0.05, 93, 60, 0},
		{"all in one of three", 30, func(r *rand.Rand) int64 { return 100 * ((r.Int64N(3) + 1) / 3) }, 1. / 3, 93, 60, 0},
		{"each by itself", 14, func(r *rand.Rand) (n int64) {
			for range 100 {
				n += (r.Int64N(20) + 1) / 20
			}
			return n
		}, 0.05, 93, 97, 93},
	} {
		random := rand.New(rand.NewPCG(4, 1))
		within, naive := 0, 0
		for range trials {
			units := make([]Count, c.units)
			for i := range units {
				units[i] = Count{c.lost(random), 100}
			}
			if low, high := ShareOf(units); low <= c.truth && c.truth <= high {
				within++
			}
			all := Sum(units)
			if low, high := Wilson(all.K, all.N); low <= c.truth && c.truth <= high {
				naive++
			}
		}
		if within < trials*c.least/100 || naive > trials*c.mostNaive/100 || naive < trials*c.leastNaive/100 {
			t.Errorf("%s, %d units: %d of %d held it, over single events %d", c.name, c.units, within, trials, naive)
		}
	}
}
