package checker

import "math"

// ends finds, in a list of what has a beginning and an end, by beginnings, that which
// lasts to a time or longer, without a look at the rest. At the middle of each part that
// halving the list again and again leads to stands the latest end in that part. (An
// augmented search tree without pointers; after T. Cormen et al., "Introduction to
// Algorithms", chapter on interval trees.)
type ends []int64

func newEnds(n int, end func(int) int64) ends {
	e := make(ends, n)
	e.fill(0, n, end)
	return e
}

func (e ends) fill(from, to int, end func(int) int64) int64 {
	if from == to {
		return math.MinInt64
	}
	middle := (from + to) / 2
	e[middle] = max(end(middle), e.fill(from, middle, end), e.fill(middle+1, to, end))
	return e[middle]
}

// since yields in order, of the first n, the places of all that end at a time or later,
// and of few others.
func (e ends) since(time int64, n int, yield func(int) bool) { e.part(0, len(e), time, n, yield) }

func (e ends) part(from, to int, time int64, n int, yield func(int) bool) bool {
	middle := (from + to) / 2
	if from == to || from >= n || e[middle] < time {
		return true
	}
	return e.part(from, middle, time, n, yield) &&
		(middle >= n || yield(middle) && e.part(middle+1, to, time, n, yield))
}
