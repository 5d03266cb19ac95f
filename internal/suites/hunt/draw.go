package hunt

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"lockcheck/history"
	"lockcheck/internal/suites/trials"
	"lockcheck/nemesis"
)

// maxSteps is the largest number of faults in a trial.
const maxSteps = 3

// draw makes a random trial. Each kind of fault is left out with even odds, because some faults hide what
// other faults do (swarm testing).
func (s space) draw(rng *rand.Rand) Trial {
	workers, section, seed := oneOf(rng, workerCounts()), oneOf(rng, sections()), rng.Uint64N(1_000_000)
	t := Trial{Seed: seed, Use: trials.Use{
		Workers: workers, Section: section,
		Long: s.long && rng.IntN(4) == 0, Renew: s.renew && rng.IntN(2) == 0, Check: s.check && rng.IntN(4) == 0,
		Pin: s.pin && rng.IntN(2) == 0, Brief: s.brief && rng.IntN(4) == 0,
	}}
	kinds := s.swarm(rng)
	for range s.steps(rng) {
		t.Steps = append(t.Steps, s.step(rng, kinds))
	}
	return t.normal()
}

func (s space) steps(rng *rand.Rand) int {
	if len(s.kinds) == 0 {
		return 0
	}
	switch n := rng.IntN(20); {
	case n < 1:
		return 0
	case n < 10:
		return 1
	case n < 17:
		return 2
	}
	return maxSteps
}

func (s space) swarm(rng *rand.Rand) []string {
	var kinds []string
	for _, kind := range s.kinds {
		if rng.IntN(2) == 0 {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 && len(s.kinds) > 0 {
		kinds = []string{oneOf(rng, s.kinds)}
	}
	return kinds
}

func (s space) step(rng *rand.Rand, kinds []string) Step {
	a := oneOf(rng, s.aims[oneOf(rng, kinds)])
	step := Step{Fault: a.fault, Target: a.target, From: a.from}
	step.drawMoment(rng, s.whens[a])
	step.Half = rng.IntN(2) == 0
	step.Length = oneOf(rng, lengths())
	step.Clock = oneOf(rng, clocksOf(a.fault))
	step.Order = oneOf(rng, []order{apart, during, then})
	return step
}

// drawMoment chooses a moment.
func (s *Step) drawMoment(rng *rand.Rand, whens []string) {
	if s.When = oneOf(rng, whens); isMessage(s.When) {
		s.Nth = oneOf(rng, messageNumbers())
	}
}

func isMessage(when string) bool { return nemesis.Step{When: when}.OfMessage() }

// change makes a trial that differs from the given one in a single value.
func (s space) change(rng *rand.Rand, t Trial) Trial {
	t.Steps = slices.Clone(t.Steps)
	t.Seed = rng.Uint64N(1_000_000)
	for {
		changed := t
		changed.Steps = slices.Clone(t.Steps)
		switch i := rng.IntN(11); {
		case i == 0:
			changed.Workers = oneOf(rng, workerCounts())
		case i == 1:
			changed.Section = oneOf(rng, sections())
		case i == 2 && s.renew:
			changed.Renew = !t.Renew
		case i == 3 && s.pin:
			changed.Pin = !t.Pin
		case i == 4 && s.check:
			changed.Check = !t.Check
		case i == 5 && len(t.Steps) < maxSteps && len(s.kinds) > 0:
			changed.Steps = append(changed.Steps, s.step(rng, s.kinds))
		case i == 6 && len(t.Steps) > 1:
			changed.Steps = without(changed.Steps, rng.IntN(len(t.Steps)))
		case i == 7 && s.long:
			changed.Long = !t.Long
		case i == 8 && s.brief:
			changed.Brief = !t.Brief
		case i > 8 && len(t.Steps) > 0:
			s.changeStep(rng, &changed.Steps[rng.IntN(len(t.Steps))])
		}
		if changed = changed.normal(); changed.key() != t.key() {
			return changed
		}
	}
}

func (s space) changeStep(rng *rand.Rand, step *Step) {
	switch rng.IntN(6) {
	case 0:
		a := oneOf(rng, s.aims[step.Fault])
		step.Target, step.From = a.target, a.from
		if !slices.Contains(s.whens[a], step.When) {
			step.When = s.whens[a][0]
		}
	case 1:
		step.drawMoment(rng, s.whens[step.aim()])
	case 2:
		step.Length = oneOf(rng, lengths())
	case 3:
		step.Half = !step.Half
	case 4:
		step.Clock = oneOf(rng, clocksOf(step.Fault))
	case 5:
		step.Order = oneOf(rng, []order{apart, during, then})
	}
}

// normal returns the canonical form of a trial: trials that mean the same have equal normal forms.
func (t Trial) normal() Trial {
	t.Steps = slices.Clone(t.Steps)
	for i := range t.Steps {
		step := &t.Steps[i]
		if i == 0 {
			step.Order = apart
		}
		if step.When == "" && (step.Target == "holder" || step.Target == actor) {
			step.When = nemesis.WhenHolding // without a moment to wait for, nobody need hold the lock
		}
		step.Half = step.Half && canLast(step.When)
		if !isMessage(step.When) {
			step.Nth = 0
		} else if step.Nth == 0 {
			step.Nth = messageNumbers()[0]
		}
		if step.Fault == history.TransferLeader {
			step.Length = lengths()[0] // it has none
		}
		t.Renew = t.Renew || step.When == nemesis.WhenRenewing
		if history.Does(step.Fault, history.Ends) && nemesis.MeansWorkers(step.Target) {
			t.Workers = max(t.Workers, 1+nemesis.LeastAlive)
		}
	}
	return t
}

func (s Step) aim() aim { return aim{s.Fault, s.Target, s.From} }

// useValues describes how the trial uses the lock, one string per value.
func (t Trial) useValues() []string {
	return []string{
		fmt.Sprintf("workers %d", t.Workers), fmt.Sprintf("section %v", t.Section), fmt.Sprintf("renew %v", t.Renew),
		fmt.Sprintf("long %v", t.Long), fmt.Sprintf("check %v", t.Check), fmt.Sprintf("pin %v", t.Pin), fmt.Sprintf("brief %v", t.Brief),
	}
}

func (s Step) values() []string {
	return []string{
		fmt.Sprintf("fault %s %s %v", s.role(), s.From, s.Clock), fmt.Sprintf("when %s %v", s.When, s.Half), fmt.Sprintf("length %v", s.Length),
	}
}

// pairs lists the pairs of values that the trial covers. Pairs of two faults are left out: there are too
// many.
func (t Trial) pairs() []string {
	use := t.useValues()
	all := pairsOf(use)
	for _, step := range t.Steps {
		values := step.values()
		all = append(all, pairsOf(values)...)
		for _, a := range use {
			for _, b := range values {
				all = append(all, a+", "+b)
			}
		}
	}
	return all
}

func pairsOf(values []string) (all []string) {
	for i, a := range values {
		for _, b := range values[i+1:] {
			all = append(all, a+", "+b)
		}
	}
	return all
}

func without(steps []Step, i int) []Step { return slices.Delete(slices.Clone(steps), i, i+1) }
