package checker

import "fmt"

// ClassRepeated is a job that was done again, as found in Incident.Class.
const ClassRepeated = "done again"

// twice finds the jobs that were done again: each accepted write of an element says that
// its worker has done it.
func (u *updates) twice(r *run, k *keyed) {
	first := make(map[int64]*access)
	for w := range k.accepted {
		before := first[w.element]
		if before == nil {
			first[w.element] = w
			continue
		}
		u.Repeated++
		c := r.whyOverwritten(before, w)
		u.because(c.class)
		u.incidents.add(k.name, w.time, func() Incident { return r.doneAgain(k, before, w, c) })
	}
}

func (r *run) doneAgain(k *keyed, before, w *access, c cause) Incident {
	i := Incident{
		Key: k.name, From: before.time, To: w.time, Element: w.element, Class: ClassRepeated, Cause: c.class,
		Workers: r.nameAll(before.client, w.client), Grants: r.nameAll(before.grant, w.grant), Faults: r.inForce(before.time, w.time),
		What: fmt.Sprintf("job %d of %s was done by %s, and again %s later by %s, which had read version %d",
			w.element, k.name, r.name(before.client), dur(max(0, w.time-before.time)), r.name(w.client), w.base),
	}
	if a, b := r.attempt(before.grant), r.attempt(w.grant); c.class != CauseUnexplained {
		a, b, _ = r.inOrder(a, b)
		i.Why = r.tell(c, a, b)
	}
	return i
}
