package checker

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// response is an answer of the service to a worker: a grant or an error. Refusals are neither.
type response struct {
	at      int64
	worker  *actor
	granted bool
}

// fortunes answers, for any time, how the workers fared in it without scanning each of them. Consecutive
// answers that differ are enough to know whether a worker got both a grant and an error, and whether two
// workers were granted the lock.
type fortunes struct {
	unlike []pair // of one worker, a grant and an error in either order
	others []pair // grants to two workers
}

// pair is two answers, the earlier first.
type pair struct {
	from int64
	// to is the earliest time of the second answer of this and of all later pairs.
	to int64
}

// fortunes scans all answers once.
func (r *run) fortunes() fortunes {
	var all fortunes
	var grants []response
	for _, w := range r.byWorker {
		var last *response
		for _, a := range w.answers() {
			if last != nil && last.granted != a.granted {
				all.unlike = append(all.unlike, pair{last.at, a.at})
			}
			last = &a
			if a.granted {
				grants = append(grants, a)
			}
		}
	}
	slices.SortFunc(grants, func(a, b response) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(grants); i++ {
		if a, b := grants[i-1], grants[i]; a.worker != b.worker {
			all.others = append(all.others, pair{a.at, b.at})
		}
	}
	all.unlike, all.others = byBegin(all.unlike), byBegin(all.others)
	return all
}

// answers returns the responses that a worker got, in order.
func (w *actor) answers() []response {
	var all []response
	for _, a := range w.attempts {
		if c := &a.acquire; c.outcome != open && !a.busy {
			all = append(all, response{c.done, w, c.ok()})
		}
		for c := range a.calls {
			if c != &a.acquire && c.outcome == unsure {
				all = append(all, response{c.done, w, false})
			}
		}
	}
	sorted(all, func(a, b response) int { return cmp.Compare(a.at, b.at) })
	return all
}

func byBegin(pairs []pair) []pair {
	sorted(pairs, func(a, b pair) int { return cmp.Compare(a.from, b.from) })
	next := int64(math.MaxInt64)
	for i := range slices.Backward(pairs) {
		next = min(next, pairs[i].to)
		pairs[i].to = next
	}
	return pairs
}

// pairWithin says whether both answers of any pair lie in a time. The pairs are sorted by their beginnings.
func pairWithin(pairs []pair, from, to int64) bool {
	i := sort.Search(len(pairs), func(i int) bool { return pairs[i].from >= from })
	return i < len(pairs) && pairs[i].to <= to
}

// othersServed says whether the service was well in a time in which one worker got nothing but errors: at least two
// others were granted the lock, and no other worker got both a grant and an error. One served worker proves
// nothing: when everything is short of time, it is chance who gets an answer, and that worker may have had
// its connection already.
func (f fortunes) othersServed(from, to int64) bool {
	return pairWithin(f.others, from, to) && !pairWithin(f.unlike, from, to)
}
