package checker

import (
	"math"
	"time"
)

// grantEnd is when the service may have ended a grant, as far as the history tells. Each field is the
// earliest time for one reason, math.MaxInt64 if that reason does not apply. Verdicts rest on byService,
// unreleased, byBelief and orReleased, which are never later than the truth. likely is an assumption, and
// only explanations rest on it.
type grantEnd struct {
	// lease is when the lease ran out. The service counts from when it gets the request, which is not before
	// the worker sent it. A renewal of unknown outcome can only have moved the end further away.
	lease int64
	// likelyLease is lease under the assumption that the service granted the lock only after the previous
	// hold was over.
	likelyLease int64
	// allowance is how much earlier than lease a correct server may end the grant.
	allowance int64
	// lapse is the earliest of these: the service gave up the session or the connection of the worker, a
	// release whose answer was lost took effect, or the service reported that the grant is gone.
	lapse int64
	// lateRelease is when the grant was asked for again, if an earlier release of it may still arrive.
	lateRelease int64
	// release is the first release that the service acknowledged. It need not have ended the grant: some
	// services acknowledge the release of a lock that is gone.
	release int64
	// session means that only deadline, the end of the validity, is known.
	session  bool
	deadline int64
}

// endOf returns when a grant may have ended.
func (r *run) endOf(a *attempt) grantEnd { return r.endUnrenewed(a, math.MaxInt64) }

// endUnrenewed returns when a grant may have ended if renewals that were asked for at or after a time had not
// happened.
func (r *run) endUnrenewed(a *attempt, since int64) grantEnd {
	lease := a.leaseUnrenewed(r.header.Lease, since)
	e := grantEnd{
		lease: lease, likelyLease: max(lease, later(a.earliestStart, r.header.Lease)), allowance: clockAllowance(r.header.Lease),
		lapse: r.lapse(a), release: math.MaxInt64,
	}
	for c := range a.releases {
		switch {
		case c.unknown() || c.failed() && r.mayRepeat(a.worker, c):
			e.lapse = min(e.lapse, c.invoke)
		case c.ok() && e.release == math.MaxInt64:
			e.release = c.invoke
		}
	}
	if e.lateRelease = math.MaxInt64; a.earlierRelease() != nil {
		e.lateRelease = a.acquire.invoke
	}
	for _, n := range a.notifications() {
		if n.byService {
			e.lapse = min(e.lapse, n.time)
		}
	}
	e.session, e.deadline = r.header.Session && a.until == 0, a.deadline
	return e
}

// byService is the earliest time at which the service may have ended the grant by itself, whatever it
// answered to a release later.
func (e grantEnd) byService() int64 { return min(e.lease-e.allowance, e.lapse, e.lateRelease) }

// unreleased is byService, or math.MaxInt64 if a release was acknowledged, because then the release was the
// end.
func (e grantEnd) unreleased() int64 {
	if e.release != math.MaxInt64 {
		return math.MaxInt64
	}
	return e.byService()
}

// byBelief is byService, but for a session it is the end of the validity.
func (e grantEnd) byBelief() int64 {
	if e.session {
		return e.deadline
	}
	return e.byService()
}

// orReleased is byBelief or the first acknowledged release, whichever is earlier.
func (e grantEnd) orReleased() int64 { return min(e.byBelief(), e.release) }

// likely is byBelief computed with likelyLease, so it is not proven.
func (e grantEnd) likely() int64 {
	if e.session {
		return e.deadline
	}
	return e.likelyByService()
}

// likelyByService is byService computed with likelyLease, so it is not proven.
func (e grantEnd) likelyByService() int64 { return min(e.likelyLease-e.allowance, e.lapse) }

// leaseUnrenewed is the end of a lease if renewals that were asked for at or after a time had not happened.
func (a *attempt) leaseUnrenewed(lease time.Duration, since int64) int64 {
	if lease <= 0 {
		return math.MaxInt64
	}
	begin := a.acquire.invoke
	switch {
	case a.rare == nil:
	case a.rare.renewed < since:
		begin = max(begin, a.rare.renewed)
	default:
		for _, c := range a.rare.renewals {
			if c.ok() && c.invoke < since {
				begin = max(begin, c.invoke)
			}
		}
	}
	return later(begin, lease)
}

// clockAllowance is how much too early a lease may seem to end without an error: servers count it in whole
// milliseconds of a clock that may be slewed. The figures are those of the Redlock specification: 1 % and 2
// ms.
func clockAllowance(lease time.Duration) int64 {
	return int64(min(lease, lease/100+2*time.Millisecond))
}
