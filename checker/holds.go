package checker

// ending says what ended a hold.
type ending uint8

const (
	withoutTrace ending = iota
	atRelease
	byRelease
	byNotice
	byOwnDeadline
)

func (e ending) String() HoldEnd {
	switch e {
	case atRelease:
		return EndedAtRelease
	case byRelease:
		return EndedByRelease
	case byNotice:
		return EndedByLost
	case byOwnDeadline:
		return EndedByDeadline
	}
	return EndedWithoutTrace
}

// settle computes when the hold of a granted attempt ended, and until when it was
// promised.
func (r *run) settle(a *attempt) {
	a.holdEnd, a.ended = a.ending()
	// A clean-up of an odd history may lie before the grant: no time was held.
	a.holdEnd = max(a.holdEnd, a.acquire.done)
	a.deadline = a.promisedUntil(a.holdEnd)
	if r.header.Session && a.until == 0 {
		a.deadline = r.sessionEnd(a)
	}
}

// hold describes the hold of a granted attempt.
func (r *run) hold(a *attempt) Hold {
	return Hold{
		Key: r.name(a.key), Worker: r.name(a.worker), Grant: r.name(a.grant), Token: a.token,
		Invoked: a.acquire.invoke, Start: a.acquire.done, End: a.holdEnd, Ended: a.ended.String(),
		Deadline: a.deadline, LeaseEnd: a.leaseEnd(r.header.Lease),
	}
}

// described returns all holds, by key, then start.
func (r *run) described() []Hold {
	holds := make([]Hold, 0, len(r.holds))
	for _, a := range r.holds {
		holds = append(holds, r.hold(a))
	}
	return holds
}

// sessionEnd is the end of the promise of a session, which its client renews in
// the background: of the whole hold, unless the worker was stopped or cut off
// meanwhile, by one fault or by several. Clients renew at least each half of the
// lease, so that the last renewal before that vouches for half a lease at least,
// and a shorter time does no harm to it.
func (r *run) sessionEnd(a *attempt) int64 {
	end, start := a.holdEnd, a.acquire.done
	for _, silent := range meeting(r.byWorker[a.worker].silences, start, end) {
		if vouched := later(silent.from, r.header.Lease/2); silent.to > vouched {
			end = min(end, max(start, vouched))
		}
	}
	return end
}

// ending is the first moment in which the worker stopped acting as the holder:
// it began to release, or learned that the lock is gone. A release that fails
// ends the hold all the same (docs/verdicts.md).
func (a *attempt) ending() (int64, ending) {
	end, how := a.holdEnd, withoutTrace
	for c := range a.releases {
		if how != withoutTrace && c.invoke >= end {
			continue
		}
		end, how = c.invoke, byRelease
		if c.failed() {
			how = atRelease
		}
	}
	for _, n := range a.notices() {
		if n.time > end {
			continue
		}
		end, how = n.time, byNotice
		if n.byDeadline {
			how = byOwnDeadline
		}
	}
	return end, how
}

// promisedUntil is the end of the promise. A renewal that was acknowledged only
// after the hold's end promised nothing to anybody.
func (a *attempt) promisedUntil(end int64) int64 {
	if a.until == 0 {
		return end
	}
	deadline := a.until
	for _, c := range a.renewals() {
		if c.ok() && c.done <= end {
			deadline = max(deadline, c.until)
		}
	}
	return deadline
}
