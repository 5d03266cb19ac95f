package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockcheck/history"
)

// Causes of violations, as far as the history alone tells (docs/verdicts.md). Those
// that name the lease are inherent in leases; the others are not.
const (
	CausePaused    = "lease ran out while its holder was paused"
	CauseCutOff    = "lease ran out while its holder was cut off"
	CauseOutlasted = "section outlasted the lease"
	CauseValidity  = "validity longer than the lease"
	CauseInFlight  = "write in flight when the lock ended"

	CauseExpiredGrant    = "grant that had expired when it arrived"
	CauseReleasedByOther = "released by somebody else"
	CauseRenewedByOther  = "renewed after somebody else was granted it"
	CauseClock           = "clock step that ended the lease early"
	CauseServerLost      = "grant lost with a server"
	CauseServerFault     = "lease ended early under a fault of the servers"
	CauseTwice           = "granted twice"
	CauseUnlocked        = "written although the acquire had failed"
	CauseUnexplained     = "unexplained"
)

// clocksApart is the option of locks whose workers have clocks that tell different times.
const clocksApart = "clocks-apart"

// cause is why somebody else could have the lock, or change the data, of a holder.
type cause struct {
	class string
	fault *fault   // that explains it, if one does
	with  []*fault // without which that fault would not have been enough
	span  span     // when the holder was stopped or cut off
}

// whyReplaced explains how b can have been granted the lock that a, who was granted it
// before, still took for its own.
func (r *run) whyReplaced(a, b *attempt) cause {
	granted := b.acquire.done
	w := r.byWorker[a.worker]
	if a.expired || b.expired {
		return cause{class: CauseExpiredGrant, fault: r.endedEarly(a, b).fault}
	}
	if releaser := r.releasedBy[a]; releaser != nil && releaser.released().invoke <= granted {
		return cause{class: CauseReleasedByOther}
	}
	from, to := r.exposed(a, b)
	ended := r.canHaveEndedBefore(a, granted) <= granted
	if renewed := r.renewedSince(a, granted); renewed != nil {
		// One that was in flight may have been in time, and a fault have ended the lease after it.
		if c := r.endedEarly(a, b); c.fault != nil && renewed.invoke <= granted {
			return c
		}
		return cause{class: CauseRenewedByOther}
	}
	if ended && r.overrated(a, granted) {
		if c := r.endedEarly(a, b); c.fault != nil {
			return c
		}
		return cause{class: CauseValidity}
	}
	stops := meeting(w.stops, from, to)
	cut, isCut := w.cutOffs.first(from, to)
	perhaps := r.canHaveEnded(a) <= granted // of who was silent then nobody else is accused
	switch {
	case perhaps && len(stops) > 0 && r.header.Lease > 0:
		return cause{class: CausePaused, span: stops[0]}
	case perhaps && isCut && connected(r.header) && r.lostServers(a, cut).fault != nil:
		return r.lostServers(a, cut)
	case perhaps && isCut:
		return cause{class: CauseCutOff, span: cut}
	case ended && !r.header.Session && r.header.Lease > 0:
		if f := r.deferral(a); f != nil {
			return cause{class: CauseInFlight, fault: f}
		}
		return cause{class: CauseOutlasted}
	}
	c := r.endedEarly(a, b)
	if c.fault == nil && slices.Contains(strings.Split(r.header.Lock, "+"), clocksApart) {
		return cause{class: CauseClock}
	}
	if _, _, certain := r.inOrder(a, b); c.class == CauseTwice && !certain && r.endedEarly(b, a).class != CauseTwice {
		return cause{class: CauseUnexplained} // b may have been the older one, and ended early
	}
	return c
}

// canHaveEnded is the earliest time at which the service may have ended a grant by
// itself, whatever it answered to a release later on. Of a session only its validity is
// known.
func (r *run) canHaveEnded(a *attempt) int64 {
	if r.header.Session && a.until == 0 {
		return a.deadline
	}
	return r.selfEnd(a)
}

// canHaveEndedBefore is canHaveEnded by the lease as likelyLeaseEnd has it: what an explanation
// goes by.
func (r *run) canHaveEndedBefore(a *attempt, time int64) int64 {
	if r.header.Session && a.until == 0 {
		return a.deadline
	}
	return r.selfEndWith(a, a.likelyLeaseEnd(r.header.Lease, time))
}

