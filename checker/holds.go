package checker

import "slices"

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

// computeHoldEnd computes when the hold of a granted attempt ended, and until when it was valid.
func (r *run) computeHoldEnd(a *attempt) {
	a.holdEnd, a.ended = a.ending()
	// In an odd history a clean-up may precede the grant. The hold then has no length.
	a.holdEnd = max(a.holdEnd, a.acquire.done)
	a.deadline = a.validUntil(a.holdEnd)
	if a.until == 0 {
		a.deadline = min(a.deadline, r.lapse(a))
	}
}

func (r *run) hold(a *attempt) Hold {
	return Hold{
		Key: r.name(a.key), Worker: r.name(a.worker), Grant: r.name(a.grant), Token: a.token,
		Invoked: a.acquire.invoke, Start: a.acquire.done, End: a.holdEnd, Ended: a.ended.String(),
		Deadline: a.deadline, LeaseEnd: r.endOf(a).likelyLease,
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

// ending is the first moment in which the worker stopped acting as the holder: it began to release, or
// learned that the lock is gone. A release that fails ends the hold all the same (docs/verdicts.md).
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

// validUntil is the end of the validity. A renewal that was acknowledged only after the end of the hold does
// not extend it.
func (a *attempt) validUntil(end int64) int64 {
	if a.until == 0 {
		return end
	}
	return a.validBy(end)
}

// computeEarliestStarts computes the earliest time at which each hold of a key may have begun: not before the previous hold
// was over. The lease of a session does not count from the grant, so it has no such bound.
func (r *run) computeEarliestStarts(k *keyed) {
	if !exclusive(r.header) || r.header.Session {
		return
	}
	for i, a := range k.holds {
		// A previous hold is one that was granted before this one was asked for, or before this one can have
		// ended.
		before := min(i, k.firstHoldAfter(max(a.acquire.invoke, r.endOf(a).byService())-1)) - 1
		if last := min(i, k.firstHoldAfter(r.validityStart(a))) - 1; last > before && r.promptSince(a, k.holds[last].acquire.done) {
			before = last
		}
		if before >= 0 && !(r.rankedByToken(a) && k.holds[before].token > a.token) {
			a.earliestStart = min(r.earliestEnd(k.holds[before]), a.acquire.done)
		}
		// No lease ends before its grant.
		if end := r.endOf(a).likelyLease; end <= a.acquire.done && r.promptSince(a, end) {
			a.earliestStart = r.validityStart(a)
		}
	}
}

// earliestEnd is the earliest time at which the service may have ended a hold. It is 0 (unknown) if the service says
// that the hold ended earlier, or if a fault of the servers may have ended it.
func (r *run) earliestEnd(a *attempt) int64 {
	end := r.endOf(a).likely()
	if a.expired || slices.ContainsFunc(a.notifications(), func(n notification) bool { return n.byService && n.time < end }) {
		return 0
	}
	for c := range a.calls {
		if c.failed() && c.done < end {
			return 0
		}
	}
	for _, e := range r.earlyEndReasons {
		if e.faults.first(a.acquire.invoke, end) >= 0 {
			return 0
		}
	}
	if c := a.released(); c != nil {
		end = min(end, c.invoke)
	}
	return end
}

// validityStart is the time from which the client counts the validity of a hold: when it sent the request that was
// granted. That may be long after the worker began to wait. Without a validity it is the time of the answer.
func (r *run) validityStart(a *attempt) int64 {
	if a.until == 0 || r.header.Lease <= 0 {
		return a.acquire.done
	}
	return min(a.until-int64(r.header.Lease), a.acquire.done)
}

// promptSince says whether the worker of an attempt ran and reached the service from a time until it was
// granted the lock. If so, its answer cannot have been waiting unread since that time.
func (r *run) promptSince(a *attempt, time int64) bool {
	w := r.byWorker[a.worker]
	return len(meeting(w.stops, time, a.acquire.done)) == 0 && !w.cutOffs.meets(time, a.acquire.done)
}

// validBy is the end of the validity that a holder had been told by a time, renewals included; 0 if its
// client reports no validity.
func (a *attempt) validBy(time int64) int64 {
	until := a.until
	for _, c := range a.renewals() {
		if until != 0 && c.ok() && c.done <= time {
			until = max(until, c.until)
		}
	}
	return until
}
