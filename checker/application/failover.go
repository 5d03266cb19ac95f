package application

import (
	"slices"
	"sort"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/stats"
)

// failovers tells how long keys took to pass on after their holder was paused or killed, or ended by itself, until the
// next replica said that it held the key. Keys that nobody held afterwards are not among them, and neither are those that
// a paused holder went on to hold.
func (r *run) failovers() checker.FailoverSummary {
	var s checker.FailoverSummary
	var took []time.Duration
	for _, h := range r.holds {
		from := r.stoppedHolding(h)
		if from == 0 {
			continue
		}
		all := r.byKey[h.key]
		i := sort.Search(len(all), func(i int) bool { return all[i].start > from })
		for i < len(all) && (all[i] == h || all[i].again) {
			i++
		}
		if i == len(all) || !h.passedOn(all[i], from) {
			continue
		}
		s.Holders++
		took = append(took, length(from, all[i].start))
	}
	if len(took) > 0 {
		s.Median, s.Longest = stats.Median(took), slices.Max(took)
	}
	return s
}

// passedOn says whether the next hold followed because the holder had been stopped: not if it went on to hold the key and
// gave it back before, and, of a hold of its own, only if its program had ended.
func (h *hold) passedOn(next *hold, stopped int64) bool {
	if next.holder == h.holder {
		return h.killed || h.ended != nil && h.ended.F == history.Ended
	}
	return h.until <= stopped || h.until > next.start
}

// stoppedHolding is when a holder was first paused or killed in its hold, or its program ended by itself; 0 for never.
func (r *run) stoppedHolding(h *hold) int64 {
	first := int64(0)
	if h.ended != nil && h.ended.F == history.Ended {
		first = h.ended.From
	}
	for i := range r.faults {
		f := &r.faults[i]
		hit := f.Applied && slices.Contains(f.Targets, h.replica) && (f.Does(history.Ends) || f.Does(history.Stops))
		if hit && f.Begin >= h.start && h.openAt(f) && (first == 0 || f.Begin < first) {
			first = f.Begin
		}
	}
	return first
}

func length(from, to int64) time.Duration { return time.Duration(to - from) }
