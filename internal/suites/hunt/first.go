package hunt

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"lockcheck/history"
	"lockcheck/internal/suites/trials"
	"lockcheck/nemesis"
)

// first lists the trials that a hunt makes before it draws any. They have no fault or one fault each. After
// one trial of each kind of fault come the sequences that chance hardly ever draws.
func (s space) first(rng *rand.Rand) []Trial {
	all := s.singles(rng)
	all = slices.Insert(all, min(len(s.kinds), len(all)), append(s.leaderCutOff(rng), s.lateAnswers(rng)...)...)
	return append(withoutFaults(), all...)
}

// withoutFaults lists trials for failures that need no fault, with long sections and with many holds.
func withoutFaults() []Trial {
	return []Trial{{Use: trials.Use{Workers: 3, Section: sections()[1]}}, {Use: trials.Use{Workers: 5, Section: shortest}}}
}

// leaderCutOff is a trial in which the leader is cut off from the other servers, and grants the lock to a
// worker that still reaches it. A service that answers before its replicas know the grant will grant the lock
// again after the failover. The cut begins at a release, so the next grant is the first one under the cut.
// The section outlasts a failover.
func (s space) leaderCutOff(rng *rand.Rand) []Trial {
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

// singles lists trials with one fault that begins while the lock is held. It takes the kinds of faults in
// turn. Within a kind, trials are ordered by priority, then at random.
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

// lateAnswers lists trials in which a worker reads an answer late but within its lease, and in which the holder then
// pauses past its lease. Only this sequence shows whether a client wrongly repeats a request. Timeouts of
// clients are seconds whatever the lease, so the lease is long. A late renewal is tried twice, because its
// effect depends on what the client does first when it resumes.
func (s space) lateAnswers(rng *rand.Rand) []Trial {
	if !s.long {
		return nil
	}
	var all []Trial
	for _, c := range []struct {
		workers  int
		section  float64
		at, then string // the moments at which the two faults begin
	}{
		{3, lastsBoth, nemesis.WhenRenewing, nemesis.WhenRenewing}, // both in one hold
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
		// While the lock is held, the actor is the holder.
		if a.target != actor {
			all = append(all, s.single(rng, a)...)
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortStableFunc(all, func(a, b Trial) int { return cmp.Compare(s.priority(a.Steps[0].aim()), s.priority(b.Steps[0].aim())) })
	return all
}

// mainServers is the role of the servers that the lock depends on most. This is the leader. Among equal
// servers it is a minority, which the lock must survive. With one server it is that server.
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

// priority ranks the aims of a kind, the lowest first: users of the lock and the main servers, cut off from
// everybody; then the same, cut off from some; then all others.
func (s space) priority(a aim) int {
	switch {
	case !slices.Contains([]string{"holder", "waiter", s.mainServers()}, a.target):
		return 2
	case a.from != "":
		return 1
	}
	return 0
}

// single lists the trials of an aim. In the first, the section ends before the lease. In the second, the
// section needs renewals or a session, and the fault outlasts the leases of the waiters. If the lock allows
// it, a third trial lets attempts give up soon and start anew.
//
// Servers take long to recover from some faults. These faults are tried with a long lease, because libraries
// take seconds to notice that servers are gone, which is too late for a short lease. Important roles are
// tried with renewals and without, other roles with one of the two at random. All are also tried with many
// short holds, because a server may lose what it granted during the fault.
func (s space) single(rng *rand.Rand, a aim) []Trial {
	step := Step{Fault: a.fault, Target: a.target, From: a.from, When: s.whens[a][0], Length: 1.3, Clock: firstOf(clocksOf(a.fault))}
	long := s.long && outlasts(a)
	renewed, both := long && s.renew, s.priority(a) == 0
	within := Trial{Use: trials.Use{Workers: 3, Section: 0.6, Long: long, Renew: renewed && !both && rng.IntN(2) == 0}, Steps: []Step{step}}
	step.Length, step.Clock = 2.5, lastOf(clocksOf(a.fault))
	beyond := Trial{Use: trials.Use{Workers: 3, Section: 0.6, Renew: s.renew}, Steps: []Step{step}}
	if s.renew || s.session {
		beyond.Section = 1.6
	}
	all := []Trial{within, beyond}
	if s.brief {
		anew := beyond // some libraries sleep before a waiter retries, but not before a new attempt
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
	case history.Pause, history.Freeze, history.Kill, history.Restart, history.Wipe, history.Crash, history.PowerLoss, history.Partition, history.OneWay,
		history.DiskFull, history.FsyncError, history.SlowDisk, history.RemoveMember:
	default:
		return false
	}
	return !slices.Contains([]string{"holder", "waiter", "one worker", actor}, a.target)
}
