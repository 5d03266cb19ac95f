package checker

import (
	"slices"

	"lockcheck/checker/simulation"
	"lockcheck/history"
)

// doubt is the uncertainty, in ns, of the recorded times of a fault.
const doubt = 3e6

// states checks what kept the earlier holder from noticing, from the end of its client's validity to the next
// grant.
func (o *oracle) states() {
	for _, v := range o.results.of(MutualExclusion).Violations {
		a, b := o.record.byID[v.Grants[0]], o.record.byID[v.Grants[1]]
		window := simulation.Interval{From: min(a.deadline(), b.answered), To: b.answered}
		unknown := o.world.Session || o.world.Lease == 0
		if unknown {
			window.From = min(a.asked, b.answered) // when its client stopped vouching for the grant is not known
		}
		stops := o.truth.Stopped[a.worker]
		cuts := slices.Concat(o.truth.Cut[a.worker], o.truth.Away)
		said := func(state HolderState) bool { return v.Figures.Holder == state }
		switch {
		case said(HolderPaused) && !meets(stops, wider(window, doubt)):
			o.fail("state: paused", "%v, stopped %v", v, stops)
		case said(HolderCutOff) && !meets(cuts, wider(window, doubt)):
			o.fail("state: cut off", "%v, cut off %v", v, cuts)
		case !said(HolderPaused) && !unknown && certainly(stops, window):
			o.fail("state: not paused", "%v, stopped %v", v, stops)
		case said(HolderHealthy) && !unknown && certainly(cuts, window):
			o.fail("state: healthy", "%v, cut off %v", v, cuts)
		}
	}
}

func wider(i simulation.Interval, by int64) simulation.Interval {
	return simulation.Interval{From: i.From - by, To: i.To + by}
}

// certainly says that one of the intervals overlaps another one beyond doubt.
func certainly(all []simulation.Interval, i simulation.Interval) bool {
	return slices.ContainsFunc(all, func(x simulation.Interval) bool {
		return x.From+doubt <= i.To && x.To-doubt >= i.From && x.To-x.From > 2*doubt
	})
}

// stuck checks for a lock that no worker holds and no worker is granted although one asks all the time.
func (o *oracle) stuck() {
	if o.world.Jam == 0 {
		return
	}
	since, last := int64(0), int64(0)
	for _, stages := range o.record.faults {
		since = max(since, stages[len(stages)-1].To)
	}
	for _, a := range o.record.grants {
		last = max(last, a.answered)
		if a.granted() {
			since = max(since, a.holdEnd())
			if _, dead := o.record.killed[a.worker]; !dead && a.unfinished() {
				since = o.record.end // the worker may be at work
			}
		}
	}
	h := o.record.header
	limit := int64(h.Lease + h.Grace + LivenessGrace)
	possible := int64(0) // how long workers may have held the lock without learning of it
	for _, a := range o.record.grants {
		if !a.granted() && (h.Session || o.world.Loss > 0 || a.answered-a.asked > int64(h.Lease)*9/10) && a.answered > since {
			possible += a.answered - a.asked + int64(h.Lease)
		}
	}
	if f := o.results.of(Liveness); last-since > limit+100e6+possible && f.Verdict != Violation {
		o.fail("stuck, not noticed", "asked for from %d to %d, allowed are %d: %s", since, last, limit, factsText(f.Facts))
	}
}

// coverage checks which faults were real, and which holders or calls they hit.
func (o *oracle) coverage() {
	for _, f := range o.results.Faults {
		stages := make(map[history.Stage]history.Fault)
		for _, x := range o.record.faults[f.ID] {
			stages[x.Stage] = x
		}
		_, applied := stages[history.Applied]
		_, proven := stages[history.Proven]
		_, healed := stages[history.ProvenHealed]
		if f.Applied != applied || f.Proven != proven || f.Healed != healed {
			o.fail("fault stages", "%+v", f)
		}
		if !proven {
			if f.Counts() {
				o.fail("fault counted that was not proven", "%+v", f)
			}
			continue
		}
		during := simulation.Interval{From: stages[history.Applied].To, To: stages[history.Healed].From}
		if want := o.metWorker(f, during); f.Exercised != want {
			o.fail("exercised: "+f.Kind, "%+v, want %v", f, want)
		}
	}
}

