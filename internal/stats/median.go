package stats

import (
	"cmp"
	"slices"
)

// Median is the middle value. For an even number of values it is the lower of the two middle ones, because
// that was measured; Quantile(0.5) of a Histogram does the same. The median of no values is zero.
func Median[T cmp.Ordered](values []T) T {
	if len(values) == 0 {
		var none T
		return none
	}
	return slices.Sorted(slices.Values(values))[(len(values)-1)/2]
}
