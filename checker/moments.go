package checker

import (
	"slices"

	"lockcheck/history"
)

// openCall returns the call of a worker that was open when the worker was caught at a moment; nil if the
// history lacks it.
func (r *run) openCall(moment string, e *history.Event) *call {
	for _, c := range r.callsOf(history.CallOf(moment), e) {
		if c.covers(e.Time, r.end) {
			return c
		}
	}
	return nil
}

// callsOf lists the calls of a kind at which an event may have caught a worker.
func (r *run) callsOf(f history.Function, e *history.Event) (calls []*call) {
	of := r.names.Of(e.Grant)
	if r.header.Renewals && f == history.Renew {
		for _, c := range r.actor(e.Process).renewals[of] {
			if c.op == e.Op {
				calls = append(calls, &c.call)
			}
		}
		return calls
	}
	a := r.attempt(of)
	switch {
	case a == nil:
	case f == history.Acquire:
		calls = append(calls, &a.acquire)
	case f == history.Renew:
		for _, c := range a.renewals() {
			calls = append(calls, &c.call)
		}
	case f == history.Release:
		calls = slices.Collect(a.releases)
	}
	return calls
}

// covers says whether a call was open at a time.
func (c *call) covers(at, end int64) bool { return c.invoke <= at && at <= c.doneOr(end) }

// missedMoment says why a fault did not come at the moment that it waited for. It is "" if the fault did, or
// if it waited for no such moment.
func (f *fault) missedMoment(r *run) MissReason {
	switch {
	case history.CallOf(f.Moment) != "":
		if f.caught == nil || !f.caught.covers(f.certainFrom, r.end) {
			return MissNoCall
		}
	case f.Moment == history.MomentHolding:
		if !f.metAwaitedHold(r) {
			return MissHoldOver
		}
	case f.Moment == history.MomentRequest || f.Moment == history.MomentAnswer:
		if !f.metWork(r) { // such as a handshake, or a ping of an idle connection
			return MissNoWorker
		}
	case f.Moment == history.MomentQueued:
		if !f.hitCall(r) {
			return MissNotQueued
		}
	case f.Moment == history.MomentLost:
		if f.grantedAgain(r) {
			return MissGranted
		}
	}
	return ""
}

// metAwaitedHold says whether the hold in which the actor had read, and which the fault waited for, still
// lasted when the fault was certainly in force. Another hold is no substitute: a clock that jumps after the
// release proves nothing about the released lock, and the worker of the next hold may not be inside its
// section yet.
func (f *fault) metAwaitedHold(r *run) bool {
	w := r.actor(f.Actor)
	kills := f.does(history.Ends) && slices.Contains(f.Targets, f.Actor)
	for h := range w.heldBetween(f.awaited, f.awaited) {
		// The hold of a killed worker leaves no trace after its last event.
		untilDeath := slices.Contains(w.abandoned, h) && (kills || f.certainFrom <= w.killed)
		if untilDeath || f.certainFrom <= h.holdEnd {
			return true
		}
	}
	return false
}

// metWork says whether the actor asked for a lock, or had one, when its message was held back.
func (f *fault) metWork(r *run) bool {
	for range r.actor(f.Actor).between(f.awaited, f.certainFrom) {
		return true
	}
	return false
}

// hitCall says whether an acquire of the actor was open when the fault came into force.
func (f *fault) hitCall(r *run) bool {
	for a := range r.actor(f.Actor).between(f.certainFrom, f.certainFrom) {
		if a.acquire.covers(f.certainFrom, r.end) {
			return true
		}
	}
	return false
}

// grantedAgain says whether the actor was granted a lock between its loss and the fault.
func (f *fault) grantedAgain(r *run) bool {
	for a := range r.actor(f.Actor).between(f.awaited, f.certainFrom) {
		if a.granted() && f.awaited < a.acquire.done && a.acquire.done <= f.certainFrom {
			return true
		}
	}
	return false
}

// strikesCall says whether the fault need not hit a holder, because it was aimed at another moment of a
// worker.
func (f *FaultCoverage) strikesCall() bool {
	switch f.Moment {
	case history.MomentQueued, history.MomentLost, history.MomentRequest, history.MomentAnswer:
		return true
	}
	return history.CallOf(f.Moment) != ""
}
