package checker

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"lockcheck/history"
)

// LivenessGrace is what a waiter may need in addition to lease and grace period, because it has to wake up
// and ask again.
const LivenessGrace = time.Second

// retryPause is the longest time between two attempts of a worker in which it still counts as waiting for the
// lock. Workers ask again within a fraction of it.
const retryPause = LivenessGrace / 2

// liveness judges that nobody is stuck after the last fault, or in the whole run if there was none. A key is
// stuck if it is wanted for longer than lease, grace period and LivenessGrace, but no live worker holds it
// and no worker is granted it. (For a semaphore: while a permit is left.) A worker is stuck if it gets
// nothing but errors for that long. A worker that waits for a live holder is not stuck. A kill of a worker is
// over when it has happened. If only stalls of the machine made a wait too long, the verdict is undecided.
func liveness(r *run) (judged, OrphanSummary) {
	j := r.recovery()
	j.because(j.Verdict, Fact{Kind: FactLivenessMeasured})
	return j, r.orphans()
}

func (r *run) recovery() judged {
	j := judged{Finding: Finding{Property: Liveness, Verdict: Valid}}
	for _, f := range r.faults {
		if f.Applied && f.healedAt == 0 {
			j.because(Undecided, Fact{Kind: FactNeverHealed, Faults: []string{f.ID}})
			return j
		}
	}
	healed := r.lastHealed()
	since, what := max(healed, r.start()), r.lastFault(healed)
	limit := int64(r.header.Lease) + int64(r.header.Grace) + int64(LivenessGrace)
	keys, doubtful := r.stuckKeys(since, limit, what)
	stuck, excused := r.excuse(append(keys, r.stuckWorkers(since, limit, what)...), limit)
	first, acquired := r.firstAcquired(since)
	switch {
	case len(stuck) > 0:
		return stuckFinding(stuck, limit)
	case len(excused) > 0:
		i := excused[0]
		j.because(Undecided, Fact{Kind: FactStalled, Incident: &i, Limit: time.Duration(limit), Length: time.Duration(r.stalled(span{i.From, i.To}))})
	case doubtful != nil:
		j.because(Undecided, *doubtful)
	case healed == 0 && len(r.holds) > 0:
		j.because(Valid, Fact{Kind: FactAcquired, N: int64(len(r.holds))})
	case acquired:
		j.because(Valid, Fact{Kind: FactRecovered, Length: time.Duration(first - since), Since: what})
	case !r.tried(since):
		j.because(Undecided, Fact{Kind: FactNobodyTried, Since: what})
	default:
		j.because(Undecided, Fact{Kind: FactNobodyTriedLong, Since: what, Limit: time.Duration(limit)})
	}
	return j
}

// excuse separates the incidents that would be short enough without the stalls of the machine. During a stall
// the lock service or the asking worker may have been late.
func (r *run) excuse(all []Incident, limit int64) (stuck, excused []Incident) {
	for _, i := range all {
		if i.To-i.From-r.stalled(span{i.From, i.To}) > limit {
			stuck = append(stuck, i)
		} else {
			excused = append(excused, i)
		}
	}
	return stuck, excused
}

// stalled is for how long the machine stalled within a time.
func (r *run) stalled(s span) int64 {
	total := int64(0)
	for _, stall := range united(r.stalls) {
		total += max(0, min(s.to, stall.to)-max(s.from, stall.from))
	}
	return total
}

func stuckFinding(stuck []Incident, limit int64) judged {
	var found incidents
	for _, i := range stuck {
		found.add(i.Key, i.From, func() Incident { return i })
	}
	j := judge(Liveness, found)
	j.because(Violation, Fact{Kind: FactStuck, N: int64(len(stuck)), Limit: time.Duration(limit)})
	return j
}

// stuckKeys finds the times in which a worker tried to get a key, no worker was granted it and no live worker
// held it. A worker whose acquire has an unknown outcome may have held the key. If that explains a time that
// lasts to the end of the run, doubtful says so.
func (r *run) stuckKeys(since, limit int64, after Since) (found []Incident, doubtful *Fact) {
	for _, key := range r.keys {
		k := r.byKey[key]
		for _, s := range r.unserved(k.holds, r.wanted(k.attempts, since)) {
			if s.length() <= limit {
				continue
			}
			if perhaps, n := r.perhapsHeld(k); total(uncovered([]span{s}, perhaps)) <= limit && r.answered(s) {
				if k.nextGrantExcept(s.to-1, 0) == nil {
					doubtful = &Fact{Kind: FactPerhapsHeld, Keys: []string{k.name}, Length: time.Duration(s.length()), N: int64(n), Since: after}
				}
				continue
			}
			found = append(found, Incident{
				Kind: KindStuckKey, Figures: IncidentFigures{Since: after}, Key: k.name, From: s.from, To: s.to, Class: classStuck, LastHold: r.lastHold(k, s),
			})
		}
	}
	return found, doubtful
}

