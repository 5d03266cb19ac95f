package checker

import (
	"slices"
	"time"

	"lockcheck/history"
)

// Noticed counts what no property judges but users and authors of a lock want to know.
type Noticed struct {
	// UntrueLosses are losses that the service reported, although the release of the grant succeeded
	// afterwards and no other worker was granted the lock in between. UntrueIdle is for how long the locks
	// were idle because of that.
	UntrueLosses int64         `json:"untrue_losses,omitempty"`
	UntrueIdle   time.Duration `json:"untrue_idle_ns,omitempty"`
	// IdleReleases are acknowledged releases after which no worker was granted the lock for longer than
	// OutageGap, although another worker asked for it and no fault was in force. Idle is the total time.
	IdleReleases int64         `json:"idle_releases,omitempty"`
	Idle         time.Duration `json:"idle_ns,omitempty"`
}

// notice computes Noticed.
func (r *run) notice() Noticed {
	var n Noticed
	stalls := united(r.stalls)
	for _, key := range r.keys {
		k := r.byKey[key]
		for _, a := range k.holds {
			if lost := r.untrueLoss(k, a); lost != 0 {
				n.UntrueLosses++
				n.UntrueIdle += time.Duration(a.released().done - lost)
			}
		}
		if exclusive(r.header) { // a release of other locks need not make them free
			n.idle(r, k, stalls)
		}
	}
	return n
}

// untrueLoss is when a worker was wrongly told that its lock is gone, 0 if it was not.
func (r *run) untrueLoss(k *keyed, a *attempt) int64 {
	c := a.released()
	if c == nil {
		return 0
	}
	for _, lost := range a.notifications() {
		next := k.nextGrantExcept(a.acquire.done, a.worker)
		if lost.byService && lost.time <= c.invoke && (next == nil || next.acquire.done > c.done) {
			return lost.time
		}
	}
	return 0
}

// idle counts the releases of a key after which the lock was not granted to the workers that asked for it.
// Times in which the machine stalled do not count.
func (n *Noticed) idle(r *run, k *keyed, stalls []span) {
	asked := r.wanted(k.attempts, r.start())
	for i, a := range k.holds {
		c := a.released()
		if c == nil {
			continue
		}
		until := r.stopped()
		if i+1 < len(k.holds) {
			until = k.holds[i+1].acquire.done
		}
		idle := total(uncovered(within(span{c.done, until}, asked), stalls))
		if idle > int64(OutageGap) && r.forces.first(c.done, until) < 0 {
			n.IdleReleases++
			n.Idle += time.Duration(idle)
		}
	}
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

// certainlyFree says whether nobody can have held a key while an attempt asked for it. perhaps are the times in which
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
