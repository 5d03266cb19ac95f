package application

import (
	"cmp"
	"slices"

	"lockcheck/checker"
	"lockcheck/history"
)

// roleHolder is the role of a fault that is aimed at whoever holds a key.
const roleHolder = "holder"

// faultEvidence judges whether what was asked for was really done to the application or to what it needs.
func faultEvidence(r *run) checker.Finding {
	f := checker.Finding{Property: checker.FaultEvidence}
	_, complete := r.phases[history.PhaseEnd]
	var unhealed []string
	for _, c := range r.faults {
		if (c.Applied && complete || c.Unhealed()) && !c.Healed {
			unhealed = append(unhealed, c.ID)
		}
	}
	asked, missing := checker.AskedKinds(r.header), r.missingKinds()
	switch {
	case len(unhealed) > 0:
		because(&f, checker.Broken, checker.Fact{Kind: checker.FactNotProvenHealed, Faults: unhealed})
	case len(missing) > 0:
		because(&f, checker.Undecided, missing...)
	case len(asked) == 0 && len(r.faults) == 0:
		because(&f, checker.NotApplicable, checker.Fact{Kind: checker.FactNoFaults})
	default:
		because(&f, checker.Valid, checker.Fact{Kind: checker.FactFaultsCovered})
	}
	return f
}

// missingKinds says of each kind asked for of which no fault counts what those of it missed.
func (r *run) missingKinds() []checker.Fact {
	var missing []checker.Fact
	for _, kind := range checker.AskedKinds(r.header) {
		var applied, proven, counted, noPacket bool
		for i := range r.faults {
			if f := &r.faults[i]; f.Kind == kind && f.Applied {
				c := r.covered(f)
				applied, proven, counted = true, proven || f.Proven, counted || c.Counts()
				met, why := f.Met()
				noPacket = noPacket || !met && c.Missed == why
			}
		}
		miss := checker.FactMissedMoment
		switch {
		case counted:
			continue
		case !applied:
			miss = checker.FactNeverApplied
		case !proven:
			miss = checker.FactNeverProven
		case noPacket:
			if miss = checker.FactMissedPackets; history.Does(kind, history.Impairs) {
				miss = checker.FactMissedDisk
			}
		}
		missing = append(missing, checker.Fact{Kind: miss, FaultKind: kind})
	}
	return missing
}

// coverage says of each fault whether it was real and mattered.
func (r *run) coverage() []checker.FaultCoverage {
	all := []checker.FaultCoverage{}
	for i := range r.faults {
		all = append(all, r.covered(&r.faults[i]))
	}
	return all
}

// covered fills in whether a fault was exercised. What a server was doing is not recorded, so a proven fault of a server
// counts. A fault of the network must have met a packet, and one of a disk an operation. A fault aimed at a holder must
// have hit it in its hold. Where replicas say what they do, a fault of replicas must have hit one that did something.
func (r *run) covered(f *fault) checker.FaultCoverage {
	c := f.FaultCoverage
	if !f.Proven || !f.Applied {
		c.Missed = cmp.Or(c.Missed, checker.MissUnproven)
		return c
	}
	var missed checker.MissReason
	if (f.Does(history.Cuts) || f.Does(history.Disturbs) || f.Does(history.Misleads) || f.Does(history.Impairs)) && !f.Does(history.Ends) {
		_, missed = f.Met()
	}
	if len(history.EffectsOf(f.Kind)) == 0 {
		missed = checker.MissKind
	}
	if missed == "" && (f.Moment == history.MomentHolding || f.Role == roleHolder) && !r.metHolder(f) {
		missed = checker.MissNoHolder
	}
	if missed == "" && r.hitsIdle(f) {
		missed = checker.MissNoWorker
	}
	c.Exercised, c.Missed = missed == "", cmp.Or(c.Missed, missed)
	return c
}

// hitsIdle reports whether all targets of a fault are replicas that did nothing from its beginning to its end, by their
// lines and their requests to the resource.
func (r *run) hitsIdle(f *fault) bool {
	if !r.says(history.Holding) && !r.doesWork() {
		return false
	}
	return !slices.ContainsFunc(f.Targets, func(name string) bool {
		p := r.replica(name)
		return p == nil || len(p.used) > 0 || slices.ContainsFunc(p.lines, func(e *history.Event) bool { return e.F == history.Holding || e.F == history.Did })
	})
}

// metHolder says whether the replica that a fault waited for, or one of its targets, held a key when it took effect.
func (r *run) metHolder(f *fault) bool {
	whom := f.Targets
	if f.Actor != "" {
		whom = []string{f.Actor}
	}
	return slices.ContainsFunc(whom, func(name string) bool {
		p := r.replica(name)
		return p != nil && slices.ContainsFunc(p.holds, func(h *hold) bool { return h.metBy(f) })
	})
}
