package checker

import "github.com/anishathalye/porcupine"

// triesPerStep is how many steps of the model porcupine may try for each operation of a key. A decidable key
// takes fewer than ten as a rule, measured on runs and random histories.
const triesPerStep = 20

// maxTries is how many more steps porcupine may try for all keys together; it takes less than a second. If
// many answers were lost, porcupine can prove that no order exists only by trying all orders, and each lost
// answer doubles their number. A conflict in the order of grants is a proof without that search.
const maxTries = 1_000_000

// maxRemembered limits the memory of porcupine for a key, in bytes. Porcupine has no limit of its own except
// time, and its memory may double with each lost answer.
const maxRemembered = 64 << 20

// effort limits porcupine's search on one key. Unlike a time limit it ends the search at the same point on
// every machine.
type effort struct {
	extraTries  int // tries allowed beyond the usual ones
	tries, kept int // tries and remembered states that are left
}

// newEffort allows the usual tries for a key with some steps, and some more. For each try that advances,
// porcupine may remember the set of all steps so far, one bit each, and a state.
func newEffort(more, steps int) *effort {
	const overhead = 160 // bytes
	tries := triesPerStep*steps + more
	return &effort{extraTries: more, tries: tries, kept: maxRemembered / (overhead + steps/8)}
}

func (e *effort) spent() bool { return e.tries <= 0 || e.kept <= 0 }

// bound returns a model in which nothing is legal once the effort is spent, so that porcupine stops soon
// after.
func (e *effort) bound(m porcupine.Model) porcupine.Model {
	step := m.Step
	m.Step = func(state, input, output any) (bool, any) {
		if e.spent() {
			return false, state
		}
		e.tries--
		ok, next := step(state, input, output)
		if ok {
			e.kept--
		}
		return ok, next
	}
	return m
}

// result corrects porcupine's answer and returns how many tries beyond the usual ones it took. Illegal is not
// proven if the effort was spent before all orders were tried. After a timeout porcupine may still be
// running, so the whole allowance counts as used.
func (e *effort) result(answer porcupine.CheckResult) (porcupine.CheckResult, int) {
	switch {
	case answer == porcupine.Unknown:
		return answer, e.extraTries
	case answer == porcupine.Illegal && e.spent():
		answer = porcupine.Unknown
	}
	return answer, max(0, e.extraTries-e.tries)
}
