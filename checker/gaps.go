package checker

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// gaps returns the times between two grants that follow each other, or before the first or
// after the last, in order, each from when anybody first asked for the lock in it: the
// longest one, all that are longer than OutageGap, and some others.
func (r *run) gaps() []span {
	all := r.ungranted()
	w := asking{gaps: all, open: make([]int64, len(all)), first: make([]int64, len(all))}
	for i := range all {
		w.open[i], w.first[i] = math.MinInt64, math.MaxInt64
	}
	for a := range r.attempts.each {
		if a.asked {
			w.add(a.acquire.invoke, r.gaveUp(a))
		}
	}
	return w.asked()
}

// ungranted returns the times without a grant, in order, but for those that are too short
// to matter.
func (r *run) ungranted() []span {
	grants, stopped := r.holds, r.stopped()
	byAnswer := func(a, b *attempt) int { return cmp.Compare(a.acquire.done, b.acquire.done) }
	if !slices.IsSortedFunc(grants, byAnswer) {
		grants = slices.SortedStableFunc(slices.Values(grants), byAnswer)
	}
	// In the time before each grant somebody asked for it: the longest gap is no shorter.
	longest := int64(0)
	each := func(yield func(asked int64, gap span)) {
		last := r.start()
		for _, g := range grants {
			at, asked := min(g.acquire.done, stopped), g.acquire.invoke
			if r.gaveUp(g) < g.acquire.done { // dead by then
				asked = at
			}
			if at > last {
				yield(asked, span{last, at})
			}
			last = max(last, at)
		}
		if stopped > last {
			yield(stopped, span{last, stopped})
		}
	}
	each(func(asked int64, gap span) { longest = max(longest, gap.to-max(gap.from, asked)) })
	var gaps []span
	each(func(_ int64, gap span) {
		if gap.length() >= min(longest, int64(OutageGap)) {
			gaps = append(gaps, gap)
		}
	})
	return slices.Clip(gaps)
}

// asking finds out when anybody first asked for the lock in gaps, which are in order and
// apart from each other.
type asking struct {
	gaps []span
	// open is, of those who asked by the beginning of a gap and not by that of the one
	// before, when the last gave up; first when anybody asked within it.
	open, first []int64
}

// add says that somebody asked for the lock at a time, and when he gave up or was granted it.
func (w *asking) add(asked, gaveUp int64) {
	next := sort.Search(len(w.gaps), func(i int) bool { return w.gaps[i].from >= asked })
	if next < len(w.gaps) {
		w.open[next] = max(w.open[next], gaveUp)
	}
	if next > 0 && asked <= w.gaps[next-1].to && gaveUp > w.gaps[next-1].from {
		w.first[next-1] = min(w.first[next-1], asked)
	}
}

// asked returns the gaps from when anybody asked; where nobody did they have no length.
func (w *asking) asked() []span {
	until := int64(math.MinInt64)
	for i, gap := range w.gaps {
		until = max(until, w.open[i])
		if until > gap.from {
			continue
		}
		w.gaps[i].from = min(gap.to, w.first[i])
	}
	return w.gaps
}