// perhapsHeld returns the times in which an acquire of unknown outcome may have held a key, and the number of
// such acquires. The time begins with the request. It ends when the attempt was taken back or the service
// said that it had no such grant. Otherwise it ends when the leases of all attempts given up before, and its
// own, may have ended one after the other.
func (r *run) perhapsHeld(k *keyed) (held []span, n int) {
	var left []*attempt
	for _, a := range r.asked(k.attempts) {
		if !a.acquire.unknown() {
			continue
		}
		until, known := r.takenBack(a)
		switch {
		case !known:
			left = append(left, a)
		case until > a.acquire.invoke:
			held = append(held, span{a.acquire.invoke, until})
			n++
		}
	}
	slices.SortStableFunc(left, func(a, b *attempt) int { return cmp.Compare(r.gaveUp(a), r.gaveUp(b)) })
	lease := cmp.Or(r.header.Lease, r.header.Grace)
	until := int64(math.MinInt64)
	for _, a := range left {
		until = later(max(until, r.gaveUp(a)), lease)
		held = append(held, span{a.acquire.invoke, until})
	}
	return united(held), n + len(left)
}

// takenBack is the time until which an attempt of unknown outcome may have held the lock, by the service's
// answer when the attempt was taken back. It is the time of the request if the attempt never held the lock.
// Without such an answer it is not known.
func (r *run) takenBack(a *attempt) (until int64, known bool) {
	for c := range a.releases {
		switch {
		case c.unknown():
			continue
		case c.failed() && !r.header.Session && c.done < r.endOf(a).lease: // otherwise the service would still have the grant
			return a.acquire.invoke, true
		}
		return c.done, true
	}
	return 0, false
}

// answered says whether the service answered any call in a time. A service that answers nobody is stuck,
// whatever it may have granted.
func (r *run) answered(s span) bool {
	for a := range r.attempts.each {
		for c := range a.calls {
			if c.outcome != open && !c.unknown() && s.from < c.done && c.done <= s.to {
				return true
			}
		}
	}
	return false
}

const classStuck = "stuck"

// wanted returns when workers tried to get a key: an attempt was open, was being taken back, or had failed
// and was about to be repeated by the same worker.
func (r *run) wanted(attempts []*attempt, since int64) []span {
	stopped := r.stopped()
	failed := make(map[worker]int64) // end of the last attempt of each worker that got nothing
	var spans []span
	for _, a := range r.asked(attempts) {
		s := span{a.acquire.invoke, min(r.gaveUp(a), stopped)}
		if before, again := failed[a.worker]; again && s.from <= before+int64(retryPause) {
			s.from = before
		}
		delete(failed, a.worker)
		if !a.granted() {
			failed[a.worker] = s.to
		}
		s.from = max(s.from, since)
		if n := len(spans); n > 0 && s.from <= s.to && s.meets(spans[n-1].from, spans[n-1].to) { // the usual case
			spans[n-1] = span{min(s.from, spans[n-1].from), max(s.to, spans[n-1].to)}
			continue
		}
		spans = append(spans, s)
	}
	return united(spans)
}

// asked returns the attempts that have an acquire, by its invocation.
func (r *run) asked(attempts []*attempt) []*attempt {
	asked := slices.DeleteFunc(slices.Clone(attempts), func(a *attempt) bool { return !a.asked })
	sorted(asked, r.byInvocation)
	return asked
}

// gaveUp is when a worker no longer tried to get the lock by this attempt. The dead try nothing, whatever
// calls they left open.
func (r *run) gaveUp(a *attempt) int64 {
	end := a.acquire.doneOr(r.end)
	if !a.granted() {
		for c := range a.releases {
			end = max(end, c.invoke, c.done)
		}
	}
	if killed := r.byWorker[a.worker].killed; killed != 0 {
		end = min(end, killed)
	}
	return end
}

// unserved removes the times in which a live worker held a key (for a semaphore: all permits) from the times
// in which it was wanted. It also splits them at each grant.
func (r *run) unserved(holds []*attempt, wanted []span) []span {
	var rest []span
	held := int64(math.MinInt64)                            // until then the earlier holds kept the key
	ends := slices.Repeat([]int64{held}, permits(r.header)) // the latest ends, sorted
	next := 0
	for _, w := range wanted { // in order and disjoint
		w.from = max(w.from, held)
		for ; next < len(holds) && holds[next].acquire.done <= w.to; next++ { // by start
			h := holds[next]
			if h.acquire.done >= w.from {
				rest = append(rest, span{w.from, h.acquire.done})
			}
			ends[0] = max(ends[0], r.heldUntil(h))
			slices.Sort(ends)
			held = ends[0]
			w.from = max(w.from, held, h.acquire.done)
		}
		if w.from <= w.to {
			rest = append(rest, w)
		}
	}
	return rest
}

