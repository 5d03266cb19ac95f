package checker

// ClassUnlocked is the Incident.Class of a write by a worker that knew it had not been granted the lock.
const ClassUnlocked = "unlocked write"

// unlocked says that the worker was told that its attempt failed or has an unknown outcome. Whatever the
// worker does under that attempt is done without the lock.
func (r *run) unlocked(a *attempt) bool {
	return r.header.Imported == "" && a != nil && a.asked && a.acquire.outcome != open && !a.acquire.ok()
}

// withoutLock finds the accepted writes of attempts that never got the lock, as told to their workers.
func (s *stale) withoutLock(r *run, k *keyed) {
	for i := range k.accesses {
		e := &k.accesses[i]
		a := r.attempt(e.grant)
		if !e.write || e.refused || !r.unlocked(a) {
			continue
		}
		s.unlocked++
		s.because(CauseUnlocked, 1)
		r.origins.count(cause{}, a)
		s.add(k.name, e.time, func() Incident { return r.unlockedWrite(k, e, a) })
	}
}

func (r *run) unlockedWrite(k *keyed, e *access, a *attempt) Incident {
	return Incident{
		Kind: KindUnlocked, Key: k.name, From: e.time, To: e.time, Class: ClassUnlocked, Cause: CauseUnlocked, Explanation: r.explainUnlocked(a),
		Workers: r.nameAll(a.worker), Grants: r.nameAll(a.grant), Element: e.element, Faults: r.inForce(a.acquire.invoke, e.time),
	}
}

// explainUnlocked explains how a worker came to write without the lock.
func (r *run) explainUnlocked(a *attempt) *Explanation {
	return &Explanation{Key: r.name(a.key), Unlocked: &Unlocked{
		Worker: r.name(a.worker), Asked: a.acquire.invoke, Answered: a.acquire.done, Unknown: a.acquire.unknown(),
	}}
}