// overrated says whether a holder took its lock for valid beyond a time by which its lease can have run
// out. If several may hold the lock, that is certain only of a validity longer than a lease that
// begins with the answer.
func (r *run) overrated(a *attempt, time int64) bool {
	lease := r.header.Lease
	return lease > 0 && a.validBy(time) > max(time, r.certainly(a))+clockAllowance(lease)
}

// certainly is the latest end that the lease of a grant can have by its answer alone. Only locks that
// several may hold need it, for the hold before tells nothing about them; for others it is 0.
func (r *run) certainly(a *attempt) int64 {
	if exclusive(r.header) {
		return 0
	}
	return later(a.acquire.done, r.header.Lease)
}

// renewedSince returns a renewal that succeeded after somebody else had been granted the lock, by when
// the lease can have run out; nil if there was none. A renewal in flight at the time of that grant
// may have come first. It counts only if the lease cannot have run out again after it.
func (r *run) renewedSince(a *attempt, granted int64) *renewal {
	for _, c := range a.renewals() {
		if !c.ok() || c.done <= granted {
			continue
		}
		before := max(r.canHaveEndedBefore(a, c.invoke), r.certainly(a)) <= granted
		if after := later(c.invoke, r.header.Lease); before && (c.invoke > granted || after-clockAllowance(r.header.Lease) > granted) {
			return c
		}
	}
	return nil
}

// endedEarly looks for a fault of the servers while a held the lock.
func (r *run) endedEarly(a, b *attempt) cause {
	from, to := a.acquire.invoke, b.acquire.done
	for _, e := range r.earlies {
		if c := r.enough(e, a, from, to); c.fault != nil {
			return c
		}
	}
	if a.ended == atRelease || a.ended == byNotification {
		// The service says itself that it ended the grant, and nothing explains it.
		return cause{class: CauseUnexplained}
	}
	if r.header.Session && a.until == 0 && !r.keptOnRecord(a) && r.forces.first(r.begin, to) >= 0 {
		// Its client renews in the background, without a record: whether it could go on with
		// that after a fault that is over, nobody knows.
		return cause{class: CauseUnexplained}
	}
	return cause{class: CauseTwice}
}

// lostServers explains a loss by the end of the servers that the holder was connected to.
func (r *run) lostServers(a *attempt, cut span) cause {
	for _, e := range r.earlies {
		if e.class == CauseServerLost {
			return r.enough(e, a, max(cut.from, a.acquire.invoke), cut.to)
		}
	}
	return cause{}
}

// enough picks the first fault that can have ended a grant early. Where servers lost what they had,
// or their clocks were moved, it picks as many as together hit a majority of the servers that its
// worker reaches, for a grant that a majority has on record survives the loss of a minority.
func (r *run) enough(e early, a *attempt, from, to int64) cause {
	c := cause{class: e.class}
	servers := r.reaches(r.name(a.worker))
	hit := make(nameSet)
	for _, i := range e.faults.all(from, to) {
		f := &r.faults[i]
		before := len(hit)
		for _, name := range slices.Concat(f.Targets, f.Peers) {
			if slices.Contains(servers, name) {
				hit[name] = true
			}
		}
		switch {
		case c.fault == nil:
			c.fault = f
		case len(hit) > before:
			c.with = append(c.with, f)
		}
		if e.class == CauseServerFault || 2*len(hit) > len(servers) {
			break
		}
	}
	return c
}

// keptOnRecord says that the service was seen to have the claim of a grant to the end.
func (r *run) keptOnRecord(a *attempt) bool {
	dropped, known := r.byKey[a.key].dropped[a.token]
	return known && a.token != 0 && dropped == 0 && r.unobserved == 0
}

func (r *run) onServers(f *fault) bool {
	return slices.ContainsFunc(f.Targets, r.isServer) || f.separates() && slices.ContainsFunc(f.Peers, r.isServer)
}

func (r *run) isServer(name string) bool { return slices.Contains(r.header.Servers, name) }

