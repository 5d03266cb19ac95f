package checker

import (
	"slices"

	"lockcheck/checker/simulation"
)

// causes: the truth contradicts no cause.
func (o *oracle) causes() {
	for _, p := range []Property{MutualExclusion, NoStaleWrite, NoLostUpdate} {
		for _, v := range o.results.of(p).Violations {
			if len(v.Grants) < 2 || v.Cause == "" {
				continue
			}
			a, b := o.truth.Grants[v.Grants[0]], o.truth.Grants[v.Grants[1]]
			why := o.excludes(v.Cause, a, b)
			// A lost update is named before the write that overwrote it, whichever grant came first. And if
			// both acquires were open at once, the record may not tell the order.
			if why != "" && (p == NoLostUpdate || !o.record.before(o.record.byID[a.ID], o.record.byID[b.ID])) {
				why = o.excludes(v.Cause, b, a)
			}
			if why != "" && p == MutualExclusion && o.world.Permits > 1 {
				why = o.crowd(v)
			}
			if why != "" && !o.tokensMislead(a, b) {
				o.fail("cause: "+v.Cause, "%s, %s: %v: %+v %+v", p, why, v, *a, *b)
			}
		}
	}
}

// tokensMislead says that tokens show the wrong order of two grants, because the service counts them wrongly or
// grants out of turn.
func (o *oracle) tokensMislead(a, b *simulation.Grant) bool {
	return o.record.tokensMislead && a.Token != b.Token && a.Token < b.Token != (a.Order < b.Order)
}

// crowd says why no holder of a semaphore can have lost its permit by the cause of an incident; "" if one
// can. Any of the holders next to the one too many may be the one that lost it.
func (o *oracle) crowd(v Incident) (why string) {
	b := o.record.byID[v.Grants[1]]
	twice := slices.Contains([]string{CauseTwice, CauseClock, CauseServerLost, CauseServerFault}, v.Cause)
	if twice && len(o.truth.Grants[b.id].Excluded) > 0 {
		return ""
	}
	for _, a := range o.record.holds(v.Key) {
		if twice && a.holdEnd() >= b.answered && a.answered <= b.answered && len(o.truth.Grants[a.id].Excluded) > 0 {
			return ""
		}
		if a != b && a.answered <= b.answered && a.holdEnd() >= b.answered {
			if why = o.excludes(v.Cause, o.truth.Grants[a.id], o.truth.Grants[b.id]); why == "" {
				return ""
			}
		}
	}
	return why
}

// excludes says why a cannot have lost its lock to b by a cause, "" if it can.
func (o *oracle) excludes(cause string, a, b *simulation.Grant) string {
	during := wider(simulation.Interval{From: o.record.byID[a.ID].asked, To: o.record.byID[b.ID].answered}, doubt)
	stopped := meets(o.truth.Stopped[a.Worker], during)
	cut := meets(o.truth.Cut[a.Worker], during) || meets(o.truth.Away, during)
	ended := a.EndBefore(b.Order)
	fair := ended == simulation.Expired || ended == simulation.Released || ended == simulation.Disconnected
	bad := a.Order == 0 || b.Order == 0 || slices.Contains(b.Excluded, a.ID)
	switch cause {
	case CauseTwice:
		if fair && !bad && !o.beginUnknown(a) && !o.takenBackMeanwhile(a, b) {
			return "it ended by right"
		}
		if !bad && (a.Ended == simulation.Stepped || a.Ended == simulation.Wiped) {
			return "a fault ended it"
		}
	case CauseReleasedByOther:
		if len(o.serviceWrong()) == 0 {
			return "nobody released what was not his"
		}
	case CauseClock, CauseServerLost, CauseServerFault:
		if (a.Ended == simulation.Expired || a.Ended == simulation.Released) && !bad {
			return "it ended by right"
		}
	case CausePaused:
		if !stopped {
			return "it was not stopped"
		}
	case CauseCutOff:
		if !cut {
			return "it was not cut off"
		}
	case CauseOutlasted:
		if o.world.Session || o.world.Lease == 0 {
			return "there is no such lease"
		}
	case CauseValidity:
		if o.truth.Wrong["late"] == 0 && len(o.serviceWrong()) == 0 && !o.answeredLate(b) {
			return "its client counted right"
		}
	case CauseRenewedByOther:
		if !a.Revived {
			return "it was not taken back"
		}
	case CauseUnexplained:
		if len(o.serviceWrong()) == 0 && o.world.Permits <= 1 && o.truth.Right() && o.world.Reentrant <= 1 && a.Worker != b.Worker && !o.answeredLate(a) && !o.answeredLate(b) && !o.open(a, b) {
			return "a right service is explained"
		}
	}
	return ""
}

// takenBackMeanwhile says that a renewal took the lock back to a while b was asked for. The record does not tell
// whether the renewal came first: then the service granted the lock to b although a had it.
func (o *oracle) takenBackMeanwhile(a, b *simulation.Grant) bool {
	y := o.record.byID[b.ID]
	return a.Revived && slices.ContainsFunc(o.record.byID[a.ID].renewals, func(c operation) bool { return c.from <= y.answered && c.to >= y.asked })
}

// open says that both grants were asked for before either was answered, and that a worker was stopped or cut
// off meanwhile. Without tokens nobody knows whose answer was read late.
func (o *oracle) open(a, b *simulation.Grant) bool {
	x, y := o.record.byID[a.ID], o.record.byID[b.ID]
	during := simulation.Interval{From: min(x.answered, y.answered), To: max(x.answered, y.answered)}
	silent := func(w string) bool { return meets(o.truth.Stopped[w], during) || meets(o.truth.Cut[w], during) }
	return !o.world.Tokens && x.asked <= y.answered && y.asked <= x.answered && (silent(a.Worker) || silent(b.Worker))
}

// answeredLate says that the answer to an acquire was in flight for longer than a lease. Then only tokens tell who
// was granted the lock first.
func (o *oracle) answeredLate(g *simulation.Grant) bool {
	return o.record.byID[g.ID].answered-g.Granted > int64(o.record.header.Lease)
}

// beginUnknown says that the service wrongly ended a grant next to a too early, or gave it too early. Then the
// record does not tell when a may have begun.
func (o *oracle) beginUnknown(a *simulation.Grant) bool {
	early := []simulation.End{simulation.Early, simulation.Forgotten, simulation.Denied, simulation.Taken}
	return slices.ContainsFunc(o.truth.Order, func(g *simulation.Grant) bool {
		return g.Key == a.Key && (g.Order < a.Order && slices.Contains(early, g.Ended) || slices.Contains(g.Excluded, a.ID))
	})
}

func meets(all []simulation.Interval, i simulation.Interval) bool {
	return slices.ContainsFunc(all, func(x simulation.Interval) bool { return x.From <= i.To && x.To >= i.From })
}

// order: a search over all orders also excludes the answers that the checkers say exclude each other.
func (o *oracle) order() {
	f := o.results.of(Linearizability)
	if f.Verdict == Undecided {
		return
	}
	for _, key := range o.record.keys() {
		n := newSearch(o.record, key)
		if n == nil {
			continue
		}
		legal := n.legal()
		if o.searched++; !legal {
			o.illegal++
		}
		accused := f.Verdict == Violation && slices.Contains(f.Facts[0].Keys, key)
		switch {
		case !legal && !accused:
			o.fail("order: illegal, not accused", "%s %s", key, factsText(f.Facts))
		case legal && accused && n.exact:
			o.fail("order: legal, accused", "%s %v", key, f.Violations)
		}
	}
}
