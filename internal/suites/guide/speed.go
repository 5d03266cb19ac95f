package guide

import (
	"slices"
	"time"

	"lockcheck/history"
	"lockcheck/reports"
)

// speed sums up how fast a lock was, and what it lost, without a guard. No guard changes how soon
// it passes on.
func (e Evidence) speed(lock string) reports.GuideSpeed {
	s := reports.GuideSpeed{Lock: lock, Note: noChoice(lock)}
	var stopped, failedOver []Run
	for _, r := range e {
		if r.Lock != lock {
			continue
		}
		if r.Failover != nil && !r.movesClocks() {
			failedOver = append(failedOver, r)
		}
		if r.Guard != history.GuardNone {
			continue
		}
		if f, asked := r.fault(Normal("pause:holder")); asked && f.Met > 0 {
			stopped = append(stopped, r)
			s.Stops += int64(f.Met)
		}
	}
	if a := e.alone(lock); a != nil {
		s.Acquires, s.AcquireP50, s.AcquireP99 = a.N, a.P50, a.P99
	}
	s.Loss = poolOf(stopped)
	s.NeedsNoFault = e.Cell(lock, None, history.GuardNone).State == Broken
	addFailovers(&s, failedOver)
	return s
}

// movesClocks says whether a clock was, by which a lease may end at any time.
func (r Run) movesClocks() bool { return slices.ContainsFunc(r.Faults, Fault.movesClock) }

// addFailovers adds those with the usual lease: how soon a lock passes on hangs on that more than
// on anything else.
func addFailovers(s *reports.GuideSpeed, all []Run) {
	if len(all) == 0 {
		return
	}
	usual := usualTerms(all)
	var medians []time.Duration
	for _, r := range all {
		if r.terms() != usual {
			continue
		}
		f := r.Failover
		s.Failovers += f.Holders
		s.Stuck += f.Stuck
		s.FailoverMax = max(s.FailoverMax, f.Longest)
		if f.Holders > f.Stuck {
			medians = append(medians, f.Median)
		}
	}
	s.FailoverP50, s.Lease, s.LockDelay = upperMedian(medians), usual.lease, usual.delay
}

// upperMedian is the longer of the two in the middle of an even number: a lock must not look faster
// than it was. Of none it is zero.
func upperMedian(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(all))[len(all)/2]
}

// terms are after which time a lock passes on.
type terms struct{ lease, delay time.Duration }

func (r Run) terms() terms {
	info, _ := infoOf(r.Lock)
	return terms{r.Lease, r.lockDelay(info)}
}

// usualTerms are those of the most runs; of several, those that came first.
func usualTerms(all []Run) terms {
	count := make(map[terms]int)
	for _, r := range all {
		count[r.terms()]++
	}
	return slices.MaxFunc(all, func(a, b Run) int { return count[a.terms()] - count[b.terms()] }).terms()
}

// fewestAcquires are those below which the start of a session is a good part of what is measured.
const fewestAcquires = 20

// aloneShare is how many of the acquires of a worker that is alone nobody else wants at least.
const aloneShare = 0.95

// alone is what the run measured that has the most acquires, of those in which one worker was
// alone. Where others waited at times, those that met nobody are the fast ones.
func (e Evidence) alone(lock string) *Acquire {
	var most *Acquire
	for _, r := range e {
		if r.Lock == lock && r.Guard == history.GuardNone && r.alone() && (most == nil || r.Acquire.N > most.N) {
			most = r.Acquire
		}
	}
	return most
}

// alone says whether nobody else asked for the lock. Each update takes one acquire.
func (r Run) alone() bool {
	a, u := r.Acquire, r.Updates
	return a != nil && u != nil && a.N >= fewestAcquires && float64(a.N) >= aloneShare*float64(u.Acknowledged)
}
