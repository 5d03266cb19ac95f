// Package trials has what short runs with aimed faults share. Their lease is the shortest that gives
// meaningful results, sections are measured in leases, and the time limit leaves each fault the time to wait
// for its moment.
package trials

import (
	"cmp"
	"time"

	"lockcheck/history"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// Times of a trial.
const (
	// FirstStep is how long workers run before the first fault.
	FirstStep = 200 * time.Millisecond
	// MomentWait is how long a step may wait for its moment.
	MomentWait = 2 * time.Second
	// idle is the shortest length of a trial without faults.
	idle = 2 * time.Second
	// longHold outlasts a server restart and a failover, which take seconds whatever the lease.
	longHold = 10 * time.Second
	// shortDelay is a lock delay that a trial can exceed and a hunt can afford.
	shortDelay = time.Second
)

// Use is how a trial uses the lock.
type Use struct {
	Workers int `json:"workers" yaml:"workers"`
	// Section is the time in the critical section, in leases.
	Section float64 `json:"section" yaml:"section"`
	// Long: the lease outlasts a server restart and a failover.
	Long bool `json:"long,omitempty" yaml:"long,omitempty"`
	// Nodes is the number of servers; 0 for the default number.
	Nodes int  `json:"nodes,omitempty" yaml:"nodes,omitempty"`
	Renew bool `json:"renew,omitempty" yaml:"renew,omitempty"`
	Check bool `json:"check,omitempty" yaml:"check,omitempty"` // before each write
	Pin   bool `json:"pin,omitempty" yaml:"pin,omitempty"`
	// Brief: attempts give up after half of the shortest lease; otherwise they never give up.
	Brief bool `json:"brief,omitempty" yaml:"brief,omitempty"`
}

// Subject is the lock that trials use.
type Subject struct {
	lockfile.Lock
	Name    string        // as in --lock
	Version string        // of the servers; "" for the default version
	Nodes   int           // in trials that do not set it; 0 for the default number
	TTL     time.Duration // in trials that are not long; 0 for the shortest lease that gives meaningful results
}

// Lease is the lease of a trial that is not long; 0 for a lock without a lease.
func (s Subject) Lease() time.Duration { return cmp.Or(s.TTL, s.Info.ShortestTTL()) }

// longLease keeps the lock of a silent holder for longHold.
func (s Subject) longLease() time.Duration {
	return s.Info.Lease(time.Duration(float64(longHold) / max(1, s.Info.Expiry)))
}

// HasLong says whether the lock can have a long lease that is much longer than the usual lease of trials.
func (s Subject) HasLong() bool {
	atMost := s.Info.MaxTTL
	return s.Servers.Nodes > 0 && s.Lease() > 0 && s.Lease() < s.longLease()/2 && (atMost == 0 || atMost >= s.longLease())
}

// LockDelay is the lock delay of trials; nil for the lock's own delay, and for a lock without one.
func (s Subject) LockDelay() *time.Duration {
	if s.Info.LockDelay <= shortDelay {
		return nil
	}
	delay := shortDelay
	return &delay
}

func (s Subject) leaseOf(u Use) time.Duration {
	if u.Long {
		return s.longLease()
	}
	return s.Lease()
}

// silentFor is how long a silent holder keeps the lock. Sections are measured in it.
func (s Subject) silentFor(lease time.Duration) time.Duration {
	switch {
	case lease == 0:
		return time.Second
	case s.Info.Session:
		return s.Info.Effective(lease, *cmp.Or(s.LockDelay(), &s.Info.LockDelay))
	}
	return lease
}

// Section is the length of the critical section.
func (s Subject) Section(u Use) time.Duration {
	return time.Duration(u.Section * float64(s.silentFor(s.leaseOf(u)))).Round(time.Millisecond)
}

// Sketch returns the options of a trial without a time limit.
func (s Subject) Sketch(u Use, schedule nemesis.Schedule) runs.Options {
	section := s.Section(u)
	o := runs.Options{
		Lock: s.Name, ServerVersion: s.Version, Nodes: cmp.Or(u.Nodes, s.Nodes), Pin: u.Pin,
		Workload: history.WorkloadSet, Guard: string(workloads.NoGuard), Concurrency: u.Workers, EndEarly: true, MinOps: 1,
		Use: workloads.Use{
			TTL: s.leaseOf(u), LockDelay: s.LockDelay(), Section: workloads.Range{Min: section, Max: section}, Renew: u.Renew && s.Info.Renew, CheckBeforeWrite: u.Check,
		},
		Schedule: &schedule, Seed: schedule.Seed,
	}
	if u.Brief {
		o.Wait = s.silentFor(s.Lease()) / 2
	}
	return o
}

// Options returns the options of a trial that leaves its faults enough time. A trial without faults is longer
// by factor.
func (s Subject) Options(u Use, schedule nemesis.Schedule, factor int) (runs.Options, error) {
	o := s.Sketch(u, schedule)
	var err error
	if o.TimeLimit, err = LimitOf(o, u, factor); s.Info.GivesUp() && !u.Brief {
		o.Wait = o.TimeLimit // an attempt that gives up during a fault would hide its outcome
	}
	return o, err
}

// LimitOf is the time limit of a trial that leaves its faults enough time.
func LimitOf(o runs.Options, u Use, factor int) (time.Duration, error) {
	outline, err := runs.OutlineOf(o)
	active := Active(u, *o.Schedule, factor, outline.Effective)
	return (outline.Recovery + active + 99*time.Millisecond).Truncate(100 * time.Millisecond), err
}

// Active is the time that a schedule needs if each step waits for its moment and for the step before it.
// Without steps, it is the time for some holds, multiplied by factor.
func Active(u Use, schedule nemesis.Schedule, factor int, lease time.Duration) time.Duration {
	if lease == 0 {
		lease = time.Second
	}
	section := time.Duration(u.Section * float64(lease))
	if len(schedule.Steps) == 0 {
		return time.Duration(max(1, factor)) * max(idle, 4*section, 2*lease)
	}
	var first, total time.Duration
	for _, step := range schedule.Steps {
		first = max(first, step.After.Of(lease))
		total += time.Duration(max(1, step.Times)) * (step.For.Of(lease) + 2*section + MomentWait)
	}
	return first + total
}

// Quick returns the options of a trial that ends as soon as it can be judged and writes only its results.
func Quick(o runs.Options) runs.Options {
	o.EndRecovered, o.UntilViolation, o.ResultsOnly = true, true, true
	return o
}

// MaxDelay is how late the machine may wake up lockcheck's process during a trial.
func MaxDelay(o runs.Options) time.Duration { return o.TTL / 4 }
