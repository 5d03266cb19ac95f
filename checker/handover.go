package checker

import (
	"fmt"
	"slices"
	"time"

	"lockcheck/history"
)

// handovers tells how long a lock took to pass on when its holder was stopped, cut
// off or ended for longer than its lease: from the beginning of that until the next
// grant to somebody else.
func (r *run) handovers() HandoverSummary {
	var took []time.Duration
	var s HandoverSummary
	for i := range r.faults {
		f := &r.faults[i]
		for _, h := range r.holds {
			if !f.bereaves(r, h) {
				continue
			}
			s.Holders++
			if next, granted := r.nextGrant(h); granted {
				took = append(took, time.Duration(next-f.Begin))
			} else {
				s.Stuck++
			}
		}
	}
	if len(took) > 0 {
		slices.Sort(took)
		s.Median, s.Longest = took[(len(took)-1)/2], took[len(took)-1]
	}
	return s
}

// bereaves says whether a fault came over the holder of a lock, for longer than the
// lock waits for it.
func (f *fault) bereaves(r *run, h Hold) bool {
	if !f.Applied || !slices.Contains(f.Targets, h.Worker) || h.Start > f.Begin || h.End < f.certainFrom {
		return false
	}
	if next, granted := r.nextGrant(h); granted && next < f.Begin {
		return false // it was replaced already
	}
	if f.does(history.Ends) {
		return f.widowed(h)
	}
	lease := int64(r.header.Lease + r.header.Slack)
	switch {
	case r.header.Lease == 0:
		return false
	case f.does(history.Stops):
		return f.certainTo-f.certainFrom > lease
	}
	return f.does(history.Cuts) && slices.ContainsFunc(r.cutOffs(h.Worker), func(s span) bool {
		return s.from <= f.certainFrom && s.to-f.certainFrom > lease
	})
}

// text is empty if no holder was stopped, cut off or ended.
func (s HandoverSummary) text(lease time.Duration) string {
	granted := s.Holders - s.Stuck
	if granted == 0 {
		return ""
	}
	return fmt.Sprintf("handed over %s after the holder was stopped, cut off or ended (median of %d; longest %s; lease %s)",
		dur(int64(s.Median)), granted, dur(int64(s.Longest)), dur(int64(lease)))
}

// notices tells when holders that somebody else had replaced learned of it: the
// earlier ones of overlaps, once each.
func notices(overlaps []overlap) NoticeSummary {
	var s NoticeSummary
	seen := make(map[string]bool)
	for _, o := range overlaps { // the first overlap of a hold is with the next grant
		if seen[o.earlier.Grant] || o.earlier.Start > o.later.Start {
			continue
		}
		seen[o.earlier.Grant] = true
		s.Replaced++
		switch o.earlier.Ended {
		case EndedByLost, EndedByDeadline:
			s.Told++
			s.Latest = max(s.Latest, time.Duration(o.earlier.End-o.later.Start))
		case EndedAtRelease:
			s.AtRelease++
		default:
			s.Never++
		}
	}
	return s
}

// text is empty if nobody was replaced.
func (s NoticeSummary) text() string {
	if s.Replaced == 0 {
		return ""
	}
	text := fmt.Sprintf("of %s %d learned of it before the release", count(s.Replaced, "replaced holder", "replaced holders"), s.Told)
	if s.Told > 0 {
		text += fmt.Sprintf(" (at most %s after the next grant)", dur(int64(s.Latest)))
	}
	return text + fmt.Sprintf(", %d at the release, %d never", s.AtRelease, s.Never)
}
