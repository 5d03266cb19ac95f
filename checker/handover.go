package checker

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"lockcheck/history"
	"lockcheck/internal/stats"
)

// handovers tells how long a lock took to pass on when its holder was stopped, cut
// off or ended for longer than its lease: from the beginning of that until the next
// grant to somebody else.
func (r *run) handovers() (HandoverSummary, stats.Histogram) {
	var took []time.Duration
	var s HandoverSummary
	var all stats.Histogram
	for i := range r.faults {
		f := &r.faults[i]
		for h := range r.bereaved(f) {
			next := r.nextGrant(h)
			if next != nil && next.acquire.done < f.Begin {
				continue // it was replaced already
			}
			if next == nil && !r.wantedByOthers(h, f.Begin) {
				continue // there was nobody to hand it over to
			}
			s.Holders++
			if next == nil {
				s.Stuck++
			} else {
				took = append(took, time.Duration(next.acquire.done-f.Begin))
				all.Add(took[len(took)-1])
			}
		}
	}
	if len(took) > 0 {
		s.Median, s.Longest = stats.Median(took), slices.Max(took)
	}
	return s, all
}

// wantedByOthers says whether anybody but its holder asked for the lock of a hold after a time.
func (r *run) wantedByOthers(h *attempt, after int64) bool {
	return slices.ContainsFunc(r.byKey[h.key].attempts, func(a *attempt) bool {
		return a.worker != h.worker && a.asked && a.acquire.over(r.end) > after
	})
}

// bereaved returns the holds that a fault came over, for longer than the lock waits
// for a holder.
func (r *run) bereaved(f *fault) iter.Seq[*attempt] {
	if f.does(history.Ends) {
		return r.widowed(f)
	}
	return func(yield func(*attempt) bool) {
		for w := range r.workersOf(f) {
			if !r.silenced(f, w) {
				continue
			}
			for h := range w.heldBetween(f.Begin, f.certainFrom) {
				if h.acquire.done <= f.Begin && h.holdEnd >= f.certainFrom && !yield(h) {
					return
				}
			}
		}
	}
}

// silenced says whether a fault kept a worker from its lock service for longer than
// a lease.
func (r *run) silenced(f *fault, w *actor) bool {
	lease := int64(r.header.Lease + r.header.Grace)
	switch {
	case r.header.Lease == 0:
		return false
	case f.does(history.Stops):
		return f.certainTo-f.certainFrom > lease
	}
	return f.does(history.Cuts) && slices.ContainsFunc(w.cutOffs, func(s span) bool {
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

// add tells when a holder that somebody else had replaced learned of it: the earlier
// one of overlaps, once each. It is false if it did not before its release.
func (s *NoticeSummary) add(o overlap) (late time.Duration, told bool) {
	// The first overlap of a hold is with the next grant.
	if o.earlier.replaced || o.earlier.acquire.done > o.later.acquire.done {
		return 0, false
	}
	o.earlier.replaced = true
	s.Replaced++
	switch o.earlier.ended {
	case byNotice, byOwnDeadline:
		s.Told++
		late = time.Duration(o.earlier.holdEnd - o.later.acquire.done)
		s.Latest = max(s.Latest, late)
		return late, true
	case atRelease:
		s.AtRelease++
	default:
		s.Never++
	}
	return 0, false
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
