package guide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/nemesis"
	"lockcheck/workloads"
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

// sentence is what happened, with what a valid verdict leaves out.
func (r Run) sentence() string {
	if !r.late() {
		return r.Sentence
	}
	return fmt.Sprintf("%s; the lock passed on after %s, with a lease of %s.", strings.TrimSuffix(r.Sentence, "."), r.Failover.Longest.Round(10*time.Millisecond), r.Lease)
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
		return cuts && !ends && r.longestSection() <= r.silentFor()
	}
	return (stops || ends || cuts) && r.longestSection() <= max(r.silentFor(), runs.DefaultSection().Max)
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
	return r.Lease > 0 && !info.Session && r.longestSection() > r.Lease && !r.renewed()
}

// renewed says whether workers were asked to renew. Where that failed, a fault may be why.
func (r Run) renewed() bool {
	return slices.ContainsFunc(r.Setup, func(s string) bool { return s == setupRenewed || strings.HasPrefix(s, "--renew") })
}

// longestSection is how long the work of a holder took at most.
func (r Run) longestSection() time.Duration {
	words := strings.Fields(strings.ReplaceAll(r.Line, "=", " "))
	if i := slices.Index(words, "--section"); i >= 0 && i+1 < len(words) {
		if section, err := workloads.ParseRange(words[i+1]); err == nil {
			return section.Max
		}
	}
	return runs.DefaultSection().Max
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
	for _, setup := range r.Setup {
		for _, before := range []string{delaySetup, delayFlag} {
			text, is := strings.CutPrefix(setup, before)
			if delay, err := time.ParseDuration(text); is && err == nil {
				return delay
			}
		}
	}
	return info.LockDelay
}

// setup is all that the run did otherwise than the lock is usually used. A lock delay counts of a
// lock that has one, and only then.
func (r Run) setup() []string {
	var all []string
	info, known := infoOf(r.Lock)
	for _, s := range r.Setup {
		if strings.HasPrefix(s, delaySetup) && r.lockDelay(info) == info.LockDelay {
			continue
		}
		all = append(all, s)
	}
	if known && r.Lease > 0 && r.Lease != info.TTL {
		all = append(all, "lease "+r.Lease.String())
	}
	if longest := r.longestSection(); longest > runs.DefaultSection().Max {
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
