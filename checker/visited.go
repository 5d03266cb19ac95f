package checker

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// visited finds out which of some times were met by anything, in one pass over what
// happened, in any order.
type visited struct {
	times []span // by their ends
	// reached is, of what began by the end of each time and not by that of the one
	// before, the latest end; once all is known, of what began by its end at all.
	reached []int64
}

func newVisited(times []span) *visited {
	w := &visited{times: slices.SortedFunc(slices.Values(times), func(a, b span) int { return cmp.Compare(a.to, b.to) })}
	w.reached = make([]int64, len(times))
	for i := range w.reached {
		w.reached[i] = math.MinInt64
	}
	return w
}

// endingSince is the place of the first time that ends at a moment or later.
func (w *visited) endingSince(at int64) int {
	return sort.Search(len(w.times), func(i int) bool { return w.times[i].to >= at })
}

// add says that something happened.
func (w *visited) add(from, to int64) {
	if i := w.endingSince(from); i < len(w.times) {
		w.reached[i] = max(w.reached[i], to)
	}
}

// close must be called once, after all that happened was added.
func (w *visited) close() {
	for i := 1; i < len(w.reached); i++ {
		w.reached[i] = max(w.reached[i], w.reached[i-1])
	}
}

// met says whether anything met one of the times.
func (w *visited) met(time span) bool {
	i := w.endingSince(time.to)
	return i < len(w.times) && w.times[i].to == time.to && w.reached[i] >= time.from
}
