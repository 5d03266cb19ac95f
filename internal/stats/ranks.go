package stats

import "cmp"

// Ranks turns the values of two sets into counts whose share is twice the mean rank of a set among all
// values; equal values share their ranks. So Permutation of these counts is the exact rank test (F. Wilcoxon,
// 1945), in which an outlier weighs no more than the largest rank.
func Ranks[T cmp.Ordered](first, second []T) (a, b []Count) {
	of := func(v T) Count {
		twice := int64(0)
		for _, set := range [][]T{first, second} {
			for _, other := range set {
				switch cmp.Compare(other, v) {
				case -1:
					twice += 2
				case 0:
					twice++
				}
			}
		}
		return Count{K: twice, N: 1}
	}
	for _, v := range first {
		a = append(a, of(v))
	}
	for _, v := range second {
		b = append(b, of(v))
	}
	return a, b
}