// whyOverwritten explains how the accesses of two grants got mixed: first is the one
// at the resource that was first.
func (r *run) whyOverwritten(first, second *access) cause {
	a, b := r.attempt(first.grant), r.attempt(second.grant)
	if r.unlocked(a) || r.unlocked(b) {
		return cause{class: CauseUnlocked}
	}
	if a == nil || b == nil || !a.granted() || !b.granted() || a.worker == b.worker || permits(r.header) > 1 {
		return cause{class: CauseUnexplained} // who shares the lock by right was not replaced
	}
	late := first // the access of the earlier holder
	if earlier, later, _ := r.inOrder(a, b); earlier != a {
		a, b, late = earlier, later, second
	}
	switch {
	case late.write && late.time > a.holdEnd:
		return cause{class: CauseInFlight, fault: r.deferral(a)}
	case a.holdEnd > b.acquire.done:
		return r.whyReplaced(a, b)
	}
	return cause{class: CauseUnexplained}
}

// deferral is the fault that held a write of a grant back, nil if there was none.
func (r *run) deferral(a *attempt) *fault { return r.deferrals[a.grant] }

// tell says in words how b could be granted what a held.
func (r *run) tell(c cause, a, b *attempt) string {
	if c.class == CauseUnlocked {
		if !r.unlocked(a) {
			a = b
		}
		return r.tellUnlocked(a)
	}
	holder, next, key := r.name(a.worker), r.name(b.worker), r.name(a.key)
	text := fmt.Sprintf("%s was granted %s at %s%s", holder, key, r.at(a.acquire.done), withToken(a))
	if b.acquire.done < a.acquire.done {
		text += ", by an answer that came late"
	}
	granted := b.acquire.done
	end := r.canHaveEndedBefore(a, granted)
	switch c.class {
	case CausePaused:
		text += fmt.Sprintf(", was stopped from %s %s, and its lease can have run out at %s", r.at(c.span.from), r.untilContinued(a.worker, c.span), r.at(end))
	case CauseCutOff:
		text += fmt.Sprintf(" and was cut off from %s to %s", r.at(c.span.from), r.at(c.span.to))
	case CauseOutlasted:
		text += fmt.Sprintf("; its lease can have run out at %s, and it worked on", r.at(end))
	case CauseValidity:
		text += fmt.Sprintf(" and took it for valid until %s, but its lease can have run out at %s", r.at(a.validBy(granted)), r.at(end))
	case CauseRenewedByOther:
		renewed := r.renewedSince(a, granted)
		text += fmt.Sprintf("; its lease can have run out at %s, and yet its renewal, asked for at %s, succeeded at %s",
			r.at(r.canHaveEndedBefore(a, renewed.invoke)), r.at(renewed.invoke), r.at(renewed.done))
	case CauseInFlight:
		text += fmt.Sprintf(", for no longer than until %s, and its write was still on its way then", r.at(min(end, a.holdEnd)))
	case CauseExpiredGrant:
		text += "; the service no longer had the claim of one of the two on record when its grant arrived"
	case CauseReleasedByOther:
		releaser := r.releasedBy[a]
		text += fmt.Sprintf("; %s released it at %s, though it was not its own", r.name(releaser.worker), r.at(releaser.released().invoke))
	case CauseTwice:
		text += "; nothing can have ended that grant " + r.before(end) + r.after(a)
	case CauseClock, CauseServerLost, CauseServerFault:
		if c.class == CauseServerLost && connected(r.header) {
			text += "; the lock lasted as long as its connection, and " + c.told(r)
			break
		}
		text += fmt.Sprintf("; that grant cannot have ended by itself %s, but %s", r.before(end), c.told(r))
	case CauseUnexplained:
		text += "; nothing in the record says why that did not keep others out" + r.after(a)
	}
	if c.class == CauseTwice || c.class == CauseUnexplained {
		text += r.justBefore(a, b)
	}
	if said := r.observed(a, b); said != "" {
		text += "; " + said
	}
	if c.fault != nil && c.class == CauseInFlight {
		text += ", held back by fault " + c.fault.ID
	}
	return text + fmt.Sprintf("; %s was granted it at %s%s", next, r.at(b.acquire.done), withToken(b))
}

