package checker

import (
	"slices"

	"lockcheck/history"
)

// assumptions judges whether the run did its work at all: a run that did not is neither valid nor a
// violation. Disagreements between checkers are bugs in lockcheck and make the run Broken, even if something
// was violated. So does a client that broke the protocol, because what it said before may be wrong as well.
func assumptions(r *run, ops Operations, disagreements []Fact) judged {
	j := judged{Finding: Finding{Property: Assumptions}, void: len(disagreements)+len(r.clientFaults) > 0}
	broken, undecided := brokenBecause(r, disagreements), undecidedBecause(r, ops)
	switch {
	case len(broken) > 0:
		j.because(Broken, broken...)
	case len(undecided) > 0:
		j.because(Undecided, undecided...)
	default:
		j.because(Valid, Fact{Kind: FactComplete})
	}
	if r.cutOff > 0 {
		j.because(j.Verdict, Fact{Kind: FactCutOff, N: int64(r.cutOff)})
	}
	return j
}

func brokenBecause(r *run, disagreements []Fact) []Fact {
	var reasons []Fact
	failed, known := r.phases[history.PhaseBroken]
	switch {
	case known:
		reasons = append(reasons, Fact{Kind: FactRunFailed, Said: failed.Error})
	case !r.ended():
		reasons = append(reasons, Fact{Kind: FactHistoryEnds})
	}
	if !known {
		for _, said := range r.clientFaults {
			reasons = append(reasons, Fact{Kind: FactClientFault, Said: said})
		}
	}
	for _, name := range r.header.Require {
		if !slices.Contains(Properties(), Property(name)) {
			reasons = append(reasons, Fact{Kind: FactUnknownProperty, Said: name})
		}
	}
	return append(reasons, disagreements...)
}

// ended says whether the run ended in an orderly way: as planned or by an interruption that it recorded.
func (r *run) ended() bool {
	_, interrupted := r.phases[history.PhaseInterrupted]
	return r.completed() || interrupted
}

// completed says whether the run reached its planned end.
func (r *run) completed() bool {
	_, complete := r.phases[history.PhaseEnd]
	return complete
}

func undecidedBecause(r *run, ops Operations) []Fact {
	if _, interrupted := r.phases[history.PhaseInterrupted]; interrupted {
		return []Fact{{Kind: FactInterrupted}}
	}
	done := ops.Acknowledged
	if history.WritesNothing(r.header.Workload) {
		done = ops.Released
	}
	if least := max(1, r.header.MinOps); done < least {
		return append([]Fact{{Kind: FactTooFew, N: done, Of: least}}, r.refusals(ops)...)
	}
	if r.header.Parameters[IgnoreFailedAcquire] == "true" && !r.ignoredAny() {
		return []Fact{{Kind: FactIgnoredNothing}}
	}
	return nil
}

// IgnoreFailedAcquire is the parameter of runs whose workers go on after a failed acquire.
const IgnoreFailedAcquire = "ignore-failed-acquire"

// ignoredAny says whether any worker that had not been granted the lock used the data all the same.
func (r *run) ignoredAny() bool {
	for k := range r.dataKeys {
		if slices.ContainsFunc(k.accesses, func(e access) bool { return r.unlocked(r.attempt(e.grant)) }) {
			return true
		}
	}
	return false
}

// refusals counts the holders whose reads the resource refused, which kept them from their work.
func (r *run) refusals(ops Operations) []Fact {
	refused := make(map[grant]bool)
	for k := range r.dataKeys {
		for _, e := range k.accesses {
			if e.refused && !e.write {
				refused[e.grant] = true
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return []Fact{{Kind: FactReadsRefused, N: int64(len(refused)), Of: ops.Released}}
}

// operationsOf counts what the workers did.
func operationsOf(r *run) Operations {
	var ops Operations
	for a := range r.attempts.each {
		ops.acquire(a)
		if a.released() != nil {
			ops.Released++
		}
	}
	for _, h := range r.holds {
		switch h.ended {
		case atRelease:
			ops.GoneAtRelease++
		case byNotification:
			ops.Lost++
		}
	}
	for k := range r.dataKeys {
		ops.Acknowledged += k.acknowledged()
	}
	return ops
}

func (o *Operations) acquire(a *attempt) {
	switch c := &a.acquire; {
	case !a.asked:
	case c.ok():
		o.Acquired++
	case c.unknown():
		o.Unknown++
	case a.busy:
		o.Busy++
	default:
		o.AcquireFailed++
	}
}
