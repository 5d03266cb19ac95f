package checker

import (
	"math"
	"slices"
	"time"

	"lockcheck/history"
)

// sessionRenewal is a request that keeps a session alive.
type sessionRenewal struct {
	call
	opens bool // it opens a new session of the worker
}

// renewalOfSession records what a client sends in the background. It is no sign that its worker acts as a holder.
func (b *builder) renewalOfSession(w *actor, e *history.Event) {
	process, of := b.names.Of(e.Process), b.names.Of(e.Grant)
	if e.Type == history.Invoke {
		c := &sessionRenewal{call: call{invoke: e.Time}, opens: e.Note == history.Opens}
		if w.renewals == nil {
			w.renewals = make(map[grant][]*sessionRenewal)
		}
		w.renewals[of] = append(w.renewals[of], c)
		b.open.Invoke(process, e.Op, pending{f: e.F, call: &c.call})
		return
	}
	if p, begun := b.open.Complete(process, e.Op); begun {
		p.call.done, p.call.outcome = e.Time, outcomeOf(e.Type)
	}
}

// unrenewed is a time in which a session can have been over because it was not renewed.
type unrenewed struct {
	span
	last *sessionRenewal // that was answered; nil if the session was opened by a call of another kind
}

// unrenewedTimes lists the times in which a session can have been over, by the record of its renewals: from a lease after
// the last answered one was sent, until the worker opened another session. A session that was renewed again had lived on.
// The service counts from when it gets a renewal, which is not before it was sent. begin is when the session was opened
// at the earliest; 0 if its opening is on record.
func unrenewedTimes(renewals []*sessionRenewal, begin int64, lease time.Duration) []unrenewed {
	var times []unrenewed
	since, last := begin, (*sessionRenewal)(nil)
	over := func(until int64) {
		if since != 0 {
			times = append(times, unrenewed{span{later(since, lease) - clockAllowance(lease), until}, last})
		}
	}
	for _, c := range renewals {
		if c.ok() {
			if c.opens {
				over(c.done)
			}
			since, last = c.invoke, c
		}
	}
	over(math.MaxInt64)
	return slices.DeleteFunc(times, func(u unrenewed) bool { return u.from > u.to })
}

// unrenewed returns the first time, from the request for an attempt on, in which its session can have been over because
// it was not renewed; false if nothing is on record.
func (r *run) unrenewed(a *attempt) (unrenewed, bool) {
	w := r.byWorker[a.worker]
	times := w.unrenewed
	if own := w.renewals[a.grant]; len(own) > 0 {
		times = unrenewedTimes(own, a.acquire.invoke, r.header.Lease)
	}
	i := slices.IndexFunc(times, func(u unrenewed) bool { return u.to >= a.acquire.invoke })
	if i < 0 {
		return unrenewed{}, false
	}
	return times[i], true
}

// wasUnrenewed says whether the session of a grant can have been over at a time because it was not renewed.
func (r *run) wasUnrenewed(a *attempt, time int64) bool {
	over, is := r.unrenewed(a)
	return is && over.from <= time
}
