package checker

import (
	"iter"
	"slices"
	"time"

	"lockcheck/history"
	"lockcheck/internal/stats"
)

// failover is a hold whose worker was stopped, cut off or killed for longer than its lease, the fault that did so, and
// the next grant to another worker; nil if the key was not granted again.
type failover struct {
	fault *fault
	hold  *attempt
	next  *attempt
}

// failedOver yields the failovers of locks that one worker at a time may hold: a semaphore's next grant may use
// another permit. It leaves out those for which there was no worker to fail over to.
func (r *run) failedOver(yield func(failover) bool) {
	if permits(r.header) > 1 {
		return
	}
	for i := range r.faults {
		f := &r.faults[i]
		for h := range r.holdsHitBy(f) {
			next := r.nextGrant(h)
			switch {
			case next != nil && next.acquire.done < f.Begin: // it was replaced already
			case next == nil && !r.wantedByOthers(h, f.Begin): // nobody asked
			case r.sharedBeyond(h, f.Begin, next): // other readers rightly kept writers out
			case !yield(failover{f, h, next}):
				return
			}
		}
	}
}

// failovers measures how long a lock took to pass on: from the beginning of the fault to the next grant.
func (r *run) failovers() (FailoverSummary, stats.Histogram) {
	var took []time.Duration
	var s FailoverSummary
	var all stats.Histogram
	for o := range r.failedOver {
		s.Holders++
		if o.next == nil {
			s.Stuck++
			continue
		}
		took = append(took, time.Duration(o.next.acquire.done-o.fault.Begin))
		all.Add(took[len(took)-1])
	}
	if len(took) > 0 {
		s.Median, s.Longest = stats.Median(took), slices.Max(took)
	}
	return s, all
}

// promptFailover judges that a lock passes on within its lease and grace period when its holder is silent. Only the
// time counts in which another worker asked for it and could reach its servers. Liveness counts from the end of the
// last fault instead, so it does not see a lease that servers extend again and again (etcd #13294).
func promptFailover(r *run) judged {
	var late incidents
	limit, seen := r.header.Lease+r.header.Grace+LivenessGrace, int64(0)
	for o := range r.failedOver {
		until := r.silentUntil(o)
		awaited := r.awaited(o.hold, o.fault.Begin, until)
		if awaited > limit || awaited > 0 && o.next != nil {
			seen++ // else the run ended before it could tell
		}
		if awaited > limit {
			late.add(r.name(o.hold.key), o.fault.Begin, func() Incident {
				return Incident{
					Kind: KindLateFailover, Class: "late failover", Figures: IncidentFigures{Length: awaited}, Key: r.name(o.hold.key),
					From: o.fault.Begin, To: until, Workers: r.nameAll(o.hold.worker), Grants: r.nameAll(o.hold.grant), Faults: r.inForce(o.fault.Begin, until),
				}
			})
		}
	}
	j := judgeSamples(PromptFailover, late, seen, Fact{Kind: FactLateFailovers, Limit: limit}, Fact{Kind: FactFailovers, Limit: limit})
	if permits(r.header) > 1 || leaseUnknown(r.header) {
		j.Verdict = NotApplicable
	}
	return j
}

// silentUntil is when a lock had passed on from its silent holder, to any worker, or when that holder renewed it
// after it had come back; else when the run stopped.
func (r *run) silentUntil(o failover) int64 {
	until, k := r.stopped(), r.byKey[o.hold.key]
	if i := k.firstHoldAfter(max(o.fault.Begin, o.hold.acquire.done)); i < len(k.holds) {
		until = k.holds[i].acquire.done
	}
	for _, c := range o.hold.renewals() {
		if c.ok() && c.invoke > o.fault.Begin {
			return min(until, c.invoke)
		}
	}
	return until
}

// awaited returns for how long another worker asked for the key of a hold, ran, and could reach its servers. The time
// counts even if an acquire of unknown outcome may have been granted the key: nobody could work under that grant.
func (r *run) awaited(h *attempt, from, to int64) time.Duration {
	var free []span
	for name, w := range r.byWorker {
		if name == h.worker {
			continue
		}
		var attempts []*attempt
		for a := range w.between(from, to) {
			if a.key == h.key {
				attempts = append(attempts, a)
			}
		}
		asked := within(span{from, to}, r.wanted(attempts, from))
		free = append(free, uncovered(asked, united(append(w.cutOffs.in(from, to), meeting(w.stops, from, to)...)))...)
	}
	return time.Duration(total(uncovered(united(free), united(r.stalls))))
}