// metWorker says whether a fault hit any worker or call, by the rules of docs/verdicts.md.
func (o *oracle) metWorker(f FaultCoverage, during simulation.Interval) bool {
	victim := f.Targets[0]
	worker := slices.Contains(o.record.header.Workers, victim)
	switch {
	case f.Kind == history.Kill && worker:
		return slices.ContainsFunc(o.record.grants, func(a *attempted) bool { return a.worker == victim && a.unfinished() })
	case f.Kind == history.Pause && worker:
		return o.heldFromOthers(victim, during) || f.Role == "waiter" && slices.ContainsFunc(o.record.grants, func(a *attempted) bool {
			return a.worker == victim && a.asked >= 0 && a.asked <= during.From && o.endOr(a.answered) >= during.To
		})
	case f.Kind == history.DelayWrite:
		return f.Exercised // the grant of the delayed write decides, which has its own test
	case f.Kind == history.Partition:
		return o.dropped(f.ID) > 0
	case f.Kind == history.Clock:
		return o.held("", during) || o.called(during)
	}
	return o.called(during)
}

// held says whether a worker, "" for any, held a lock in an interval.
func (o *oracle) held(worker string, during simulation.Interval) bool {
	return slices.ContainsFunc(o.record.grants, func(a *attempted) bool {
		return a.granted() && (worker == "" || a.worker == worker) && a.answered <= during.To && a.holdEnd() >= during.From
	})
}

// heldFromOthers says whether a worker held a lock in an interval that enough others wanted. Enough are as
// many as the lock permits, asking for it or holding it then or before the worker was back. Without other
// workers a hold is enough.
func (o *oracle) heldFromOthers(worker string, during simulation.Interval) bool {
	alone := len(o.record.header.Workers) <= 1
	return slices.ContainsFunc(o.record.grants, func(h *attempted) bool {
		if h.worker != worker || !h.granted() || h.answered > during.To || h.holdEnd() < during.From {
			return false
		}
		until := max(during.To, h.holdEnd())
		others := make(map[string]bool)
		for _, a := range o.record.grants {
			asked := a.asked >= 0 && a.asked <= until && o.endOr(a.answered) >= during.From
			holds := a.granted() && a.answered <= until && a.holdEnd() >= during.From
			if a.worker != worker && a.key == h.key && !(a.shared && h.shared) && (asked || holds) {
				others[a.worker] = true
			}
		}
		return alone || len(others) >= permits(o.record.header)
	})
}

// called says whether a call to the service was open in an interval.
func (o *oracle) called(during simulation.Interval) bool {
	open := func(from, to int64) bool { return from >= 0 && from <= during.To && o.endOr(to) >= during.From }
	return slices.ContainsFunc(o.record.grants, func(a *attempted) bool {
		calls := slices.Concat(a.releases, a.renewals)
		return open(a.asked, a.answered) || slices.ContainsFunc(calls, func(c operation) bool { return open(c.from, c.to) })
	})
}

// unfinished says that the last thing that a worker did under a grant did not end: it held the lock, or had a
// call open.
func (a *attempted) unfinished() bool {
	open := func(c operation) bool { return c.to < 0 }
	return a.answered < 0 || a.granted() && len(a.releases)+len(a.lost) == 0 ||
		slices.ContainsFunc(a.releases, open) || slices.ContainsFunc(a.renewals, open)
}

// endOr is the end of a call, or the end of the history for a call without one.
func (o *oracle) endOr(to int64) int64 {
	if to < 0 {
		return o.record.end
	}
	return to
}

func (o *oracle) dropped(fault string) int64 {
	n := int64(0)
	for _, x := range o.record.faults[fault] {
		if x.Dropped != nil {
			n = max(n, *x.Dropped)
		}
	}
	return n
}
