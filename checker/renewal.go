package checker

import "time"

// wrongRenewals finds renewals that succeeded after another worker had been granted the lock: they took it back. The
// other grant must certainly have come after the renewed one, when the lease of the renewed grant may have run out.
// A renewal in flight then counts only if it would have kept the other worker out. Whether the other worker still held the lock does not matter: a worker whose renewal succeeds
// believes that nobody else has held the lock. All such renewals of one grant count as one incident.
//
// Sessions renewed without a record are skipped, because their end is unknown. Holders of a semaphore do not replace
// each other. A fault of the servers may have taken the lock from the other worker. A renewal during which the same
// worker asked for the key again may have renewed its newer grant, where a service knows workers and not grants.
func wrongRenewals(r *run) incidents {
	var found incidents
	if permits(r.header) > 1 {
		return found
	}
	for _, key := range r.keys {
		k := r.byKey[key]
		for _, a := range k.holds {
			if other, c := r.tookBack(k, a); c != nil {
				found.add(k.name, c.invoke, func() Incident { return r.wrongRenewal(a, c, other) })
			}
		}
	}
	return found
}

// tookBack returns the first wrong renewal of a grant, and the grant that had replaced it; nil if there is none.
func (r *run) tookBack(k *keyed, a *attempt) (*attempt, *renewal) {
	last := a.renewedUntil()
	if last == 0 || r.header.Session && a.until == 0 {
		return nil, nil
	}
	gone := r.goneAtFirst(a)
	for _, other := range k.holds[k.firstHoldAfter(a.acquire.done):] {
		if other.acquire.done >= last {
			break
		}
		if gone > other.acquire.done || other.worker == a.worker || a.shares(other) || other.expired || !r.replacedBy(a, other) {
			continue
		}
		c := r.renewedSince(a, other.acquire.done)
		if c != nil && !r.disturbed(other.acquire.invoke, c.done) && !r.askedAgain(a, c.done) {
			return other, c
		}
	}
	return nil, nil
}

// askedAgain says that the worker of a grant asked for its key again by a time.
func (r *run) askedAgain(a *attempt, by int64) bool {
	for other := range r.byWorker[a.worker].between(a.acquire.done, by) {
		if other != a && other.key == a.key && other.acquire.invoke > a.acquire.done {
			return true
		}
	}
	return false
}

// renewedUntil is when the last renewal of a grant was acknowledged, 0 for never.
func (a *attempt) renewedUntil() (last int64) {
	for _, c := range a.renewals() {
		if c.ok() {
			last = max(last, c.done)
		}
	}
	return last
}

func (r *run) wrongRenewal(a *attempt, c *renewal, other *attempt) Incident {
	return Incident{
		Kind: KindWrongRenewal, Figures: IncidentFigures{Length: time.Duration(c.done - other.acquire.done)},
		Key: r.name(a.key), From: c.invoke, To: c.done, Class: "wrong renewal",
		Workers: r.nameAll(a.worker, other.worker), Grants: r.nameAll(a.grant, other.grant),
		Faults: r.inForce(other.acquire.done, c.done),
	}
}

func noWrongRenewal(r *run, found incidents) judged {
	j := judge(NoWrongRenewal, found)
	renewed := 0
	for a := range r.attempts.each {
		for _, c := range a.renewals() {
			if c.ok() {
				renewed++
			}
		}
	}
	switch {
	case permits(r.header) > 1:
		j.because(NotApplicable, Fact{Kind: FactSharedByRight})
	case found.total == 0 && r.header.Session:
		j.because(NotApplicable, Fact{Kind: FactNoRenewal})
	case found.total > 0:
		j.because(Violation, Fact{Kind: FactWrongRenewals, N: int64(found.total)})
	case renewed == 0:
		j.because(NotApplicable, Fact{Kind: FactNoRenewal})
	default:
		j.because(Valid, Fact{Kind: FactRenewals, N: int64(renewed)})
	}
	return j
}
