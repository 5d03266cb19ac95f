//go:build mutants

package main

import (
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/workloads"
)

// mutant is a lock that lockcheck is tested with, and what it must be found guilty of.
type mutant struct {
	name, does string
	guilty     checker.Property // "" for a correct mutant
	guard      workloads.Guard  // "" for the default guard
	renew      bool
	section    workloads.Range // zero for the default section
	ttl        time.Duration   // 0 for the default lease
	faults     string          // "" for all faults
	workload   string          // "" for the workload of all runs
	// schedule replaces faults; "" for none. control says why the schedule does not show what the mutant does
	// wrong. Then the mutant must be found guilty of nothing.
	schedule, control string
}

// pauses is for mutants that only a holder paused past its lease exposes.
const pauses = "pause:holder"

// Sections that leave time for what a mutant does wrong: a renewal after a pause, or a stale write while the
// next holder is working.
var (
	renewing = workloads.Range{Min: 300 * time.Millisecond, Max: 1200 * time.Millisecond}
	long     = workloads.Range{Min: 150 * time.Millisecond, Max: 380 * time.Millisecond}
	// slowest is so long that a holder that was paused for its lease and up to 1.5 s wakes up after the next
	// holder has read and before it has written.
	slowest = workloads.Range{Min: 1700 * time.Millisecond, Max: 1900 * time.Millisecond}
	// endless is long enough for two successive renewals to be paused.
	endless = workloads.Range{Min: 3 * time.Second, Max: 3 * time.Second}
)

// Schedules for mutants that only a fault at the right moment exposes, and schedules that miss that moment.
// Each fault may come several times.
const (
	releaseInFlight = `steps: [{fault: pause, target: actor, when: releasing, for: 400ms, every: 1s}]`
	acquireInFlight = `steps: [{fault: pause, target: actor, when: acquiring, for: 350ms, every: 1s}]`
	holderStopped   = `steps: [{fault: pause, target: holder, for: 350ms, every: 1s}]`
	// The first of two pauses makes an answer late, and the second outlasts the lease.
	lateThenLong = `steps:
  - {id: a1, sequence: s, fault: pause, target: actor, when: renewing, for: 400ms}
  - {id: b1, sequence: s, fault: pause, target: actor, when: renewing, for: lease+300ms}
  - {id: a2, sequence: s, fault: pause, target: actor, when: renewing, for: 400ms}
  - {id: b2, sequence: s, fault: pause, target: actor, when: renewing, for: lease+300ms}`
	longOnly = `steps: [{fault: pause, target: actor, when: renewing, for: lease+300ms, every: 5s}]`
)

