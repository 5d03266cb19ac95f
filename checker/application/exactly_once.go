package application

import (
	"slices"

	"lockcheck/checker"
	"lockcheck/history"
)

// exactlyOnce judges that no piece of work was done twice.
func exactlyOnce(r *run) checker.Finding {
	if f, is := r.undescribed(checker.ExactlyOnce); is {
		return f
	}
	var found checker.Incidents
	done := make(map[string]*effect)
	for _, d := range r.inOrder() {
		first := done[d.id]
		if first == nil {
			done[d.id] = d
			continue
		}
		r.doneTwice(&found, first, d)
	}
	f := found.Finding(checker.ExactlyOnce)
	switch {
	case found.Total() > 0:
		because(&f, checker.Violation, checker.Fact{Kind: FactDoneTwice, N: found.Total()})
	case len(done) == 0 && !r.says(history.Did):
		because(&f, checker.NotApplicable, checker.Fact{Kind: FactNothingDone}) // it may keep other things in the resource
	case len(done) == 0:
		because(&f, checker.Undecided, checker.Fact{Kind: FactNothingDone})
	default:
		because(&f, checker.Valid, checker.Fact{Kind: FactDoneOnce, N: int64(len(done))})
	}
	return f
}

func (r *run) doneTwice(found *checker.Incidents, first, second *effect) {
	cause := r.whyTwice(first, second)
	found.Add(second.id, second.time, cause, func() checker.Incident {
		i := checker.Incident{
			Kind: KindDoneTwice, From: second.time, Cause: cause, Workers: []string{first.String(), second.String()},
			Faults: ids(r.inForce(first.from, second.time)), Figures: checker.IncidentFigures{ID: second.id, Length: max(0, length(first.time, second.from))},
		}
		if second.hold != nil {
			i.Key = second.hold.key
		}
		return i
	})
}

// whyTwice is a cause that the lines of two effects show, "" if they show none.
func (r *run) whyTwice(first, second *effect) string {
	if !r.ends() || !r.says(history.Holding) || len(r.holds) == 0 {
		return ""
	}
	if r.outside(first) || r.outside(second) {
		return CauseWithoutLock
	}
	a, b := first.hold, second.hold
	switch {
	case a == nil || b == nil || a == b || a.key != b.key:
		return ""
	case a.holder != b.holder && min(a.until, b.until) > max(a.start, b.start):
		return CauseOverlappingHolders
	case !b.again && a.ended != nil && a.ended.Time <= b.from && !r.staleBetween(a.key, first.time, second.from):
		return CauseDecidedBeforeLock
	}
	return ""
}

// staleBetween says whether a holder that had been replaced did something between two times: it may have undone the record
// of what others had done before.
func (r *run) staleBetween(key string, from, to int64) bool {
	return slices.ContainsFunc(r.effects, func(d *effect) bool {
		return d.hold != nil && d.hold.key == key && d.time >= from && d.from <= to && r.replacedBefore(d) != nil
	})
}

// outside says that an effect was certainly in no hold of any thread of its replica.
func (r *run) outside(d *effect) bool {
	p := r.replica(d.replica)
	return d.hold == nil && !p.spans.meets(d.from, d.time) && p.heard(d)
}
