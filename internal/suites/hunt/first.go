package hunt

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"lockcheck/history"
	"lockcheck/internal/suites/trials"
	"lockcheck/nemesis"
)

// first lists the trials that come before any is drawn: no fault, one fault at a time, and, after one trial of each kind
// of fault, what chance hardly ever draws.
func (s space) first(rng *rand.Rand) []Trial {
	all := s.singles(rng)
	all = slices.Insert(all, min(len(s.kinds), len(all)), append(s.unreplicated(rng), s.late(rng)...)...)
	return append(withoutFaults(), all...)
}

// withoutFaults finds what needs no fault: by long sections, or by many holds.
func withoutFaults() []Trial {
	return []Trial{{Use: trials.Use{Workers: 3, Section: sections()[1]}}, {Use: trials.Use{Workers: 5, Section: shortest}}}
}

// unreplicated is a trial in which the leader is cut off from the other servers and grants the lock to whoever still
// reaches it. A service that answers before its replicas know the grant grants the lock again after the failover. The
// cut begins with a release, so the next grant is the first one under the cut. Its section outlasts a failover.
func (s space) unreplicated(rng *rand.Rand) []Trial {
	cut := aim{history.Partition, "leader", "servers"}
	if !s.long || !slices.Contains(s.whens[cut], nemesis.WhenReleasing) {
		return nil
	}
	return []Trial{Trial{
		Use: trials.Use{Workers: 3, Section: 0.9, Long: true}, Seed: rng.Uint64N(1_000_000), Steps: []Step{
			{Fault: cut.fault, Target: cut.target, From: cut.from, When: nemesis.WhenReleasing, Length: 1.3},
		},
	}.normal()}
}

// singles lists trials with one fault that begins while the lock is held, the kinds of faults in turn. Within a kind, the
// order is that of turn, then chance.
func (s space) singles(rng *rand.Rand) []Trial {
	kinds := slices.Clone(s.kinds)
	rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	var queues [][]Trial
	longest := 0
	for _, kind := range kinds {
		queue := s.ofKind(rng, kind)
		queues, longest = append(queues, queue), max(longest, len(queue))
	}
	var all []Trial
	for i := range longest {
		for _, queue := range queues {
			if i < len(queue) {
				all = append(all, queue[i])
			}
		}
	}
	return all
}

// late lists trials in which a worker reads an answer late, but within its lease, and in which the holder is then stopped
// beyond its lease. Only then does it show whether a client asks again in a wrong way. Timeouts of clients are seconds
// whatever the lease, so the lease is a long one. A late renewal is tried twice: its effect depends on what the client
// does first when it goes on.
func (s space) late(rng *rand.Rand) []Trial {
	if !s.long {
		return nil
	}
	var all []Trial
	for _, c := range []struct {
		workers  int
		section  float64
		at, then string // moments of the two faults
	}{
		{3, lastsBoth, nemesis.WhenRenewing, nemesis.WhenRenewing}, // of one hold
		{2, lastsBoth, nemesis.WhenRenewing, nemesis.WhenRenewing},
		{3, 1.6, nemesis.WhenReleasing, nemesis.WhenHolding},
		{3, 1.6, nemesis.WhenAcquiring, nemesis.WhenHolding},
	} {
		if !slices.Contains(s.whens[aim{fault: history.Pause, target: actor}], c.at) {
			continue
		}
		all = append(all, Trial{
			Use: trials.Use{Workers: c.workers, Section: c.section, Long: true, Renew: s.renew}, Seed: rng.Uint64N(1_000_000), Steps: []Step{
				{Fault: history.Pause, Target: actor, When: c.at, Length: 0.5},
				{Fault: history.Pause, Target: actor, When: c.then, Length: 1.3, Order: then},
			},
		}.normal())
	}
	return all
}

// lastsBoth is a section, in leases, that outlasts both faults of a trial with a late answer.
const lastsBoth = 3

func (s space) ofKind(rng *rand.Rand, kind string) []Trial {
	var all []Trial
	for _, a := range s.aims[kind] {
		if a.target != actor { // the same as the holder, while the lock is held
			all = append(all, s.single(rng, a)...)
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortStableFunc(all, func(a, b Trial) int { return cmp.Compare(s.turn(a.Steps[0].aim()), s.turn(b.Steps[0].aim())) })
	return all
}

// mainServers is the role of the servers that the lock depends on most: the leader; among equals a minority, which the
// lock must survive; or the only server.
func (s space) mainServers() string {
	for _, role := range []string{"leader", "minority"} {
		for _, kind := range s.kinds {
			if slices.ContainsFunc(s.aims[kind], func(a aim) bool { return a.target == role }) {
				return role
			}
		}
	}
	return "one"
}

// turn orders the aims of a kind, the lowest first: whoever uses the lock and the main servers, cut off from everybody,
// then from some; then all others.
func (s space) turn(a aim) int {
	switch {
	case !slices.Contains([]string{"holder", "waiter", s.mainServers()}, a.target):
		return 2
	case a.from != "":
		return 1
	}
	return 0
}

// single lists the trials of an aim. In one the section ends before the lease. In one the section needs renewals, or a
// session, and the fault outlasts the leases of the waiters; if the lock allows it, they also give up soon and ask anew.
//
// A fault that servers take long to recover from is tried with a long lease, because libraries take seconds to notice
// that servers are gone, which is too late for a short lease. It is tried with and without renewals, for less important
// roles with one of the two, and with many short holds, because a server may lose what it granted under them.
func (s space) single(rng *rand.Rand, a aim) []Trial {
	step := Step{Fault: a.fault, Target: a.target, From: a.from, When: s.whens[a][0], Length: 1.3, Clock: firstOf(clocksOf(a.fault))}
	long := s.long && outlasts(a)
	renewed, both := long && s.renew, s.turn(a) == 0
	within := Trial{Use: trials.Use{Workers: 3, Section: 0.6, Long: long, Renew: renewed && !both && rng.IntN(2) == 0}, Steps: []Step{step}}
	step.Length, step.Clock = 2.5, lastOf(clocksOf(a.fault))
	beyond := Trial{Use: trials.Use{Workers: 3, Section: 0.6, Renew: s.renew}, Steps: []Step{step}}
	if s.renew || s.session {
		beyond.Section = 1.6
	}
	all := []Trial{within, beyond}
	if s.brief {
		anew := beyond // some libraries sleep before they ask again for a waiter, but not for a new attempt
		anew.Brief = true
		all = append(all, anew)
	}
	if renewed && both {
		once := within
		once.Renew = true
		all = append(all, once)
	}
	if long {
		many := within
		many.Workers, many.Section, many.Renew, many.Brief = 5, shortest, false, s.brief
		all = append(all, many)
	}
	for i := range all {
		all[i].Seed = rng.Uint64N(1_000_000)
		all[i] = all[i].normal()
	}
	return all
}

// outlasts says whether servers take longer than a short lease to recover from a fault.
func outlasts(a aim) bool {
	switch a.fault {
	case history.Pause, history.Freeze, history.Kill, history.Wipe, history.Crash, history.Partition, history.OneWay:
	default:
		return false
	}
	return !slices.Contains([]string{"holder", "waiter", "one worker", actor}, a.target)
}
