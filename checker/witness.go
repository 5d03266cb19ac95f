package checker

import (
	"cmp"
	"maps"
	"slices"

	"lockcheck/history"
)

// The resource is a witness of its own. If workers read when they enter their section and before they leave
// it, the record of the resource alone tells how many workers were inside at once. Each worker was inside
// during its hold, so the holds must show at least as many.

// witness returns the highest number of workers that the resource saw inside one key at once.
func (r *run) witness() Fact {
	most := 0
	for k := range r.dataKeys {
		most = max(most, r.maxInside(k))
	}
	return Fact{Kind: FactInsideAtOnce, N: int64(most)}
}

// maxInside returns how many grants were inside a key at once, from each grant's first accepted access to its
// last. Accesses that were still on their way when the hold ended are left out.
func (r *run) maxInside(k *keyed) int {
	stays := make(map[*attempt]span)
	for e, a := range r.held(k) {
		if e.time > a.holdEnd {
			continue
		}
		s, known := stays[a]
		if !known {
			s.from = e.time
		}
		s.to = e.time
		stays[a] = s
	}
	most := 0
	var now []int64 // when the grants that are inside leave
	for _, s := range slices.SortedFunc(maps.Values(stays), func(a, b span) int { return cmp.Compare(a.from, b.from) }) {
		now = slices.DeleteFunc(now, func(to int64) bool { return to <= s.from })
		if s.to > s.from {
			now = append(now, s.to)
		}
		most = max(most, len(now))
	}
	return most
}

// insideWithoutHold compares what the resource saw with the holds and returns contradictions between them.
func (r *run) insideWithoutHold(overlaps together) []Fact {
	var found []Fact
	if r.header.Workload != history.WorkloadSemaphore {
		return nil
	}
	for k := range r.dataKeys {
		if n := r.maxInside(k); n > permits(r.header) && !overlaps.keys[k.name] {
			found = append(found, Fact{Kind: FactUnheld, Keys: []string{k.name}, N: int64(n)})
		}
	}
	return found
}