// mutants lists the correct ones first.
func mutants() []mutant {
	return []mutant{
		{name: "textbook", does: "a table of leases and a counter"},
		{name: "slow", does: "answers up to 30 ms late"},
		{name: "late-end", does: "ends leases 200 ms later than it was asked to"},
		{name: "sparse-tokens", does: "leaves out tokens"},
		{name: "clock-tokens", does: "takes tokens from a clock"},
		{name: "idempotent", does: "grants an attempt again what it has", renew: true, section: long},
		{name: "queue", does: "lets attempts wait before it refuses them"},
		{name: "anonymous", does: "never says who holds the lock"},
		{name: "refuses-at-times", does: "refuses though the lock is free"},
		{name: "forgets-answers", does: "does what it is asked, and at times does not answer", renew: true, section: long},

		{name: "textbook", does: "a table of leases that readers share", workload: history.WorkloadReadWrite},
		{name: "semaphore-textbook", does: "a table of the leases of those who hold a permit", workload: history.WorkloadSemaphore},
		{name: "semaphore-forgets-answers", does: "does what it is asked of a semaphore, and at times does not answer", workload: history.WorkloadSemaphore, renew: true, section: long},

		{name: "double-grant", does: "grants what is held", guilty: checker.MutualExclusion},
		{name: "no-lock", does: "grants everything", guilty: checker.MutualExclusion},
		{name: "split-brain", does: "has a table for each half of the workers", guilty: checker.MutualExclusion},
		{name: "early-end", does: "ends leases at half time", guilty: checker.MutualExclusion},
		{name: "unit-mistake", does: "takes ms for µs", guilty: checker.MutualExclusion},
		{name: "grant-before-expiry", does: "hands over before the lease has run out", guilty: checker.MutualExclusion},
		{name: "renews-expired", does: "renews leases that have ended", guilty: checker.NoWrongRenewal, renew: true, section: renewing, faults: pauses},
		{name: "renewal-steals", does: "gives the lock back to a former holder who renews", guilty: checker.NoWrongRenewal, renew: true, section: renewing, faults: pauses},
		{name: "denies-renewals", does: "says not held to a holder that renews", guilty: checker.NoUntrueLoss, renew: true, section: renewing},
		{name: "wakes-nobody", does: "grants a released lock late", guilty: checker.NoIdleLock, faults: "none"},
		{name: "forgets", does: "loses its table, as a restart without a disk", guilty: checker.MutualExclusion},
		{name: "long-validity", does: "has a client that takes its lease for five times as long", guilty: checker.MutualExclusion},
		{name: "grants-expired", does: "grants a lease that it does not keep", guilty: checker.NoExpiredGrant},
		{name: "blind-release", does: "removes the lease of whoever has it", guilty: checker.NoWrongRelease, section: long, faults: pauses},
		{name: "release-by-anybody", does: "accepts the release of somebody else's lock", guilty: checker.NoWrongRelease, section: long, faults: pauses},
		{name: "token-reused", does: "hands out a token twice", guilty: checker.FencingOrder},
		{name: "token-back", does: "goes back with its tokens", guilty: checker.FencingOrder},
		{name: "token-per-worker", does: "counts the tokens of each worker alone", guilty: checker.FencingOrder},
		{name: "release-lost", does: "keeps a lock that it said was released", guilty: checker.Linearizability},
		{name: "release-denied", does: "says not held, and releases", guilty: checker.Linearizability},
		{name: "names-wrong-holder", does: "names the holder before", guilty: checker.Linearizability},
		{name: "never-ends", does: "keeps the lease of a dead holder", guilty: checker.Liveness},
		{name: "renewed-never-ends", does: "keeps the lease of a dead holder that has renewed it", guilty: checker.Liveness, renew: true, section: renewing, faults: "kill:holder"},
		{name: "contention-renews", does: "renews the lease with each attempt of others", guilty: checker.Liveness},
		{name: "starves", does: "never answers one worker", guilty: checker.Liveness},
		{name: "stops-granting", does: "grants nothing after the hundredth time", guilty: checker.Liveness},
		{name: "retries-release", does: "releases by name if an answer was late", guilty: checker.MutualExclusion, section: long, ttl: 600 * time.Millisecond, schedule: releaseInFlight},
		{name: "retries-release", does: "releases by name if an answer was late", section: long, ttl: 600 * time.Millisecond, schedule: holderStopped, control: "pauses inside the section"},
		{name: "insists", does: "renews what was lost if an earlier answer was late", guilty: checker.MutualExclusion, renew: true, section: endless, ttl: time.Second, schedule: lateThenLong},
		{name: "insists", does: "renews what was lost if an earlier answer was late", renew: true, section: endless, ttl: time.Second, schedule: longOnly, control: "the second pause alone"},
		{name: "remembers", does: "takes an attempt for granted if its answer was late", guilty: checker.MutualExclusion, section: long, ttl: 600 * time.Millisecond, schedule: acquireInFlight},
		{name: "remembers", does: "takes an attempt for granted if its answer was late", section: long, ttl: 600 * time.Millisecond, schedule: holderStopped, control: "pauses inside the section"},
		{name: "semaphore-one-more", does: "grants a permit that there is not", workload: history.WorkloadSemaphore, guilty: checker.MutualExclusion},
		{name: "semaphore-counted-twice", does: "frees two permits when a lease has run out", workload: history.WorkloadSemaphore, guilty: checker.MutualExclusion, section: long},
		{name: "semaphore-unchecked-release", does: "frees the permit of another holder for one that came too late", workload: history.WorkloadSemaphore, guilty: checker.MutualExclusion, section: long, faults: pauses},
		{name: "semaphore-release-lost", does: "keeps a permit that it said was released", workload: history.WorkloadSemaphore, guilty: checker.Linearizability},
		{name: "reader-let-in", does: "lets a reader in to a writer", workload: history.WorkloadReadWrite, guilty: checker.MutualExclusion, section: long},
		{name: "writer-let-in", does: "lets a writer in to readers", workload: history.WorkloadReadWrite, guilty: checker.RepeatableRead, section: long},
		{name: "readers-all-out", does: "ends the grants of all readers with the release of one", workload: history.WorkloadReadWrite, guilty: checker.MutualExclusion, section: long},
		{name: "fence-on-writes", does: "is protected by a fence on writes only", guilty: checker.NoLostUpdate, guard: workloads.FenceWrites, ttl: 2 * time.Second, section: slowest, faults: pauses},
	}
}