// heldUntil is the end of a hold. A hold without any trace of its end lasts to the end of the history,
// because its worker may be at work, unless the worker is known to be dead or to have gone on.
func (r *run) heldUntil(h *attempt) int64 {
	w := r.byWorker[h.worker]
	wentOn := w.attempts[len(w.attempts)-1].acquire.invoke > h.acquire.done
	if h.ended != withoutTrace || w.killed != 0 || wentOn {
		return h.holdEnd
	}
	return r.end
}

// stuckWorkers finds workers that for too long got nothing but errors while others were well served. A worker
// that is refused because the lock is held is not stuck. Neither is one that still waits for an answer: it
// may be its turn next. So the time is counted between answers.
func (r *run) stuckWorkers(since, limit int64, after Since) []Incident {
	stopped := r.stopped()
	var found []Incident
	all := sync.OnceValue(r.fortunes)
	for _, w := range r.actors() {
		var first, last int64
		flush := func() {
			if last-first > limit && all().othersServed(first, last) {
				found = append(found, Incident{
					Kind: KindNothingButErrors, Figures: IncidentFigures{Since: after}, From: first, To: last, Class: classStuck, Workers: []string{w.name},
				})
			}
			first, last = 0, 0
		}
		for _, a := range w.attempts {
			c := &a.acquire
			switch {
			case c.done < since:
			case c.ok() || a.busy:
				flush()
			case c.done <= stopped:
				first, last = cmp.Or(first, c.done), c.done
			}
		}
		flush()
	}
	return found
}

// actors returns all workers by name.
func (r *run) actors() []*actor {
	return slices.SortedFunc(maps.Values(r.byWorker), func(a, b *actor) int { return cmp.Compare(a.name, b.name) })
}

// lastFault names the event that was over at a time.
func (r *run) lastFault(healed int64) Since {
	if healed == 0 {
		return Since{Event: SinceStart}
	}
	for _, f := range r.faults {
		if f.does(history.Ends) && f.healedAt == healed && f.onlyWorkers(r.workers) {
			return Since{Event: SinceKill, Killed: f.Targets}
		}
	}
	return Since{Event: SinceHealed}
}

// orphans measures how long locks took to be granted again after their holders were killed. A grant of
// another key says nothing about the lock that was held.
func (r *run) orphans() OrphanSummary {
	var s OrphanSummary
	if permits(r.header) > 1 {
		return s // the next grant may use another permit
	}
	for i := range r.faults {
		f := &r.faults[i]
		for h := range r.holdsOfKilled(f) {
			next := r.nextGrant(h)
			if r.sharedBeyond(h, f.Begin, next) || next == nil && h.shared && !r.wantedByOthers(h, f.Begin) {
				continue
			}
			s.Killed++
			until := r.stopped()
			if next != nil {
				until = next.acquire.done
			} else {
				s.Stuck++
			}
			if waited := time.Duration(max(0, until-f.Begin)); s.Victim == "" || waited > s.Longest {
				s.Longest, s.Victim = waited, r.name(h.worker)
			}
		}
	}
	return s
}

// nextGrant returns the next grant of the key of a hold to another worker that does not rightly share it, nil
// if there was none.
func (r *run) nextGrant(h *attempt) *attempt {
	k := r.byKey[h.key]
	next := k.nextGrantExcept(h.acquire.done, h.worker)
	if next == nil || !next.shares(h) {
		return next
	}
	rest := k.holds[k.firstHoldAfter(next.acquire.done-1):]
	if i := slices.IndexFunc(rest, func(a *attempt) bool { return a.worker != h.worker && !a.shares(h) }); i >= 0 {
		return rest[i]
	}
	return nil
}

// lastHealed is when the last fault was gone, 0 without faults.
func (r *run) lastHealed() int64 {
	healed := int64(0)
	for _, f := range r.faults {
		if f.Applied {
			healed = max(healed, f.healedAt)
		}
	}
	return healed
}

func (r *run) start() int64 {
	if e, ok := r.phases[history.PhaseReady]; ok {
		return e.Time
	}
	return r.begin
}

// stopped is when workers stopped trying, according to their answers. An acquire without an answer may be
// that of a killed worker.
func (r *run) stopped() int64 {
	if e, ok := r.phases[history.PhaseFinal]; ok {
		return min(r.lastAsked, e.Time)
	}
	return r.lastAsked
}

func (r *run) tried(since int64) bool { return r.lastAsked >= since && r.lastAsked > 0 }

// firstAcquired returns when the first acquire after since was answered ok.
func (r *run) firstAcquired(since int64) (int64, bool) {
	first, found := int64(0), false
	for _, key := range r.keys {
		if h := r.byKey[key].nextGrantExcept(since, 0); h != nil && (!found || h.acquire.done < first) {
			first, found = h.acquire.done, true
		}
	}
	return first, found
}
