package checker

// spans are times of one worker, in order and apart from each other. Those that many
// workers have in common are there once for all of them.
type spans struct {
	common []span
	own    []span // none of them meets a common one that is not part of it
}

// newSpans unites what many have in common with what one has next to it.
func newSpans(common, own []span) spans {
	own = united(own)
	for i, s := range own {
		if met := meeting(common, s.from, s.to); len(met) > 0 {
			own[i] = span{min(s.from, met[0].from), max(s.to, met[len(met)-1].to)}
		}
	}
	return spans{common, united(own)}
}

// first returns the first one that meets a time, and false if none does.
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

// meets says whether any of them meets a time.
func (s spans) meets(from, to int64) bool {
	_, met := s.first(from, to)
	return met
}
