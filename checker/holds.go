package checker

// ending says what ended a hold.
type ending uint8

const (
	withoutTrace ending = iota
	atRelease
	byRelease
	byNotification
	byOwnDeadline
)

func (e ending) String() HoldEnd {
	switch e {
	case atRelease:
		return EndedAtRelease
	case byRelease:
		return EndedByRelease
	case byNotification:
		return EndedByLost
	case byOwnDeadline:
		return EndedByDeadline
	}
	return EndedWithoutTrace
}

// settle computes when the hold of a granted attempt ended, and until when it was
// valid.
func (r *run) settle(a *attempt) {
	a.holdEnd, a.ended = a.ending()
	// A clean-up of an odd history may lie before the grant: no time was held.
	a.holdEnd = max(a.holdEnd, a.acquire.done)
	a.deadline = a.validUntil(a.holdEnd)
	if a.until == 0 {
		a.deadline = min(a.deadline, r.lapse(a))
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
	for _, n := range a.notifications() {
		if how != withoutTrace && n.time > end {
			continue
		}
		end, how = n.time, byNotification
		if n.byDeadline {
			how = byOwnDeadline
		}
	}
	return end, how
}

// validUntil is the end of the validity. A renewal that was acknowledged only
// after the hold's end made nothing valid.
func (a *attempt) validUntil(end int64) int64 {
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
