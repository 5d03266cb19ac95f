package checker

import "slices"

// spans are times of one worker, in order and disjoint. Times that many workers share are stored once for all
// of them.
type spans struct {
	common []span
	own    []span // none of them overlaps a common span unless it contains that span
}

// newSpans unites the common spans of many workers with the spans of one worker.
func newSpans(common, own []span) spans {
	own = united(own)
	for i, s := range own {
		if met := meeting(common, s.from, s.to); len(met) > 0 {
			own[i] = span{min(s.from, met[0].from), max(s.to, met[len(met)-1].to)}
		}
	}
	return spans{common, united(own)}
}

// first returns the first span that overlaps a time, and false if none does.
func (s spans) first(from, to int64) (span, bool) {
	own, common := meeting(s.own, from, to), meeting(s.common, from, to)
	switch {
	case len(own)+len(common) == 0:
		return span{}, false
	case len(common) == 0, len(own) > 0 && own[0].from <= common[0].from:
		return own[0], true
	}
	return common[0], true
}

// meets says whether any span overlaps a time.
func (s spans) meets(from, to int64) bool {
	_, met := s.first(from, to)
	return met
}

// in lists the spans that overlap a time, in order and disjoint.
func (s spans) in(from, to int64) []span {
	return united(slices.Concat(meeting(s.own, from, to), meeting(s.common, from, to)))
}
