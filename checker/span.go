package checker

import (
	"cmp"
	"slices"
	"sort"
)

// span is a closed interval of time, ns.
type span struct{ from, to int64 }

func (s span) length() int64 { return s.to - s.from }

func (s span) meets(from, to int64) bool { return s.from <= to && s.to >= from }

// united sorts spans, joins those that overlap, and drops those that end before they begin.
func united(spans []span) []span {
	begin := func(a, b span) int { return cmp.Compare(a.from, b.from) }
	if !slices.IsSortedFunc(spans, begin) {
		spans = slices.SortedFunc(slices.Values(spans), begin)
	}
	var merged []span
	for _, s := range spans {
		if s.to < s.from {
			continue
		}
		if n := len(merged); n > 0 && s.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, s.to)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// togetherAtLeast returns when at least a number of the groups have a span. Each group is united.
func togetherAtLeast(least int, groups [][]span) []span {
	type edge struct {
		at   int64
		step int
	}
	var edges []edge
	for _, group := range groups {
		for _, s := range group {
			edges = append(edges, edge{s.from, +1}, edge{s.to, -1})
		}
	}
	// Spans are closed: if one ends where another begins, both contain that point.
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.step, a.step)) })
	var together []span
	n := 0
	for _, e := range edges {
		if n += e.step; e.step > 0 && n == least {
			together = append(together, span{from: e.at})
		} else if e.step < 0 && n == least-1 {
			together[len(together)-1].to = e.at
		}
	}
	return together
}

// meeting returns the spans that overlap a time. The spans are in order and disjoint.
func meeting(spans []span, from, to int64) []span {
	first := sort.Search(len(spans), func(i int) bool { return spans[i].to >= from })
	last := first
	for last < len(spans) && spans[last].from <= to {
		last++
	}
	return spans[first:last]
}

// uncovered returns the parts of spans that no hole covers. Both lists are in order and disjoint.
func uncovered(spans, holes []span) []span {
	var rest []span
	for _, s := range spans {
		for _, hole := range meeting(holes, s.from, s.to) {
			if hole.from > s.from {
				rest = append(rest, span{s.from, hole.from})
			}
			s.from = max(s.from, hole.to)
		}
		if s.from < s.to {
			rest = append(rest, s)
		}
	}
	return rest
}

// total is the total length of disjoint spans.
func total(spans []span) int64 {
	sum := int64(0)
	for _, s := range spans {
		sum += s.length()
	}
	return sum
}
