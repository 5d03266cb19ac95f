package checker

import "math"

// endTree is a search tree over intervals that are sorted by their beginnings. It finds the intervals that last
// until a time or longer without scanning the others. Halving the list repeatedly divides it into parts, and
// the middle of each part stores the latest end in that part. (An augmented search tree without pointers;
// after T. Cormen et al., "Introduction to Algorithms", chapter on interval trees.)
type endTree []int64

func newEndTree(n int, end func(int) int64) endTree {
	e := make(endTree, n)
	e.fill(0, n, end)
	return e
}

func (e endTree) fill(from, to int, end func(int) int64) int64 {
	if from == to {
		return math.MinInt64
	}
	middle := (from + to) / 2
	e[middle] = max(end(middle), e.fill(from, middle, end), e.fill(middle+1, to, end))
	return e[middle]
}

// since yields, in order, the indexes among the first n intervals that end at a time or later. It also yields
// a few intervals that end earlier.
func (e endTree) since(time int64, n int, yield func(int) bool) { e.part(0, len(e), time, n, yield) }

func (e endTree) part(from, to int, time int64, n int, yield func(int) bool) bool {
	middle := (from + to) / 2
	if from == to || from >= n || e[middle] < time {
		return true
	}
	return e.part(from, middle, time, n, yield) &&
		(middle >= n || yield(middle) && e.part(middle+1, to, time, n, yield))
}
