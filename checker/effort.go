package checker

import "github.com/anishathalye/porcupine"

// triesPerStep is how many steps of the model porcupine may try for each operation of a
// key: what it can decide takes it less than ten as a rule, measured on runs and random
// histories.
const triesPerStep = 20

// maxTries is how many it may try beyond that about all keys together, in less than a
// second. That there is no order among many answers that were lost it knows only after all
// of them, twice as many with each; a conflict of the order of grants is proof without it.
const maxTries = 1_000_000

// maxRemembered is how much porcupine may remember about a key, in bytes: it has no bound
// of its own but time, and what it remembers may double with each answer that was lost.
const maxRemembered = 64 << 20

// effort bounds what porcupine does about a key. Unlike a limit of time it ends the same
// way on each machine.
type effort struct {
	more        int // tries than the usual ones
	tries, kept int // that are left
}

// newEffort allows for the usual tries about a key of some steps and for some more. Of each
// try that is a step ahead porcupine may keep the set of all steps so far, a bit each, and a
// state.
func newEffort(more, steps int) *effort {
	const overhead = 160 // bytes
	tries := triesPerStep*steps + more
	return &effort{more: more, tries: tries, kept: maxRemembered / (overhead + steps/8)}
}

func (e *effort) spent() bool { return e.tries <= 0 || e.kept <= 0 }

// bound returns the model, in which nothing is legal any more once the effort is spent:
// then porcupine soon comes to an end.
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

// result is what porcupine's answer is worth, and how many more tries than usual it took:
// that there is no order it did not find out if it was stopped before it had looked for all
// of them. Where it ran out of time it may still be at it.
func (e *effort) result(answer porcupine.CheckResult) (porcupine.CheckResult, int) {
	switch {
	case answer == porcupine.Unknown:
		return answer, e.more
	case answer == porcupine.Illegal && e.spent():
		answer = porcupine.Unknown
	}
	return answer, max(0, e.more-e.tries)
}
