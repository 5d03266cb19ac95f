package checker

import (
	"slices"

	"github.com/anishathalye/porcupine"
)

// disagreements compares the interval checkers with porcupine and returns contradictions: pairs of answers
// that cannot both be true. Each contradiction is a bug in lockcheck. These rules must hold for every key:
//
// An overlap that begins at t, before either grant could have ended by itself, needs Illegal. Both acquires were
// answered by t, so both took effect by t. Whichever came first must have ended before the other, hence by t.
// But the first release of each was sent at the end of its hold or later, which is after t. The synthetic end
// covers lost releases, loss notifications of the service, sessions, connections and the lease. It begins at
// grantEnd.unreleased, after t by assumption. Nothing else ends a grant in the model, and the model leaves
// out no acquire that was answered ok. So no order exists. (A grant that was held only for the moment t may
// have been released at t. But the other grant was answered before, and its release was sent after t.) The
// same holds for a semaphore if more grants than it permits cannot have ended by t.
//
// Illegal needs a reason. An overlap, a wrong release or a fencing fault is a reason. But a service can also be wrong
// without any worker noticing at the time: it forgets a grant, and the worker finds out at its release or has
// already stopped at its own deadline. So a conflict is a reason too: it is the explanation that is computed
// from the same steps without porcupine. Where porcupine says Ok there must be no conflict, because both
// decide the same question.
//
// Unknown agrees with everything, and keys that contradict the schema are not compared. One error is
// invisible to both sides: a client that reports as Holder a grant that only a minority of servers named (see
// the rules of the model).
func disagreements(r *run, o opinion, overlaps together, others ...incidents) []Fact {
	var found []Fact
	for _, key := range sortedKeys(o.results) {
		v, isEarly := overlaps.early[key]
		explained := o.conflicts.keys[key] || overlaps.keys[key] ||
			slices.ContainsFunc(others, func(i incidents) bool { return i.keys[key] })
		switch result := o.results[key]; {
		case result == porcupine.Illegal && !explained && exclusive(r.header):
			found = append(found, Fact{Kind: FactIllegalUnexplained, Keys: []string{key}})
		case result == porcupine.Ok && isEarly:
			found = append(found, Fact{Kind: FactLegalOverlap, Keys: []string{key}, Workers: r.nameAll(v.earlier.worker, v.later.worker)})
		case result == porcupine.Ok && o.conflicts.keys[key]:
			found = append(found, Fact{Kind: FactLegalConflict, Keys: []string{key}})
		}
	}
	_, silent := o.decided()
	for _, key := range silent {
		if _, isEarly := overlaps.early[key]; isEarly && !o.unordered && !o.conflicts.keys[key] {
			found = append(found, Fact{Kind: FactOrderlyOverlap, Keys: []string{key}})
		}
	}
	return found
}
