package checker

import (
	"cmp"
	"slices"
	"time"

	"lockcheck/history"
	"lockcheck/internal/stats"
)

// Noticed counts events that users and authors of a lock want to see. They are judged only if required by name.
type Noticed struct {
	// UntrueLosses are losses that the service reported while it had no reason to end the grant, and although the
	// release succeeded afterwards and no other worker was granted the lock in between. UntrueIdle is for how long
	// the locks were idle because of that.
	UntrueLosses int64         `json:"untrue_losses,omitempty"`
	UntrueIdle   time.Duration `json:"untrue_idle_ns,omitempty"`
	// IdleReleases are acknowledged releases after which no worker was granted the lock for longer than
	// HandoverBound, although another worker asked for it and no fault excuses that. Idle is the total time.
	IdleReleases int64         `json:"idle_releases,omitempty"`
	Idle         time.Duration `json:"idle_ns,omitempty"`
}

// noticed adds the incidents and the sizes of the samples to Noticed.
type noticed struct {
	Noticed
	untrue, idle incidents
	losses       int64
	handover     stats.Histogram
}

// ClassMissedWakeUp is the class of a lock that was idle after a release during which a worker was cut off.
const ClassMissedWakeUp = "missed wake-up"

// HandoverBound is how long a lock may be idle while a worker asks for it.
func HandoverBound(h history.Header) time.Duration { return cmp.Or(h.Handover, OutageGap) }

func (r *run) notice() noticed {
	var n noticed
	stalls, e := united(r.stalls), r.excuses()
	for _, key := range r.keys {
		k := r.byKey[key]
		for _, a := range k.holds {
			n.loss(r, k, a)
		}
		if exclusive(r.header) { // a release of other locks need not make them free
			n.handOver(r, k, stalls, e)
		}
	}
	return n
}

// loss counts the loss that the service reported to a holder, if it did, and whether that was untrue.
func (n *noticed) loss(r *run, k *keyed, a *attempt) {
	i := slices.IndexFunc(a.notifications(), func(lost notification) bool { return lost.byService })
	if i < 0 {
		return
	}
	lost, c := a.notifications()[i].time, a.released()
	next := k.nextGrantExcept(a.acquire.done, a.worker)
	switch {
	case c == nil && a.ended != atRelease && next == nil: // nothing shows whether it was true
		return
	case c == nil || lost > c.invoke || next != nil && next.acquire.done <= c.done || r.mayHaveEnded(a, c.done):
		n.losses++
		return
	}
	n.losses++
	idle := time.Duration(c.done - lost)
	n.UntrueLosses++
	n.UntrueIdle += idle
	n.untrue.add(k.name, lost, func() Incident {
		return Incident{
			Kind: KindUntrueLoss, Class: "untrue loss", Figures: IncidentFigures{Length: idle}, Key: k.name, From: lost, To: c.done,
			Workers: r.nameAll(a.worker), Grants: r.nameAll(a.grant), Faults: r.inForce(a.acquire.done, c.done),
		}
	})
}

// mayHaveEnded says that the service may have ended a grant by a time, whatever it answered to a release later: some
// services acknowledge the release of a lock that is gone.
func (r *run) mayHaveEnded(a *attempt, time int64) bool {
	if r.lapse(a) <= time || r.disturbed(a.acquire.invoke, time) {
		return true
	}
	if r.header.Session && a.until == 0 { // only its lapse is known
		return false
	}
	return a.leaseUnrenewed(r.header.Lease, time)-clockAllowance(r.header.Lease) <= time
}

// handOver counts the releases of a key that a worker waited for, and those after which the lock stayed idle. It leaves
// out times in which the machine stalled or a worker may have held the lock without knowing, and what faults excuse.
func (n *noticed) handOver(r *run, k *keyed, stalls []span, excuses excuses) {
	perhaps, _ := r.perhapsHeld(k)
	asked := uncovered(r.wanted(k.attempts, r.start()), united(slices.Concat(stalls, perhaps, excuses.missed)))
	gaveUp := r.timesGivenUp(k)
	for i, a := range k.holds {
		c := a.released()
		if c == nil {
			continue
		}
		until := r.stopped()
		if i+1 < len(k.holds) {
			until = k.holds[i+1].acquire.done
		}
		idle := time.Duration(total(within(span{c.done, until}, asked)))
		if idle == 0 || excuses.all(c.done, until, gaveUp) {
			continue
		}
		if n.handover.Add(idle); idle <= HandoverBound(r.header) {
			continue
		}
		n.IdleReleases++
		n.Idle += idle
		class := "idle lock"
		if r.missedWakeUp(k, c) {
			class = ClassMissedWakeUp
		}
		n.idle.add(k.name, c.done, func() Incident {
			return Incident{
				Kind: KindIdleLock, Class: class, Figures: IncidentFigures{Length: idle}, Key: k.name, From: c.done, To: until,
				Workers: r.nameAll(a.worker), Grants: r.nameAll(a.grant), Faults: r.inForce(c.invoke, until),
			}
		})
	}
}

// sparesSessions says whether a fault only cut workers off, for so short a time that no session of theirs ended. Then a
// waiter keeps its place in the queue. A user's library may have asked again; its former place then stays until its lease
// ends.
func (r *run) sparesSessions(f *fault) bool {
	lasts := cmp.Or(r.header.Lease, r.header.Grace)
	return f.does(history.Cuts) && f.onlyWorkers(r.workers) && time.Duration(f.End-f.Begin) < lasts && len(r.clients) == 0
}

// settles is how long after a fault a lock may take to be free and granted.
func (r *run) settles() time.Duration { return r.header.Grace + LivenessGrace }

