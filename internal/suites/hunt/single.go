package hunt

import (
	"math/rand/v2"
	"slices"

	"lockcheck/history"
)

// singles lists trials with one fault that begins while somebody holds the lock, two for each
// fault and role that there are: one within a section that ends before the lease, and one within a
// section that needs renewals, those of sessions too, by a fault that outlasts the leases of those
// who wait. Which comes first, and in which order kinds of faults take turns, is drawn by chance.
func (s space) singles(rng *rand.Rand) []Trial {
	turns := s.turns(rng)
	later := make(map[aim]bool)
	var all []Trial
	for _, again := range []bool{false, true} {
		for _, a := range turns {
			if !again {
				later[a] = rng.IntN(2) == 0
			}
			all = append(all, s.single(rng, a, later[a] != again))
		}
	}
	return all
}

// turns are all aims, one of each kind after another.
func (s space) turns(rng *rand.Rand) []aim {
	kinds := slices.Clone(s.kinds)
	rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	var queues [][]aim
	for _, kind := range kinds {
		// Who holds the lock is who was waited for.
		aims := slices.DeleteFunc(slices.Clone(s.aims[kind]), func(a aim) bool { return a.target == actor })
		rng.Shuffle(len(aims), func(i, j int) { aims[i], aims[j] = aims[j], aims[i] })
		queues = append(queues, aims)
	}
	var all []aim
	for i, left := 0, true; left; i++ {
		left = false
		for _, aims := range queues {
			if i < len(aims) {
				all, left = append(all, aims[i]), true
			}
		}
	}
	return all
}

// single is a trial of one aim, short or beyond leases.
func (s space) single(rng *rand.Rand, a aim, beyond bool) Trial {
	t := Trial{Workers: 3, Section: 0.6, Seed: rng.Uint64N(1_000_000), Long: s.long && outlasts(a)}
	step := Step{Fault: a.fault, Target: a.target, From: a.from, When: s.whens[a][0], Length: 1.3, Clock: firstOf(clocksOf(a.fault))}
	if beyond {
		t.Renew, t.Long, step.Length, step.Clock = s.renew, false, 2.5, lastOf(clocksOf(a.fault))
		if s.renew || s.session {
			t.Section = 1.6
		}
	}
	t.Steps = []Step{step}
	return t.normal()
}

// outlasts says of a fault whether what it does to servers takes longer than a short lease.
func outlasts(a aim) bool {
	switch a.fault {
	case history.Pause, history.Freeze, history.Kill, history.Wipe, history.Crash, history.Partition, history.OneWay:
	default:
		return false
	}
	return !slices.Contains([]string{"holder", "waiter", "one worker", actor}, a.target)
}
