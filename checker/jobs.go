package checker

// ClassRepeated is the Incident.Class of a job that was done more than once.
const ClassRepeated = "done again"

// findRepeated finds jobs that were done more than once: each accepted write of an element means that the writer has
// done the job.
func (u *updates) findRepeated(r *run, k *keyed) {
	first := make(map[int64]*access)
	for w := range k.accepted {
		before := first[w.element]
		if before == nil {
			first[w.element] = w
			continue
		}
		u.Repeated++
		c := r.whyOverwritten(before, w)
		u.because(c.class, 1)
		u.incidents.add(k.name, w.time, func() Incident { return r.doneAgain(k, before, w, c) })
	}
}

func (r *run) doneAgain(k *keyed, before, w *access, c cause) Incident {
	return Incident{
		Kind: KindRepeatedJob, Figures: IncidentFigures{Base: w.base}, Key: k.name, From: before.time, To: w.time, Element: w.element,
		Class: ClassRepeated, Cause: c.class, Explanation: r.explainMixed(c, r.attempt(before.grant), r.attempt(w.grant)),
		Workers: r.nameAll(before.client, w.client), Grants: r.nameAll(before.grant, w.grant), Faults: r.inForce(before.time, w.time),
	}
}

// explainMixed explains how the accesses of two grants got mixed. It returns nil if nothing explains it.
func (r *run) explainMixed(c cause, a, b *attempt) *Explanation {
	if c.class == CauseUnexplained {
		return nil
	}
	a, b, _ = r.inOrder(a, b)
	return r.explain(c, a, b)
}
