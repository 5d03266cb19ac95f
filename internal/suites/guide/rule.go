package guide

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/nemesis"
)

// passedOnLate says whether the lock of a silent holder passed on later than the liveness checker allows, or than a
// run allowed that required prompt failovers. That
// checker judges only what is left after the faults, so it cannot see a lease that a moved clock extends.
// Other delays do not count: they come from unreachable servers or a busy machine.
func (r Run) passedOnLate() bool {
	if r.violatedOnly(checker.PromptFailover) { // the run was made to judge that
		return true
	}
	if r.Verdict != checker.Valid || r.Failover == nil || len(r.clocksMoved()) == 0 {
		return false
	}
	info, known := infoOf(r.Lock)
	return known && r.Failover.Longest > r.freeAfter(info)+info.Grace+checker.LivenessGrace
}

// tooShort says whether a fault that separates holders from servers, but lets holders work on, could have no
// effect. It could have none if all sections ended before the lock of a silent holder could pass on.
// Experiments are exempt, because they are aimed.
func (r Run) tooShort(fault string) bool {
	kind, whom := splitFault(fault)
	stops, ends, cuts := history.Does(kind, history.Stops), history.Does(kind, history.Ends), history.Does(kind, history.Cuts)
	switch {
	case r.aimed():
		return false
	case nemesis.MeansWorkers(whom):
		return cuts && !ends && r.section() <= r.silentFor()
	}
	return (stops || ends || cuts) && r.section() <= max(r.silentFor(), runs.DefaultSection().Max)
}

// silentFor is how long a holder can be silent before its lock may pass on; 0 if it never passes on.
func (r Run) silentFor() time.Duration {
	info, known := infoOf(r.Lock)
	switch {
	case !known:
		return r.Lease
	case info.TTL == 0: // it ends with a connection, if at all
		return info.Grace
	}
	return r.freeAfter(info)
}

// longWork says whether work took longer than an unrenewed lease because the run asked for it. Then the lock
// passes on in every section, and no fault can be blamed.
func (r Run) longWork() bool { return r.Causes[checker.CauseOutlasted] > 0 && r.outlastsLease() }

// outlastsLease says whether the run asked for work that takes longer than an unrenewed lease.
func (r Run) outlastsLease() bool {
	info, _ := infoOf(r.Lock)
	return r.Lease > 0 && !info.Session && r.section() > r.Lease && !r.Renewed
}

// freeAfter is when the lock of a silent holder is free according to the lock's rule; 0 if it never is, or
// ends with a connection.
func (r Run) freeAfter(info clients.Info) time.Duration {
	return info.Effective(r.Lease, r.lockDelay(info))
}

// lockDelay is how long the service kept the lock from others after a session ended.
func (r Run) lockDelay(info clients.Info) time.Duration {
	if info.LockDelay == 0 {
		return 0 // experiments with many locks set it for all of them
	}
	if r.LockDelay != nil {
		return *r.LockDelay
	}
	return info.LockDelay
}

// section is the longest section that the run asked for.
func (r Run) section() time.Duration { return cmp.Or(r.Section, runs.DefaultSection().Max) }

// setup lists everything that was unusual in the run.
func (r Run) setup() []string {
	all := slices.Clone(r.Setup)
	info, known := infoOf(r.Lock)
	if delay := r.lockDelay(info); delay != info.LockDelay {
		all = append(all, fmt.Sprintf("lock delay %s", delay))
	}
	if known && r.Lease > 0 && r.Lease != info.TTL {
		all = append(all, "lease "+r.Lease.String())
	}
	if longest := r.section(); longest > runs.DefaultSection().Max {
		all = append(all, "sections of up to "+longest.String())
	}
	return all
}

// clocksMoved lists the faults that were proven to move a clock.
func (r Run) clocksMoved() []string {
	var names []string
	for _, f := range r.Faults {
		if f.Met > 0 && f.movesClock() {
			names = append(names, f.Name)
		}
	}
	return names
}

func (f Fault) movesClock() bool {
	kind, _ := splitFault(f.Name)
	return history.Does(kind, history.Steps)
}
