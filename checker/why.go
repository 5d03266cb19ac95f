package checker

import (
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"lockcheck/history"
)

// Causes of violations, as far as the history alone tells (docs/verdicts.md). Causes that name the lease are
// inherent in leases; the others are not.
const (
	CausePaused    = "lease ran out while its holder was paused"
	CauseCutOff    = "lease ran out while its holder was cut off"
	CauseUnrenewed = "lease ran out unrenewed"
	CauseOutlasted = "section outlasted the lease"
	CauseValidity  = "validity longer than the lease"
	CauseInFlight  = "write in flight when the lock ended"

	CauseExpiredGrant    = "grant that had expired when it arrived"
	CauseReleasedByOther = "released by somebody else"
	CauseLateRelease     = "released by an earlier release that came late"
	CauseRenewedByOther  = "renewed after somebody else was granted it"
	CauseClock           = "clock step that ended the lease early"
	CauseServerLost      = "grant lost with a server"
	CauseServerFault     = "lease ended early under a fault of the servers"
	CauseTwice           = "granted twice"
	CauseUnlocked        = "written although the acquire had failed"
	CauseUnexplained     = "unexplained"
)

// ClocksApart is the option of a lock in stored histories whose workers had clocks that told different times.
const ClocksApart = "clocks-apart"

// cause is why another worker could get the lock of a holder, or change its data.
type cause struct {
	class string
	fault *fault   // the fault that explains it, nil if none does
	with  []*fault // further faults without which fault would not have been enough
	span  span     // when the holder was stopped or cut off
}

// whyReplaced explains how b could have been granted the lock that an earlier holder, a, still believed to
// hold.
func (r *run) whyReplaced(a, b *attempt) cause {
	c := r.whyGone(a, b.acquire.done, b.expired)
	if c.class != CauseTwice {
		return c
	}
	if _, _, certain := r.inOrder(a, b); !certain && r.endedEarly(b, a.acquire.done).class != CauseTwice {
		return cause{class: CauseUnexplained} // b may have been the older one, and ended early
	}
	return c
}

// whyGone explains how another worker could have been granted the lock of a at a time. expired says that the
// service no longer had that other grant on record when it arrived.
func (r *run) whyGone(a *attempt, granted int64, expired bool) cause {
	w := r.byWorker[a.worker]
	if a.expired || expired {
		return cause{class: CauseExpiredGrant, fault: r.endedEarly(a, granted).fault}
	}
	if releaser := r.releasedBy[a]; releaser != nil && releaser.released().invoke <= granted {
		return cause{class: CauseReleasedByOther}
	}
	if r.removedBy(a, granted) != nil {
		return cause{class: CauseReleasedByOther}
	}
	from, to := a.exposure(granted)
	ended := r.endUnrenewed(a, granted).likely() <= granted
	if renewed := r.renewedSince(a, granted); renewed != nil {
		// A renewal that was in flight may have been in time, and a fault may have ended the lease after it.
		if c := r.endedEarly(a, granted); c.fault != nil && renewed.invoke <= granted {
			return c
		}
		if r.mayHaveRenewed(a, granted) {
			return cause{class: CauseUnexplained} // granted twice, or taken back
		}
		return cause{class: CauseRenewedByOther}
	}
	if ended && r.overrated(a, granted) {
		if c := r.endedEarly(a, granted); c.fault != nil {
			return c
		}
		return cause{class: CauseValidity}
	}
	latest := r.latestLeaseEnd(a, granted)
	stops := meeting(w.stops, from, to)
	stopped := len(stops) > 0 && stops[0].from <= latest
	cut, isCut := w.cutOffs.first(from, to)
	isCut = isCut && cut.from <= latest
	perhaps := r.endOf(a).byBelief() <= granted // of who was silent then nobody else is accused
	switch {
	case perhaps && stopped && r.header.Lease > 0:
		return cause{class: CausePaused, span: stops[0]}
	case perhaps && isCut && connected(r.header) && r.lostServers(a, cut).fault != nil:
		return r.lostServers(a, cut)
	case perhaps && isCut:
		return cause{class: CauseCutOff, span: cut}
	case perhaps && r.wasOverdue(a, granted):
		return cause{class: CauseUnrenewed}
	case ended && !r.header.Session && r.header.Lease > 0:
		if f := r.deferral(a); f != nil {
			return cause{class: CauseInFlight, fault: f}
		}
		return cause{class: CauseOutlasted}
	case a.earlierRelease() != nil:
		return cause{class: CauseLateRelease}
	}
	c := r.endedEarly(a, granted)
	if c.fault == nil && slices.Contains(strings.Split(r.header.Lock, "+"), ClocksApart) {
		return cause{class: CauseClock}
	}
	return c
}

