// Package stats is statistics of counts, whatever they count: confidence intervals of shares, tests of
// whether two shares differ, and histograms. Intervals and tests remain valid if events come in bursts: they
// are computed over independent units, such as runs or faults of a run, never over single events. The same
// counts always give the same figures.
package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Count is how often something happened (K) out of how often it could have (N), in one unit or in all
// together.
type Count struct {
	K int64 `json:"k"`
	N int64 `json:"n"`
}

// Share is K by N; NaN for no N.
func (c Count) Share() float64 { return float64(c.K) / float64(c.N) }

// Sum adds up counts.
func Sum(units []Count) Count {
	var all Count
	for _, u := range units {
		all.K += u.K
		all.N += u.N
	}
	return all
}

// Informative returns the units in which the event was possible. Only these count.
func Informative(units []Count) []Count {
	return slices.DeleteFunc(slices.Clone(units), func(u Count) bool { return u.N <= 0 })
}

// ShareOf returns the 95 % confidence interval of the pooled share of the units. Units must be independent of
// each other; events within a unit need not be. The interval uses Student's distribution on the logistic
// scale, on which errors of shares near 0 and 1 are more nearly symmetrical. The variance of the share is
// estimated by leaving out one unit at a time (jackknife), and is at least that of N independent events.
//
// If the event happened never or always, the units do not vary. Then the interval is the one for units that
// are all or nothing: at most 1 - 0.05^(1/units), about three by their number, and more if they differ in
// size. That is wider than necessary unless units really are all or nothing. Fewer than four units, some with
// the event, tell nothing: [0, 1].
func ShareOf(units []Count) (low, high float64) {
	units = Informative(units)
	all := Sum(units)
	switch {
	case len(units) == 0:
		return 0, 1
	case all.K <= 0:
		return 0, mostUnseen(units, all)
	case all.K >= all.N:
		return 1 - mostUnseen(units, all), 1
	case len(units) < minUnits:
		return 0, 1
	}
	share := all.Share()
	least := share * (1 - share) / float64(all.N)
	deviation := math.Sqrt(max(jackknife(units, all), least)) / (share * (1 - share))
	half := student(degrees(units, share)) * deviation
	centre := math.Log(share / (1 - share))
	// Rounding must not exclude the measured share.
	return min(logistic(centre-half), share), max(logistic(centre+half), share)
}

// Variance estimates the variance of the pooled share of independent units. It is 0 for fewer than two units.
func Variance(units []Count) float64 {
	units = Informative(units)
	if len(units) < 2 {
		return 0
	}
	return jackknife(units, Sum(units))
}

// minUnits is how many units the variance needs to say anything. With three units and one degree of freedom
// nearly all shares would be in the interval.
const minUnits = 4

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Wilson returns the 95 % score interval of a share of k in n independent events (E. B. Wilson, 1927). Unlike
// the textbook interval it is useful if k is 0 or n is small. It is [0, 1], nothing known, for n = 0.
func Wilson(k, n int64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	const z = 1.959963984540054 // the 97.5th percentile of the normal distribution
	share, z2 := Count{k, n}.Share(), z*z/float64(n)
	centre := (share + z2/2) / (1 + z2)
	half := math.Sqrt(z2*(share*(1-share)+z2/4)) / (1 + z2)
	low, high = max(0, centre-half), min(1, centre+half)
	// Rounding must not exclude the measured share.
	return min(low, share), max(high, share)
}

// Exact returns the 95 % interval of a share of k in n independent events with guaranteed coverage (C. J.
// Clopper and E. S. Pearson, 1934). For 0 in n it ends at 1 - 0.025^(1/n). It is for few units and for
// decisions that rest on the bound. It is [0, 1], nothing known, for n = 0.
func Exact(k, n int64) (low, high float64) {
	const tail = 0.025
	low, high = 0, 1
	if k > 0 && n > 0 {
		low = mathext.InvRegIncBeta(float64(k), float64(n-k+1), tail)
	}
	if k < n {
		high = mathext.InvRegIncBeta(float64(k+1), float64(n-k), 1-tail)
	}
	return low, high
}

// mostUnseen is the upper bound of a share of which no event was seen.
func mostUnseen(units []Count, all Count) float64 {
	squares := 0.0
	for _, u := range units {
		squares += float64(u.N) * float64(u.N)
	}
	as := float64(all.N) * float64(all.N) / squares // the effective number of units of equal size (L. Kish, 1965)
	return 1 - math.Pow(0.05, 1/as)
}

// jackknife estimates the variance of the share by leaving out one unit at a time.
func jackknife(units []Count, all Count) float64 {
	mean, squares := 0.0, 0.0 // of the differences from the share of all, which is numerically exact
	for _, u := range units {
		d := Count{all.K - u.K, all.N - u.N}.Share() - all.Share()
		mean += d
		squares += d * d
	}
	n := float64(len(units))
	mean /= n
	return max(0, squares-n*mean*mean) * (n - 1) / n
}

// degrees is the degrees of freedom of the variance between units. They are fewer than the units if most of
// the variance comes from few units (F. E. Satterthwaite, 1946). They are at most the number of units minus
// two, not minus one: if few units have bursts, samples that miss the large ones have both a low share and a
// low variance. "make coverage" shows the effect.
func degrees(units []Count, share float64) float64 {
	second, fourth := 0.0, 0.0
	for _, u := range units {
		d := float64(u.K) - share*float64(u.N)
		second += d * d
		fourth += d * d * d * d
	}
	n := float64(len(units))
	// Scaled so that small samples of a normal distribution have 3 on average.
	kurtosis := n * fourth / (second * second) * (n + 1) / (n - 1)
	if !(kurtosis > 1) { // also if nothing varies
		return n - 2
	}
	return min(n-2, 2*n/(kurtosis-1))
}

// student is the 97.5th percentile of Student's distribution.
func student(degrees float64) float64 {
	x := mathext.InvRegIncBeta(degrees/2, 0.5, 0.05)
	return math.Sqrt(degrees * (1 - x) / x)
}
