package checker

import (
	"cmp"
	"slices"
)

// collectHolds returns the holds of all grants, by key, then start.
func collectHolds(r *run) []Hold {
	var holds []Hold
	for _, a := range r.attempts {
		if a.granted() {
			holds = append(holds, a.hold(r))
		}
	}
	slices.SortFunc(holds, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Start, b.Start),
			cmp.Compare(a.Invoked, b.Invoked), cmp.Compare(a.Grant, b.Grant))
	})
	return holds
}

// holdsByKey returns the holds of each key by start.
func (r *run) holdsByKey() map[string][]Hold {
	byKey := make(map[string][]Hold)
	for _, h := range r.holds {
		byKey[h.Key] = append(byKey[h.Key], h)
	}
	return byKey
}

func (a *attempt) hold(r *run) Hold {
	h := Hold{
		Key: a.key, Worker: a.worker, Grant: a.grant, Token: a.acquire.token,
		Invoked: a.acquire.invoke, Start: a.acquire.done,
		LeaseEnd: a.leaseEnd(r.header.Lease),
	}
	h.End, h.Ended = a.ending()
	// A clean-up of an odd history may lie before the grant: no time was held.
	h.End = max(h.End, h.Start)
	h.Deadline = a.deadline(h.End)
	if r.header.Session && a.acquire.until == 0 {
		h.Deadline = r.sessionEnd(h)
	}
	return h
}

// sessionEnd is the end of the promise of a session, which its client renews in
// the background: of the whole hold, unless the worker was stopped or cut off
// meanwhile, by one fault or by several. Clients renew at least each half of the
// lease, so that the last renewal before that vouches for half a lease at least,
// and a shorter time does no harm to it.
func (r *run) sessionEnd(h Hold) int64 {
	end := h.End
	for _, silent := range r.silences(h.Worker) {
		vouched := later(silent.from, r.header.Lease/2)
		if silent.meets(h.Start, h.End) && silent.to > vouched {
			end = min(end, max(h.Start, vouched))
		}
	}
	return end
}

// ending is the first moment in which the worker stopped acting as the holder:
// it began to release, or learned that the lock is gone. A release that fails
// ends the hold all the same (docs/verdicts.md).
func (a *attempt) ending() (int64, HoldEnd) {
	end, how := a.lastSeen, EndedWithoutTrace
	for i, c := range a.releases {
		if i > 0 && c.invoke >= end {
			continue
		}
		end, how = c.invoke, EndedByRelease
		if c.failed() {
			how = EndedAtRelease
		}
	}
	for _, n := range a.lost {
		if n.time > end {
			continue
		}
		end, how = n.time, EndedByLost
		if n.by == byDeadline {
			how = EndedByDeadline
		}
	}
	return end, how
}

// deadline is the end of the promise. A renewal that was acknowledged only
// after the hold's end promised nothing to anybody.
func (a *attempt) deadline(end int64) int64 {
	if a.acquire.until == 0 {
		return end
	}
	deadline := a.acquire.until
	for _, c := range a.renewals {
		if c.ok() && c.done <= end {
			deadline = max(deadline, c.until)
		}
	}
	return deadline
}