// latestLeaseEnd is the latest time by which the lease of a grant has run out: the service counts it from its last
// answer at the latest. A holder that was stopped or cut off only later had outlasted its lease before. Without this
// limit, a slow machine on which sections outlast their leases would blame the next fault. It is math.MaxInt64 where
// nobody knows: without a lease, of a session, and after a renewal of unknown outcome.
func (r *run) latestLeaseEnd(a *attempt, granted int64) int64 {
	lease := r.header.Lease
	if lease <= 0 || r.header.Session {
		return math.MaxInt64
	}
	from := a.acquire.done
	for _, c := range a.renewals() {
		switch {
		case c.failed() || c.invoke > granted:
		case c.unknown():
			return math.MaxInt64
		default:
			from = max(from, c.done)
		}
	}
	return later(from, lease+time.Duration(clockAllowance(lease)))
}

// overrated says whether a holder took its lock for valid beyond a time by which its lease may have run
// out. If several may hold the lock, that is certain only of a validity longer than a lease that
// begins with the answer.
func (r *run) overrated(a *attempt, time int64) bool {
	lease := r.header.Lease
	return lease > 0 && a.validBy(time) > max(time, r.certainLeaseEnd(a))+clockAllowance(lease)
}

// certainLeaseEnd is the latest possible end of the lease of a grant, by its answer alone. Only locks that several
// may hold need it, because the previous hold says nothing about them. For other locks it is 0.
func (r *run) certainLeaseEnd(a *attempt) int64 {
	if exclusive(r.header) {
		return 0
	}
	return later(a.acquire.done, r.header.Lease)
}

// renewedSince returns a renewal that succeeded after another worker had been granted the lock, although the
// lease may have run out by then; nil if there was none. A renewal that was in flight at the time of that
// grant may have come first. It counts only if it would have kept the other worker out then.
func (r *run) renewedSince(a *attempt, granted int64) *renewal {
	for _, c := range a.renewals() {
		if !c.ok() || c.done <= granted {
			continue
		}
		ended := max(r.endUnrenewed(a, c.invoke).likely(), r.certainLeaseEnd(a)) <= granted
		if !ended {
			return nil // nor without any later renewal
		}
		if c.invoke > granted || r.keepsOut(a, c, granted) {
			return c
		}
	}
	return nil
}

// mayHaveRenewed says whether a renewal that was never answered may have kept a grant in force at a time.
func (r *run) mayHaveRenewed(a *attempt, time int64) bool {
	return slices.ContainsFunc(a.renewals(), func(c *renewal) bool { return c.unknown() && c.invoke < time })
}

// keepsOut says whether a renewal that the service applied before a time rules out that another worker was granted the
// lock then: the lease cannot have run out again, and nothing else could have ended the grant.
func (r *run) keepsOut(a *attempt, c *renewal, time int64) bool {
	if releaser := r.releasedBy[a]; releaser != nil && releaser.released().invoke <= time {
		return false
	}
	e := r.endOf(a)
	return min(later(c.invoke, r.header.Lease)-e.allowance, e.lapse, e.release) > time
}

// endedEarly looks for a fault of the servers between the acquire of a and the grant to another worker.
func (r *run) endedEarly(a *attempt, to int64) cause {
	from := a.acquire.invoke
	for _, e := range r.earlyEndReasons {
		if c := r.sufficientFaults(e, a, from, to); c.fault != nil {
			return c
		}
	}
	if a.reportedGone() {
		// The service itself says that it ended the grant, and nothing explains why.
		return cause{class: CauseUnexplained}
	}
	if r.header.Session && !r.header.Renewals && a.until == 0 && !r.keptOnRecord(a) && r.forces.first(r.begin, to) >= 0 {
		// The session's client renews in the background, and the history has no record of that. It does not
		// tell whether the client could go on renewing after an earlier fault.
		return cause{class: CauseUnexplained}
	}
	return cause{class: CauseTwice}
}

