package stats

import (
	"cmp"
	"slices"
)

// Median is the middle one of some values, of an even number the lower of the two in the
// middle, which was measured, as is what Quantile(0.5) of a Histogram stands for. Of none
// it is zero.
func Median[T cmp.Ordered](values []T) T {
	if len(values) == 0 {
		var none T
		return none
	}
	return slices.Sorted(slices.Values(values))[(len(values)-1)/2]
}
