package checker

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// visited finds which of some times overlap with any event, in one pass over events in any order.
type visited struct {
	times []span // sorted by their ends
	// reached[i] is the latest end of the events that began by the end of times[i] and after the end of
	// times[i-1]. After close it covers all events that began by the end of times[i].
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

// endingSince is the index of the first time that ends at a moment or later.
func (w *visited) endingSince(at int64) int {
	return sort.Search(len(w.times), func(i int) bool { return w.times[i].to >= at })
}

// add records an event that lasted from one time to another.
func (w *visited) add(from, to int64) {
	if i := w.endingSince(from); i < len(w.times) {
		w.reached[i] = max(w.reached[i], to)
	}
}

// close must be called once, after all events were added.
func (w *visited) close() {
	for i := 1; i < len(w.reached); i++ {
		w.reached[i] = max(w.reached[i], w.reached[i-1])
	}
}

// overlapped says whether any event overlapped one of the times.
func (w *visited) overlapped(time span) bool {
	i := w.endingSince(time.to)
	return i < len(w.times) && w.times[i].to == time.to && w.reached[i] >= time.from
}
