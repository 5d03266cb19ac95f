package checker

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// gaps returns, in order, the times without a grant: between consecutive grants, before the first and after
// the last. Each gap starts when a worker first asked for the lock in it. The result has the longest gap, all
// gaps longer than OutageGap, and some others.
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

// ungranted returns the times without a grant, in order. It omits times that are too short to matter.
func (r *run) ungranted() []span {
	grants, stopped := r.holds, r.stopped()
	byAnswer := func(a, b *attempt) int { return cmp.Compare(a.acquire.done, b.acquire.done) }
	if !slices.IsSortedFunc(grants, byAnswer) {
		grants = slices.SortedStableFunc(slices.Values(grants), byAnswer)
	}
	// Before each grant some worker asked for it, so the longest gap is at least that long.
	longest := int64(0)
	each := func(yield func(asked int64, gap span)) {
		last := r.start()
		for _, g := range grants {
			at, asked := min(g.acquire.done, stopped), g.acquire.invoke
			if r.gaveUp(g) < g.acquire.done { // the worker was dead by then
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

// asking finds when a worker first asked for the lock in each of some gaps, which are in order and disjoint.
type asking struct {
	gaps []span
	// open[i] is the latest time at which an attempt was given up that began by the beginning of gap i and
	// after the beginning of gap i-1. first[i] is the earliest attempt that began within gap i.
	open, first []int64
}

// add records when a worker asked for the lock, and when it gave up or was granted it.
func (w *asking) add(asked, gaveUp int64) {
	next := sort.Search(len(w.gaps), func(i int) bool { return w.gaps[i].from >= asked })
	if next < len(w.gaps) {
		w.open[next] = max(w.open[next], gaveUp)
	}
	if next > 0 && asked <= w.gaps[next-1].to && gaveUp > w.gaps[next-1].from {
		w.first[next-1] = min(w.first[next-1], asked)
	}
}

// asked returns the gaps, each from when a worker first asked. A gap in which no worker asked has no length.
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
