package checker

import "fmt"

// ClassUnlocked is a write of a worker that knew it had not been granted the lock, as
// found in Incident.Class.
const ClassUnlocked = "unlocked write"

// unlocked says that a worker was told that its attempt failed, or that nobody knows: what
// it does then is done without the lock.
func (r *run) unlocked(a *attempt) bool {
	return r.header.Imported == "" && a != nil && a.asked && a.acquire.outcome != open && !a.acquire.ok()
}

// withoutLock finds the writes that were accepted from those.
func (s *stale) withoutLock(r *run, k *keyed) {
	for i := range k.accesses {
		e := &k.accesses[i]
		a := r.attempt(e.grant)
		if !e.write || e.refused || !r.unlocked(a) {
			continue
		}
		s.unlocked++
		s.because(CauseUnlocked)
		r.origins.count(cause{}, a)
		s.add(k.name, e.time, func() Incident { return r.unlockedWrite(k, e, a) })
	}
}

func (r *run) unlockedWrite(k *keyed, e *access, a *attempt) Incident {
	return Incident{
		Key: k.name, From: e.time, To: e.time, Class: ClassUnlocked, Cause: CauseUnlocked, Why: r.tellUnlocked(a),
		Workers: r.nameAll(a.worker), Grants: r.nameAll(a.grant), Element: e.element, Faults: r.inForce(a.acquire.invoke, e.time),
		What: fmt.Sprintf("the resource accepted a write to %s from %s, which had not been granted the lock", k.name, r.name(a.worker)),
	}
}

// tellUnlocked says how it came that somebody wrote without the lock.
func (r *run) tellUnlocked(a *attempt) string {
	how := "failed"
	if a.acquire.unknown() {
		how = "ended without a known outcome"
	}
	return fmt.Sprintf("the acquire of %s by %s, begun at %s, %s at %s, and its worker went on all the same",
		r.name(a.key), r.name(a.worker), r.at(a.acquire.invoke), how, r.at(a.acquire.done))
}