// justBefore tells of the last attempt that a worker gave up or took back between two grants: what that
// attempt left behind or removed may be the reason. "" if there was none.
func (r *run) justBefore(a, b *attempt) string {
	var last *attempt
	for _, other := range r.byKey[b.key].attempts {
		at := r.gaveUp(other)
		if other.asked && !other.granted() && !other.busy && a.acquire.done < at && at < b.acquire.done && (last == nil || at > r.gaveUp(last)) {
			last = other
		}
	}
	if last == nil {
		return ""
	}
	return fmt.Sprintf("; between the two grants, at %s, %s gave up its attempt %s", r.at(r.gaveUp(last)), r.name(last.worker), r.name(last.grant))
}

// untilContinued says when a worker that was stopped went on: somewhere between the two times
// that bracket the signal. One that is at work before the later of them is not stopped any more.
func (r *run) untilContinued(w worker, stop span) string {
	for i := range r.faults {
		f := &r.faults[i]
		if f.End != stop.to || !f.does(history.Stops) || f.certainTo <= f.Begin || f.certainTo == f.End || !slices.Contains(f.Targets, r.name(w)) {
			continue
		}
		if from, to := r.at(f.certainTo), r.at(f.End); from != to {
			return fmt.Sprintf("until it was continued between %s and %s", from, to)
		}
		return "until it was continued at " + r.at(f.End)
	}
	return "to " + r.at(stop.to)
}

// after names the fault of servers that ended last before a grant, if they may not have been done
// with it: a failover may come when the fault is over. "" for none.
func (r *run) after(a *attempt) string {
	var last *fault
	for i := range r.faults {
		f := &r.faults[i]
		recent := f.Applied && f.End <= a.acquire.invoke && a.acquire.invoke <= f.End+int64(r.header.Grace)
		if recent && r.onServers(f) && (last == nil || f.End > last.End) {
			last = f
		}
	}
	if last == nil {
		return ""
	}
	return fmt.Sprintf(", but %s had ended %s before it was asked for, and servers may take %s to recover", last.name(), dur(a.acquire.invoke-last.End), dur(int64(r.header.Grace)))
}

// observed says what the service itself had on record of the claim of a, "" if nobody
// knows. The observer learns of it later than it happens, never before.
func (r *run) observed(a, b *attempt) string {
	dropped, known := r.byKey[a.key].dropped[a.token]
	granted := b.acquire.done
	switch {
	case !known || a.token == 0:
		return ""
	case dropped != 0 && dropped <= granted:
		return fmt.Sprintf("by its own record the service had dropped that claim by %s", r.at(dropped))
	case dropped != 0:
		return fmt.Sprintf("the service was seen to drop that claim at %s", r.at(dropped))
	case r.unobserved != 0:
		return ""
	}
	return "by its own record the service had that claim to the end"
}

// told says which faults explain it, and from when on each was in force.
func (c cause) told(r *run) string {
	if c.fault == nil {
		return "the clocks of the workers differed from the start (lock option " + clocksApart + ")"
	}
	var parts []string
	for _, f := range append([]*fault{c.fault}, c.with...) {
		parts = append(parts, fmt.Sprintf("%s was in force from %s", f.name(), r.at(f.Begin)))
	}
	return strings.Join(parts, ", and ")
}

// name is a fault in words.
func (f *fault) name() string {
	if len(f.Targets) == 0 {
		return fmt.Sprintf("fault %s (%s)", f.ID, f.Kind)
	}
	return fmt.Sprintf("fault %s (%s of %s)", f.ID, f.Kind, listed(f.Targets))
}

func (r *run) before(end int64) string {
	if end > r.end {
		return "at all"
	}
	return "before " + r.at(end)
}

// causedBy says what violations were caused by, the most frequent cause first; "" for
// none.
func causedBy(causes map[string]int64) string {
	classes := sortedKeys(causes)
	slices.SortStableFunc(classes, func(a, b string) int { return cmp.Compare(causes[b], causes[a]) })
	var parts []string
	for _, class := range classes {
		part := class
		if len(classes) > 1 {
			part += fmt.Sprintf(" (%d)", causes[class])
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return ""
	}
	return "cause: " + strings.Join(parts, ", ")
}

// at is a time since the begin of the history.
func (r *run) at(t int64) string { return dur(max(0, t-r.begin)) }

func withToken(a *attempt) string {
	if a.token == 0 {
		return ""
	}
	return fmt.Sprintf(" with token %d", a.token)
}
