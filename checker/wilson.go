package checker

import "math"

// Wilson returns the 95 % score interval of a share of k in n (E. B. Wilson,
// 1927): unlike the textbook interval it is of use when k is 0 or n is small.
// It is [0, 1], nothing known, for n = 0.
func Wilson(k, n int64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	const z = 1.959963984540054 // the 97.5th percentile of the normal distribution
	total := float64(n)
	share := float64(k) / total
	scale := 1 + z*z/total
	centre := (share + z*z/(2*total)) / scale
	half := z / scale * math.Sqrt(share*(1-share)/total+z*z/(4*total*total))
	low, high = max(0, centre-half), min(1, centre+half)
	// Rounding must not exclude what was measured.
	return min(low, share), max(high, share)
}
