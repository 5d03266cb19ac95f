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

// late says whether the lock of a silent holder passed on later than the liveness checker
// lets it. That checker judges only what is left when faults are over, so it knows nothing of
// a lease that a moved clock puts off. Nothing else does: any other delay is that of servers
// out of reach, or of a busy machine.
func (r Run) late() bool {
	if r.Verdict != checker.Valid || r.Failover == nil || len(r.clocksMoved()) == 0 {
		return false
	}
	info, known := infoOf(r.Lock)
	return known && r.Failover.Longest > r.freeAfter(info)+info.Grace+checker.LivenessGrace
}

// tooShort says whether a fault that keeps holders and servers apart, and lets holders work on,
// could do nothing: all sections were over before the lock of a silent holder could pass on.
// Experiments are aimed, at that or at something else.
func (r Run) tooShort(fault string) bool {
	kind, whom := split(fault)
	stops, ends, cuts := history.Does(kind, history.Stops), history.Does(kind, history.Ends), history.Does(kind, history.Cuts)
	switch {
	case r.Experiment != "":
		return false
	case nemesis.MeansWorkers(whom):
		return cuts && !ends && r.section() <= r.silentFor()
	}
	return (stops || ends || cuts) && r.section() <= max(r.silentFor(), runs.DefaultSection().Max)
}

// silentFor is how long a holder can be silent before its lock passes on at the soonest; 0 if it
// never does.
func (r Run) silentFor() time.Duration {
	info, known := infoOf(r.Lock)
	switch {
	case !known:
		return r.Lease
	case info.TTL == 0: // it ends with a connection, if ever
		return info.Grace
	}
	return r.freeAfter(info)
}

// longWork says whether work took longer than a lease that nobody renewed, as it was asked to:
// then the lock passes on at each turn, and no fault can be held to have done it.
func (r Run) longWork() bool { return r.Causes[checker.CauseOutlasted] > 0 && r.outlastsLease() }

// outlastsLease says whether work was asked to take longer than a lease that nobody renews.
func (r Run) outlastsLease() bool {
	info, _ := infoOf(r.Lock)
	return r.Lease > 0 && !info.Session && r.section() > r.Lease && !r.Renewed
}

// freeAfter is after which time the lock of a silent holder is free by its rule; 0 if it never
// is, or ends with a connection.
func (r Run) freeAfter(info clients.Info) time.Duration {
	return info.Effective(r.Lease, r.lockDelay(info))
}

// lockDelay is for how long the service kept the lock of a session that ended from others.
func (r Run) lockDelay(info clients.Info) time.Duration {
	if info.LockDelay == 0 {
		return 0 // experiments that are made with many locks set it for all of them
	}
	if r.LockDelay != nil {
		return *r.LockDelay
	}
	return info.LockDelay
}

// section is the longest that a holder's work was asked to take.
func (r Run) section() time.Duration { return cmp.Or(r.Section, runs.DefaultSection().Max) }

// setup is all that the run did otherwise than the lock is usually used.
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

// clocksMoved are the faults that are proven to have moved a clock.
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
	kind, _ := split(f.Name)
	return history.Does(kind, history.Steps)
}