// lostServers explains a loss by the end of the servers that the holder was connected to.
func (r *run) lostServers(a *attempt, cut span) cause {
	for _, e := range r.earlyEndReasons {
		if e.class == CauseServerLost {
			return r.sufficientFaults(e, a, max(cut.from, a.acquire.invoke), cut.to)
		}
	}
	return cause{}
}

// sufficientFaults picks the first fault that may have ended a grant early. If servers lost their state or their clocks
// were moved, it picks as many faults as together hit a majority of the servers that the worker reaches. A
// grant that a majority has on record survives the loss of a minority.
func (r *run) sufficientFaults(e earlyEndReason, a *attempt, from, to int64) cause {
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

// keptOnRecord says that the service was seen to have the claim of a grant until the end.
func (r *run) keptOnRecord(a *attempt) bool {
	dropped, known := r.byKey[a.key].dropped[a.token]
	return known && a.token != 0 && dropped == 0 && r.unobserved == 0
}

func (r *run) onServers(f *fault) bool {
	return slices.ContainsFunc(f.Targets, r.isServer) || f.separates() && slices.ContainsFunc(f.Peers, r.isServer)
}

func (r *run) isServer(name string) bool { return slices.Contains(r.header.Servers, name) }

// whyOverwritten explains how the accesses of two grants got mixed; the resource served first before second.
func (r *run) whyOverwritten(first, second *access) cause {
	a, b := r.attempt(first.grant), r.attempt(second.grant)
	if r.unlocked(a) || r.unlocked(b) {
		return cause{class: CauseUnlocked}
	}
	if a == nil || b == nil || !a.granted() || !b.granted() || a.worker == b.worker || permits(r.header) > 1 {
		return cause{class: CauseUnexplained} // a holder that rightly shares the lock was not replaced
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

// deferral is the fault that held back a write of a grant, nil if there was none.
func (r *run) deferral(a *attempt) *fault { return r.deferrals[a.grant] }

// explain describes what the history shows of how b could be granted what a held.
func (r *run) explain(c cause, a, b *attempt) *Explanation {
	if c.class == CauseUnlocked {
		if !r.unlocked(a) {
			a = b
		}
		return r.explainUnlocked(a)
	}
	granted := b.acquire.done
	end := r.endUnrenewed(a, granted).likely()
	e := &Explanation{Key: r.name(a.key), Holder: r.granted(a), Next: r.granted(b), Record: r.observed(a, b)}
	if end <= r.end {
		e.LeaseEnd = end
	}
	switch c.class {
	case CausePaused:
		e.Stop = r.stopOf(a.worker, c.span)
	case CauseCutOff:
		e.Cut = &Stop{From: c.span.from, To: c.span.to}
	case CauseValidity:
		e.ValidUntil = a.validBy(granted)
	case CauseUnrenewed:
		session, _ := r.overdue(a)
		e.Renewal = &Renewal{Asked: session.last.invoke, Answered: session.last.done, LeaseEnd: session.from}
	case CauseRenewedByOther:
		renewed := r.renewedSince(a, granted)
		e.Renewal = &Renewal{Asked: renewed.invoke, Answered: renewed.done, LeaseEnd: r.endUnrenewed(a, renewed.invoke).likely()}
	case CauseInFlight:
		e.HeldUntil = min(end, a.holdEnd)
		if c.fault != nil {
			e.HeldBack = c.fault.ID
		}
	case CauseReleasedByOther:
		e.Releaser = r.releaser(a, granted)
	case CauseLateRelease:
		c := a.earlierRelease()
		e.Earlier = &Past{Fate: FateUnanswered, Asked: c.invoke, At: c.done}
	case CauseTwice, CauseUnexplained:
		e.Recovering, e.Between = r.recovering(a), r.between(a, b)
	case CauseClock, CauseServerLost, CauseServerFault:
		e.Connected, e.InForce = c.class == CauseServerLost && connected(r.header), c.inForce()
	}
	return e
}

// observerDelay is how much later than a command the observer of a service may learn of it. A command that it saw so soon
// after a grant, or after the answer to a release, may have been executed before that.
const observerDelay = 250 * time.Millisecond

// removedBy returns the command by which a worker that did not hold the lock removed the key of a grant before the lock
// was granted again; nil if the observer saw none. A command after the end of the lease need not have removed anything.
func (r *run) removedBy(a *attempt, granted int64) *history.Event {
	removals := r.byKey[a.key].removals
	from := later(a.acquire.done, observerDelay)
	to := min(granted, r.endUnrenewed(a, granted).likely())
	i := sort.Search(len(removals), func(i int) bool { return removals[i].Time >= from })
	for ; i < len(removals) && removals[i].Time <= to; i++ {
		e := &removals[i]
		if e.Client != r.name(a.worker) && !r.mayRelease(e.Client, a.key, e.Time) {
			return e
		}
	}
	return nil
}

// mayRelease says whether a command of a worker, seen at a time, may be that by which it released a key that it held. The
// worker's last attempt by then decides, because a worker makes one attempt after another.
func (r *run) mayRelease(worker string, key history.Name, seen int64) bool {
	for _, h := range slices.Backward(r.actor(worker).attempts) {
		if h.key == key && !h.acquire.failed() && h.acquire.invoke <= seen {
			return !h.releaseAnswered(seen - observerDelay.Nanoseconds())
		}
	}
	return false
}

// releaseAnswered says whether a release was answered before a time, by success or refusal.
func (a *attempt) releaseAnswered(time int64) bool {
	for c := range a.releases {
		if !c.unknown() && c.done < time {
			return true
		}
	}
	return false
}

// releaser is the worker that released or removed the lock of a before it was granted again, and when.
func (r *run) releaser(a *attempt, granted int64) *Granted {
	if by := r.releasedBy[a]; by != nil && by.released().invoke <= granted {
		releaser := r.granted(by)
		releaser.At = by.released().invoke
		return &releaser
	}
	e := r.removedBy(a, granted)
	return &Granted{Worker: e.Client, At: e.Time, Command: e.Note}
}

func (r *run) granted(a *attempt) Granted {
	return Granted{Worker: r.name(a.worker), Grant: r.name(a.grant), At: a.acquire.done, Token: a.token}
}

// stopOf is a time in which a worker was stopped, with the two times that bracket the signal to go on. A
// worker that is at work before the later of them is no longer stopped.
func (r *run) stopOf(w worker, stop span) *Stop {
	for i := range r.faults {
		f := &r.faults[i]
		if f.End == stop.to && f.does(history.Stops) && f.certainTo > f.Begin && f.certainTo != f.End && slices.Contains(f.Targets, r.name(w)) {
			return &Stop{From: stop.from, Resumed: f.certainTo, To: f.End}
		}
	}
	return &Stop{From: stop.from, To: stop.to}
}

// recovering is the last fault of servers that ended before a grant, if the servers may not have recovered
// from it: a failover may follow the end of the fault. It is nil if there is none.
func (r *run) recovering(a *attempt) *Recovering {
	var last *fault
	for i := range r.faults {
		f := &r.faults[i]
		recent := f.Applied && f.End <= a.acquire.invoke && a.acquire.invoke <= f.End+int64(r.header.Grace)
		if recent && r.onServers(f) && (last == nil || f.End > last.End) {
			last = f
		}
	}
	if last == nil {
		return nil
	}
	return &Recovering{Fault: last.inForce(), Ago: time.Duration(a.acquire.invoke - last.End)}
}

// observed is what the service itself had on record of the claim of a, nil if nobody knows. The observer
// never learns of a drop before it happens, only later.
func (r *run) observed(a, b *attempt) *Record {
	dropped, known := r.byKey[a.key].dropped[a.token]
	switch {
	case !known || a.token == 0, dropped == 0 && r.unobserved != 0:
		return nil
	}
	return &Record{Dropped: dropped, Late: dropped > b.acquire.done}
}

// inForce lists the faults that explain the violation.
func (c cause) inForce() []InForce {
	if c.fault == nil {
		return nil
	}
	all := []InForce{c.fault.inForce()}
	for _, f := range c.with {
		all = append(all, f.inForce())
	}
	return all
}

func (f *fault) inForce() InForce {
	return InForce{ID: f.ID, Kind: f.Kind, Targets: f.Targets, From: f.Begin}
}
