package checker

import (
	"slices"
	"time"

	"lockcheck/history"
)

// Noticed counts what no property judges, and what whoever chooses or writes a lock wants to know.
type Noticed struct {
	// UntrueLosses are the losses that the service is said to have told, though the release of the
	// grant succeeded afterwards and nobody else was granted the lock in between; UntrueIdle is for
	// how long nobody worked under those locks because of that.
	UntrueLosses int64         `json:"untrue_losses,omitempty"`
	UntrueIdle   time.Duration `json:"untrue_idle_ns,omitempty"`
	// IdleReleases are the acknowledged releases after which the lock was granted to nobody for
	// longer than OutageGap, though another worker asked for it and no fault was in force; Idle is
	// for how long in all.
	IdleReleases int64         `json:"idle_releases,omitempty"`
	Idle         time.Duration `json:"idle_ns,omitempty"`
}

// notice finds what no property judges.
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
		if exclusive(r.header) { // of others a release need not make the lock free
			n.idle(r, k, stalls)
		}
	}
	return n
}

// untrueLoss is when a worker was told that its lock is gone, if it was not; else 0.
func (r *run) untrueLoss(k *keyed, a *attempt) int64 {
	c := a.released()
	if c == nil {
		return 0
	}
	for _, lost := range a.notifications() {
		next := k.next(a.acquire.done, a.worker)
		if lost.byService && lost.time <= c.invoke && (next == nil || next.acquire.done > c.done) {
			return lost.time
		}
	}
	return 0
}

// idle adds the releases of a key that did not make it free for whoever asked for it, though the
// machine did not stall.
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

// shut says that each lock was granted to one worker alone, although others asked for it when it was
// free: whether it keeps anybody out cannot be seen of that. Of an election it is enough that several
// asked, and of a reentrant lock nobody knows how often its holder still has it.
func (r *run) shut() bool {
	if r.header.Workload == history.WorkloadElection || r.header.Reentrant > 1 {
		return false
	}
	shut := false
	for _, key := range r.keys {
		k := r.byKey[key]
		switch {
		case len(k.holds) == 0:
		case int(k.holds[0].other) < len(k.holds):
			return false
		default:
			perhaps, _ := r.perhapsHeld(k)
			shut = shut || slices.ContainsFunc(k.attempts, func(a *attempt) bool {
				return a.asked && a.worker != k.holds[0].worker && r.free(k, a, perhaps)
			})
		}
	}
	return shut
}

// free says whether nobody can have held a key at any time in which somebody asked for it; perhaps
// are the times in which somebody may have held it without knowing.
func (r *run) free(k *keyed, a *attempt, perhaps []span) bool {
	over := a.acquire.over(r.end)
	for i := max(0, k.after(a.acquire.invoke)-1); i < len(k.holds) && k.holds[i].acquire.invoke <= over; i++ {
		if r.heldUntil(k.holds[i]) >= a.acquire.invoke {
			return false
		}
	}
	return len(meeting(perhaps, a.acquire.invoke, over)) == 0
}
