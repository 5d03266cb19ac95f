package checker

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// response is what a worker got from the service: a grant, or trouble. Refusals are neither.
type response struct {
	at      int64
	worker  *actor
	granted bool
}

// fortunes tell, of any time, how the workers fared in it, without a look at each of them.
// Whether one met trouble and was granted the lock, and whether two were granted it, each
// pair of answers tells that follow each other and differ in that.
type fortunes struct {
	unlike []pair // of one worker, a grant and trouble
	others []pair // grants of two workers
}

// pair is two answers, the earlier first.
type pair struct {
	from int64
	// to is the earliest time of the second answer of this and of all later pairs.
	to int64
}

// fortunes looks at all answers once.
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

// answers returns what a worker was told, in order.
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

// inside says whether both answers of one of the pairs, by their beginnings, lie in a time.
func inside(pairs []pair, from, to int64) bool {
	i := sort.Search(len(pairs), func(i int) bool { return pairs[i].from >= from })
	return i < len(pairs) && pairs[i].to <= to
}

// well says whether the service was well in a time in which one worker got nothing but
// errors: at least two others were granted the lock, and none of those met an error.
// Where all runs short of time it is chance who gets an answer; one other worker
// that has its connection already would prove nothing.
func (f fortunes) well(from, to int64) bool {
	return inside(f.others, from, to) && !inside(f.unlike, from, to)
}