// sharedBeyond says whether another reader rightly kept the lock of a shared hold from passing on. That
// reader must have held it after the given time and after the grant of the hold may have ended, and before
// the next grant. next is the first later grant that does not share the lock, nil for none.
func (r *run) sharedBeyond(h *attempt, after int64, next *attempt) bool {
	from, to := max(after, r.endOf(h).byBelief()), r.end
	if next != nil {
		to = next.acquire.done
	}
	if !h.shared {
		return false
	}
	for name, w := range r.byWorker {
		if name == h.worker {
			continue
		}
		for a := range w.heldBetween(from, to) {
			if a.key == h.key && a.shares(h) {
				return true
			}
		}
	}
	return false
}

// wantedByOthers says whether, after a time, a worker other than the holder asked for the lock of a hold
// without sharing it.
func (r *run) wantedByOthers(h *attempt, after int64) bool {
	k := r.byKey[h.key]
	last := &k.lastAsked
	if h.shared {
		last = &k.lastAskedAlone
	}
	if *last == nil {
		*last = r.lastAskedFor(slices.DeleteFunc(slices.Clone(k.attempts), h.shares))
	}
	return slices.ContainsFunc((*last)[:], func(a *attempt) bool {
		return a != nil && a.worker != h.worker && a.acquire.doneOr(r.end) > after
	})
}

// lastAskedFor returns, of two different workers, the attempts that were open last.
func (r *run) lastAskedFor(attempts []*attempt) *[2]*attempt {
	last := &[2]*attempt{}
	later := func(a, b *attempt) bool { return b == nil || a.acquire.doneOr(r.end) > b.acquire.doneOr(r.end) }
	for _, a := range attempts {
		switch {
		case !a.asked:
		case later(a, last[0]):
			if last[0] != nil && last[0].worker != a.worker {
				last[1] = last[0]
			}
			last[0] = a
		case a.worker != last[0].worker && later(a, last[1]):
			last[1] = a
		}
	}
	return last
}

// holdsHitBy yields the holds that a fault interrupted for longer than the lock waits for its holder.
func (r *run) holdsHitBy(f *fault) iter.Seq[*attempt] {
	if f.does(history.Ends) {
		return r.holdsOfKilled(f)
	}
	return func(yield func(*attempt) bool) {
		for w := range r.workersOf(f) {
			if !r.silenced(f, w) {
				continue
			}
			for h := range w.heldBetween(f.Begin, f.certainFrom) {
				if h.acquire.done <= f.Begin && h.holdEnd >= f.certainFrom && !yield(h) {
					return
				}
			}
		}
	}
}

// silenced says whether a fault kept a worker from its lock service for longer than a lease.
func (r *run) silenced(f *fault, w *actor) bool {
	lease := int64(r.header.Lease + r.header.Grace)
	switch {
	case r.header.Lease == 0:
		return false
	case f.does(history.Stops):
		return f.certainTo-f.certainFrom > lease
	}
	cut, isCut := w.cutOffs.first(f.certainFrom, f.certainFrom)
	return f.does(history.Cuts) && isCut && cut.to-f.certainFrom > lease
}

// add records when the earlier holder of an overlap learned that another worker had replaced it. Each holder
// counts once. notified is false if it did not learn of it before its release.
func (s *LossNotificationSummary) add(o overlap) (late time.Duration, notified bool) {
	// The first overlap of a hold is with the next grant.
	if o.earlier.replaced || o.earlier.acquire.done > o.later.acquire.done {
		return 0, false
	}
	o.earlier.replaced = true
	s.Replaced++
	switch o.earlier.ended {
	case byNotification, byOwnDeadline:
		s.Notified++
		late = time.Duration(o.earlier.holdEnd - o.later.acquire.done)
		s.Latest = max(s.Latest, late)
		return late, true
	case atRelease:
		s.AtRelease++
	default:
		s.Never++
	}
	return 0, false
}
