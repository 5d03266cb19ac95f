package application

import (
	"slices"

	"lockcheck/checker"
	"lockcheck/history"
)

// lasting remembers, of the holds so far, the two of different holders that lasted longest: one of them is of somebody else
// than whoever comes next.
type lasting struct{ first, second *hold }

func (l *lasting) add(h *hold) {
	switch {
	case l.first == nil || l.first.holder == h.holder:
		if l.first == nil || h.until > l.first.until {
			l.first = h
		}
	case h.until > l.first.until:
		l.first, l.second = h, l.first
	case l.second == nil || h.until > l.second.until:
		l.second = h
	}
}

func (l *lasting) other(than holder) *hold {
	if l.first != nil && l.first.holder != than {
		return l.first
	}
	return l.second
}

// mutualExclusion judges that no two holders certainly held a key at the same time. Each hold counts once, with the
// one of somebody else that had begun before it and lasted longest.
func mutualExclusion(r *run) checker.Finding {
	if f, is := r.unsaid(checker.MutualExclusion, history.Holding); is {
		return f
	}
	var found checker.Incidents
	for _, key := range r.keys() {
		var before lasting
		for _, h := range r.byKey[key] {
			if o := before.other(h.holder); o != nil && min(o.until, h.until) > h.start {
				r.overlapped(&found, o, h)
			}
			before.add(h)
		}
	}
	f := found.Finding(checker.MutualExclusion)
	switch holds, holders := r.countHolds(); {
	case found.Total() > 0:
		because(&f, checker.Violation, checker.Fact{Kind: FactHoldersOverlap, N: found.Total()})
	case !r.ends():
		because(&f, checker.Undecided, checker.Fact{Kind: FactEndsUnsaid})
	case holds == 0:
		because(&f, checker.Undecided, checker.Fact{Kind: FactNoHold})
	case holders < 2:
		because(&f, checker.Undecided, checker.Fact{Kind: FactFewHolders, N: holders})
	default:
		because(&f, checker.Valid, checker.Fact{Kind: FactHoldersApart, N: holds})
	}
	return f
}

func (r *run) overlapped(found *checker.Incidents, earlier, later *hold) {
	faults := r.between(earlier, later)
	state, cause, hit := r.whyUnnoticed(earlier, later, faults)
	other := later
	if hit == later {
		other = earlier
	}
	found.Add(later.key, later.start, cause, func() checker.Incident {
		return checker.Incident{
			Kind: KindHoldersOverlap, Key: later.key, From: later.start, To: min(earlier.until, later.until), Cause: cause,
			Workers: []string{hit.String(), other.String()}, Faults: ids(faults), Figures: checker.IncidentFigures{Holder: state},
		}
	})
}

// between are the faults that were in force from the beginning of one hold to that of another.
func (r *run) between(earlier, later *hold) []*fault {
	return r.inForce(min(earlier.start, later.start), later.start)
}

// whyUnnoticed says which of two holders did not notice that the other one was granted its key, and what kept it from
// that: the earlier one, if there is nothing. The later one may have been granted the key first: a fault that hit it before
// the other one began, and did still then, held back its answer, and its line came when its lease was over.
func (r *run) whyUnnoticed(earlier, later *hold, faults []*fault) (checker.HolderState, string, *hold) {
	if state, cause := kept(earlier, faults); state != checker.HolderHealthy {
		return state, cause, earlier
	}
	if state, cause := kept(later, r.inForce(earlier.from, earlier.start)); state != checker.HolderHealthy {
		return state, cause, later
	}
	if lease := r.header.Lease.Nanoseconds(); lease > 0 && later.from-earlier.start >= lease {
		return checker.HolderHealthy, CauseHolderOutlasted, earlier
	}
	return checker.HolderHealthy, CauseHolderHealthy, earlier
}

// kept says what some faults did to a holder.
func kept(h *hold, faults []*fault) (checker.HolderState, string) {
	// A kill that is still on record here came before the hold: it ends all others.
	faults = slices.DeleteFunc(slices.Clone(faults), func(f *fault) bool { return f.Does(history.Ends) })
	switch stateOf(h.replica, faults) {
	case checker.HolderPaused:
		return checker.HolderPaused, CauseHolderPaused
	case checker.HolderCutOff:
		return checker.HolderCutOff, CauseHolderCutOff
	}
	return checker.HolderHealthy, CauseHolderHealthy
}

// countHolds returns how many holds there were, and of how many holders.
func (r *run) countHolds() (holds, holders int64) {
	all := make(map[holder]bool)
	for _, h := range r.holds {
		all[h.holder] = true
		if !h.again {
			holds++
		}
	}
	return holds, int64(len(all))
}
