// Package stats has what counts say, whatever they are counts of: intervals of shares,
// tests of whether two shares differ, histograms. Intervals and tests hold where what is
// counted comes in bursts: they are over units that are independent of each other, such as
// runs, or faults in a run, never over the single events. The same counts always give the
// same figures.
package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Count is how often something happened, of how often it could have: in one unit, or in
// all together.
type Count struct {
	K int64 `json:"k"`
	N int64 `json:"n"`
}

// Share is K by N; NaN for no N.
func (c Count) Share() float64 { return float64(c.K) / float64(c.N) }

// Sum adds up.
func Sum(units []Count) Count {
	var all Count
	for _, u := range units {
		all.K += u.K
		all.N += u.N
	}
	return all
}

// Informative returns the units in which anything could have happened: only these count.
func Informative(units []Count) []Count {
	return slices.DeleteFunc(slices.Clone(units), func(u Count) bool { return u.N <= 0 })
}

// ShareOf returns the 95 % interval of the share that the units have together, each of which
// is independent of the others; what happens within one may hang together in any way. It is
// that of Student's distribution on the logistic scale, on which errors of shares near 0 and
// 1 are more nearly symmetrical. How much the share varies is estimated by leaving out one
// unit at a time (jackknife), and is never taken to be less than if all N were independent.
//
// Where nothing happened, or all that could, the units do not vary. Then it is what as many
// units allow that are all or nothing each: 1 - 0.05^(1/units) at most, about three by their
// number, and more where they differ in size. That is wider than need be unless units really
// are all or nothing. Fewer than four units of which some happened tell nothing: [0, 1].
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
	case len(units) < fewest:
		return 0, 1
	}
	share := all.Share()
	least := share * (1 - share) / float64(all.N)
	deviation := math.Sqrt(max(jackknife(units, all), least)) / (share * (1 - share))
	half := student(degrees(units, share)) * deviation
	centre := math.Log(share / (1 - share))
	// Rounding must not exclude what was measured.
	return min(logistic(centre-half), share), max(logistic(centre+half), share)
}

// Variance estimates that of the share which the units have together, if each is independent
// of the others. It is 0 for fewer than two units.
func Variance(units []Count) float64 {
	units = Informative(units)
	if len(units) < 2 {
		return 0
	}
	return jackknife(units, Sum(units))
}

// fewest is how many units must be there for their variance to say anything: with three and
// one degree of freedom nearly all shares would be in the interval.
const fewest = 4

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Wilson returns the 95 % score interval of a share of k in n that are independent of each
// other (E. B. Wilson, 1927): unlike the textbook interval it is of use when k is 0 or n is
// small. It is [0, 1], nothing known, for n = 0.
func Wilson(k, n int64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	const z = 1.959963984540054 // the 97.5th percentile of the normal distribution
	share, z2 := Count{k, n}.Share(), z*z/float64(n)
	centre := (share + z2/2) / (1 + z2)
	half := math.Sqrt(z2*(share*(1-share)+z2/4)) / (1 + z2)
	low, high = max(0, centre-half), min(1, centre+half)
	// Rounding must not exclude what was measured.
	return min(low, share), max(high, share)
}

// Exact returns the 95 % interval of a share of k in n that are independent of each other
// which never covers less (C. J. Clopper and E. S. Pearson, 1934): of 0 in n it ends at
// 1 - 0.025^(1/n). It is for few units and decisions that rest on the bound; it is [0, 1],
// nothing known, for n = 0.
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

// mostUnseen is how large a share can be of which nothing was seen.
func mostUnseen(units []Count, all Count) float64 {
	squares := 0.0
	for _, u := range units {
		squares += float64(u.N) * float64(u.N)
	}
	as := float64(all.N) * float64(all.N) / squares // as many units of one size (L. Kish, 1965)
	return 1 - math.Pow(0.05, 1/as)
}

// jackknife estimates the variance of the share by leaving out one unit at a time.
func jackknife(units []Count, all Count) float64 {
	mean, squares := 0.0, 0.0 // of the differences from the share of all, which keeps them exact
	for _, u := range units {
		d := Count{all.K - u.K, all.N - u.N}.Share() - all.Share()
		mean += d
		squares += d * d
	}
	n := float64(len(units))
	mean /= n
	return max(0, squares-n*mean*mean) * (n - 1) / n
}

// degrees are those of freedom of the variance between units: fewer than units if most of
// what they vary by comes from few of them (F. E. Satterthwaite, 1946). Two less than their
// number at most, and not one: of few units with bursts those that miss the large ones
// have a low share and vary little, both at once. "make coverage" shows what that is worth.
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
	if !(kurtosis > 1) { // or nothing varies
		return n - 2
	}
	return min(n-2, 2*n/(kurtosis-1))
}

// student is the 97.5th percentile of Student's distribution.
func student(degrees float64) float64 {
	x := mathext.InvRegIncBeta(degrees/2, 0.5, 0.05)
	return math.Sqrt(degrees * (1 - x) / x)
}
