package application

import (
	"cmp"
	"slices"

	"lockcheck/checker"
	"lockcheck/history"
)

func compareHolds(a, b *hold) int {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.from, b.from), cmp.Compare(a.until, b.until),
		cmp.Compare(a.replica, b.replica), cmp.Compare(a.client, b.client), cmp.Compare(a.key, b.key))
}

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
	state, cause := r.whyUnnoticed(earlier, faults)
	found.Add(later.key, later.start, cause, func() checker.Incident {
		return checker.Incident{
			Kind: KindHoldersOverlap, Key: later.key, From: later.start, To: min(earlier.until, later.until), Cause: cause,
			Workers: []string{earlier.String(), later.String()}, Faults: ids(faults), Figures: checker.IncidentFigures{Holder: state},
		}
	})
}

// between are the faults that were in force from the beginning of one hold to that of another.
func (r *run) between(earlier, later *hold) []*fault {
	return r.inForce(min(earlier.start, later.start), later.start)
}

// whyUnnoticed says what kept a holder from noticing that somebody else was granted its key.
func (r *run) whyUnnoticed(h *hold, faults []*fault) (checker.HolderState, string) {
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
