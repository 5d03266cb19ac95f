package hunt

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"lockcheck/history"
	"lockcheck/nemesis"
)

// first lists what is tried before trials are drawn: no fault, one fault at a time, and once each kind of them had
// a turn also what chance hardly ever draws.
func (s space) first(rng *rand.Rand) []Trial {
	all := s.singles(rng)
	all = slices.Insert(all, min(len(s.kinds), len(all)), append(s.unreplicated(rng), s.late(rng)...)...)
	return append(unaided(), all...)
}

// unaided are trials without faults: what needs none is found by long sections, or by many holds.
func unaided() []Trial {
	return []Trial{{Workers: 3, Section: sections()[1]}, {Workers: 5, Section: shortest}}
}

// unreplicated is a trial in which the leader is kept from the other servers, and grants the lock to who
// still reaches it. A service that answers before its replicas know grants the lock again after
// a failover. The cut begins with a release, so that the grant after it is the first under the cut; its
// section is longer than a failover takes.
func (s space) unreplicated(rng *rand.Rand) []Trial {
	cut := aim{history.Partition, "leader", "servers"}
	if !s.long || !slices.Contains(s.whens[cut], nemesis.WhenReleasing) {
		return nil
	}
	return []Trial{Trial{
		Workers: 3, Section: 0.9, Long: true, Seed: rng.Uint64N(1_000_000), Steps: []Step{
			{Fault: cut.fault, Target: cut.target, From: cut.from, When: nemesis.WhenReleasing, Length: 1.3},
		},
	}.normal()}
}

// singles lists trials with one fault that begins while somebody holds the lock, one of each kind
// of fault after another. Of a kind those come first that meet who asks for the lock, or the servers
// on whom most depends; those that cut it off from some only come after the others. Beyond that
// chance decides.
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

// late are trials in which a worker reads an answer late, but within its lease, and in which the holder
// is stopped for longer than that afterwards. What clients do about late answers, such as asking again,
// is wrong seldom, and only then. Their timeouts are of seconds, whatever the lease: it is a long one.
// What an answer to a renewal leads to hangs on what a client does first when it goes on: that is tried
// twice.
func (s space) late(rng *rand.Rand) []Trial {
	if !s.long {
		return nil
	}
	var all []Trial
	for _, c := range []struct {
		workers  int
		section  float64
		at, then string // the moments of both faults
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
			Workers: c.workers, Section: c.section, Long: true, Renew: s.renew, Seed: rng.Uint64N(1_000_000), Steps: []Step{
				{Fault: history.Pause, Target: actor, When: c.at, Length: 0.5},
				{Fault: history.Pause, Target: actor, When: c.then, Length: 1.3, Order: then},
			},
		}.normal())
	}
	return all
}

// lastsBoth is a section, in leases, of which something is left after both faults of a trial with a
// late answer.
const lastsBoth = 3

// ofKind are the trials with one fault of a kind.
func (s space) ofKind(rng *rand.Rand, kind string) []Trial {
	var all []Trial
	for _, a := range s.aims[kind] {
		if a.target != actor { // who holds the lock is who was waited for
			all = append(all, s.single(rng, a)...)
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortStableFunc(all, func(a, b Trial) int { return cmp.Compare(s.turn(a.Steps[0].aim()), s.turn(b.Steps[0].aim())) })
	return all
}

// mainServers is the role of those servers on whom most depends: the leader, of equal ones a minority, which the lock is
// to do without, or the only one.
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

// turn is when an aim comes among those of a kind of fault, the lowest first.
func (s space) turn(a aim) int {
	switch {
	case !slices.Contains([]string{"holder", "waiter", s.mainServers()}, a.target):
		return 2
	case a.from != "":
		return 1
	}
	return 0
}

// single are the trials of an aim. One has a section that ends before the lease. One has a section
// that needs renewals, those of sessions too, and a fault that outlasts the leases of those who wait;
// if they can, they also give up soon and ask anew. A fault that servers take long to recover from
// is tried in a long lease, with and without a renewal, or where less depends on the role in one of
// both ways: what libraries do about servers that are gone takes as long in a short one, and comes too
// late there. It is also tried with many short holds in a long lease: a server loses what it granted
// under it.
func (s space) single(rng *rand.Rand, a aim) []Trial {
	step := Step{Fault: a.fault, Target: a.target, From: a.from, When: s.whens[a][0], Length: 1.3, Clock: firstOf(clocksOf(a.fault))}
	long := s.long && outlasts(a)
	renewed, both := long && s.renew, s.turn(a) == 0
	within := Trial{Workers: 3, Section: 0.6, Long: long, Renew: renewed && !both && rng.IntN(2) == 0, Steps: []Step{step}}
	step.Length, step.Clock = 2.5, lastOf(clocksOf(a.fault))
	beyond := Trial{Workers: 3, Section: 0.6, Renew: s.renew, Steps: []Step{step}}
	if s.renew || s.session {
		beyond.Section = 1.6
	}
	all := []Trial{within, beyond}
	if s.brief {
		anew := beyond // by a new attempt: some libraries sleep before those that wait are asked again
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

// outlasts says of a fault whether what it does to servers takes longer than a short lease.
func outlasts(a aim) bool {
	switch a.fault {
	case history.Pause, history.Freeze, history.Kill, history.Wipe, history.Crash, history.Partition, history.OneWay:
	default:
		return false
	}
	return !slices.Contains([]string{"holder", "waiter", "one worker", actor}, a.target)
}
