package checker

import (
	"math"
	"slices"
	"time"

	"lockcheck/history"
)

// sessionRenewal is a request that opens a session, or keeps one alive.
type sessionRenewal struct {
	call
	op    int64
	opens bool
}

// renewalOfSession records what a client sends in the background. It is no sign that its worker acts as a holder.
func (b *builder) renewalOfSession(w *actor, e *history.Event) {
	process, of := b.names.Of(e.Process), b.names.Of(e.Grant)
	if e.Type == history.Invoke {
		c := &sessionRenewal{call: call{invoke: e.Time}, op: e.Op, opens: e.Note == history.Opens}
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

// overdue is a time in which a session may have been over because it was not renewed.
type overdue struct {
	span
	last *sessionRenewal // that was answered
}

// findOverdue finds out when the sessions of a worker may have been over.
func (r *run) findOverdue(w *actor) {
	w.overdue = make(map[grant][]overdue, len(w.renewals))
	for of, renewals := range w.renewals {
		w.overdue[of] = overdueTimes(renewals, r.header.Lease)
	}
}

// overdueTimes lists the times in which a session may have been over, by the record of its renewals: from one lease after
// the last answered one was sent, until the worker opened another session. An answered renewal shows that it lived on.
// The service counts from when it gets a renewal, which is not before it was sent. It may count from earlier: a
// follower of ZooKeeper answers pings itself, and its leader never learns of them if the follower is lost. Such an end is
// early, and faults of the servers explain it.
func overdueTimes(renewals []*sessionRenewal, lease time.Duration) []overdue {
	var times []overdue
	var last *sessionRenewal
	over := func(until int64) {
		if last == nil {
			return
		}
		if from := later(last.invoke, lease) - clockAllowance(lease); from <= until {
			times = append(times, overdue{span{from, until}, last})
		}
	}
	for _, c := range renewals {
		if !c.ok() {
			continue
		}
		if c.opens {
			over(c.done)
		}
		last = c
	}
	over(math.MaxInt64)
	return times
}

// overdue returns when the session of a grant may have been over for the first time because it was not renewed; false if
// nothing is on record. A session that ended before the acquire was answered does not count if the worker had opened
// another one by then.
func (r *run) overdue(a *attempt) (overdue, bool) {
	w := r.byWorker[a.worker]
	times, own := w.overdue[a.grant]
	if !own {
		times = w.overdue[0]
	}
	i := slices.IndexFunc(times, func(o overdue) bool { return o.to > a.acquire.doneOr(math.MaxInt64-1) })
	if i < 0 {
		return overdue{}, false
	}
	return times[i], true
}

// wasOverdue says whether the session of a grant may have been over at a time because it was not renewed.
func (r *run) wasOverdue(a *attempt, time int64) bool {
	o, is := r.overdue(a)
	return is && o.from <= time
}