// excuses are times in which a released lock may be idle.
type excuses struct {
	// places are the times in which a dead waiter may still have its place in the queue: from a fault that may have ended
	// its session until a lease after that fault.
	places *faultTimes
	// missed are the times in which a waiter need not have heard that the lock is free, because of cuts that spared its
	// session. TCP sends again within as long as the cut lasted, because it doubles its pauses. It goes on doubling them if
	// the next cut comes before that.
	missed []span
	lease  time.Duration
}

func (r *run) excuses() excuses {
	e := excuses{lease: r.header.Lease}
	e.places = newFaultTimes(r.faults, func(f *fault) []span {
		if r.sparesSessions(f) {
			return nil
		}
		lasts := e.lease
		if f.does(history.Cuts) { // see missed
			lasts = max(lasts, time.Duration(f.End-f.Begin))
		}
		return []span{{f.Begin, later(f.End, lasts+r.settles())}}
	})
	var cuts []span
	for i := range r.faults {
		if f := &r.faults[i]; f.Applied && r.sparesSessions(f) {
			cuts = append(cuts, span{f.Begin, f.End})
		}
	}
	var chain, excuse span // of cuts, and what it excuses
	for _, cut := range united(cuts) {
		if cut.from > excuse.to {
			chain.from = cut.from
		}
		chain.to = cut.to
		excuse = span{chain.from, later(chain.to, time.Duration(chain.length())+r.settles())}
		e.missed = append(e.missed, excuse)
	}
	e.missed = united(e.missed)
	return e
}

// all says whether the place of a dead waiter in the queue may explain all of a time in which the lock is idle. A waiter
// that gave up soon after a cut may be dead.
func (e excuses) all(from, to int64, gaveUp []int64) bool {
	if e.places.first(from, to) >= 0 {
		return true
	}
	for _, m := range meeting(e.missed, from-int64(e.lease), to) {
		if next, _ := slices.BinarySearch(gaveUp, m.from); next < len(gaveUp) && gaveUp[next] <= min(to, m.to) {
			return true
		}
	}
	return false
}

// missedWakeUp says whether a worker that waited for a key was cut off when the key was released.
func (r *run) missedWakeUp(k *keyed, release *call) bool {
	for _, i := range r.forces.all(release.invoke, release.done) {
		f := &r.faults[i]
		if !f.does(history.Cuts) {
			continue
		}
		for _, name := range f.Targets {
			for a := range r.actor(name).between(release.done, release.done) {
				if a.key == k.attempts[0].key && a.acquire.covers(release.done, r.end) {
					return true
				}
			}
		}
	}
	return false
}

// timesGivenUp returns when workers gave up their attempts to get a key, sorted.
func (r *run) timesGivenUp(k *keyed) []int64 {
	var times []int64
	for _, a := range k.attempts {
		if a.asked && !a.granted() {
			times = append(times, r.gaveUp(a))
		}
	}
	slices.Sort(times)
	return times
}

// noUntrueLoss judges that no worker is told that its lock is gone while it has it.
func noUntrueLoss(n *noticed) judged {
	return judgeSamples(NoUntrueLoss, n.untrue, n.losses, Fact{Kind: FactUntrueLosses}, Fact{Kind: FactLossesTrue})
}

// noIdleLock judges that a released lock is granted to a worker that asks for it.
func noIdleLock(n *noticed, bound time.Duration) judged {
	return judgeSamples(NoIdleLock, n.idle, n.handover.N,
		Fact{Kind: FactIdleLocks, Limit: bound}, Fact{Kind: FactHandedOver, Limit: bound, Length: n.handover.Max})
}

// judgeSamples judges incidents of a number of samples by one of two facts, whose numbers it fills in. Without samples
// nothing is known.
func judgeSamples(p Property, found incidents, samples int64, bad, good Fact) judged {
	j := judge(p, found)
	bad.N, bad.Of, good.N = int64(found.total), samples, samples
	switch {
	case found.total > 0:
		j.because(Violation, bad)
	case samples == 0:
		j.because(Undecided, good)
	default:
		j.because(Valid, good)
	}
	return j
}

// onlyOneWorkerGranted says that each lock was granted to one worker only, although others asked for it when it was free.
// Such a run does not show whether the lock keeps anybody out. Exempt are elections, where it is enough that
// several workers asked, and reentrant locks, whose holder may hold them more often than the history tells.
func (r *run) onlyOneWorkerGranted() bool {
	if r.header.Workload == history.WorkloadElection || r.header.Reentrant > 1 {
		return false
	}
	shut := false
	for _, key := range r.keys {
		k := r.byKey[key]
		switch {
		case len(k.holds) == 0:
		case int(k.holds[0].nextOther) < len(k.holds):
			return false
		default:
			perhaps, _ := r.perhapsHeld(k)
			shut = shut || slices.ContainsFunc(k.attempts, func(a *attempt) bool {
				return a.asked && a.worker != k.holds[0].worker && r.certainlyFree(k, a, perhaps)
			})
		}
	}
	return shut
}

// certainlyFree says whether nobody could have held a key while an attempt asked for it. perhaps are the times in which
// a worker may have held it without knowing.
func (r *run) certainlyFree(k *keyed, a *attempt, perhaps []span) bool {
	over := a.acquire.doneOr(r.end)
	for i := max(0, k.firstHoldAfter(a.acquire.invoke)-1); i < len(k.holds) && k.holds[i].acquire.invoke <= over; i++ {
		if r.heldUntil(k.holds[i]) >= a.acquire.invoke {
			return false
		}
	}
	return len(meeting(perhaps, a.acquire.invoke, over)) == 0
}
