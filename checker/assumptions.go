package checker

import (
	"fmt"
	"slices"
	"strings"

	"lockcheck/history"
)

// assumptions judges whether the run did its work at all: a run that did not is
// neither valid nor a violation. Disagreements between checkers are bugs in
// lockcheck and break it too, even if something was violated, and so does a client that broke
// the protocol: what it said before may be as wrong.
func assumptions(r *run, ops Operations, disagreements []string) judged {
	j := judged{Finding: Finding{Property: Assumptions, Verdict: Valid}, void: len(disagreements)+len(r.clientFaults) > 0}
	broken, undecided := brokenBecause(r, disagreements), undecidedBecause(r, ops)
	switch {
	case len(broken) > 0:
		j.Verdict, j.Summary = Broken, strings.Join(broken, "; ")
	case len(undecided) > 0:
		j.Verdict, j.Summary = Undecided, strings.Join(undecided, "; ")
	default:
		j.Summary = "the run is complete and did its work"
	}
	if r.cutOff > 0 {
		j.Summary += fmt.Sprintf(" (line %d of the history was cut off and is left out)", r.cutOff)
	}
	return j
}

func brokenBecause(r *run, disagreements []string) []string {
	var reasons []string
	if e, ok := r.phases[history.PhaseBroken]; ok {
		reasons = append(reasons, because("the run failed", e.Error))
	} else if !r.ended() {
		reasons = append(reasons, "the history ends before the run did")
	}
	if _, known := r.phases[history.PhaseBroken]; !known {
		reasons = append(reasons, r.clientFaults...)
	}
	for _, name := range r.header.Require {
		if !slices.Contains(Properties(), Property(name)) {
			reasons = append(reasons, fmt.Sprintf("there is no property %q to require", name))
		}
	}
	for _, d := range disagreements {
		reasons = append(reasons, "this is a bug in lockcheck, please report it: "+d)
	}
	return reasons
}

// ended says whether the run came to an end that it knew of.
func (r *run) ended() bool {
	_, interrupted := r.phases[history.PhaseInterrupted]
	return r.completed() || interrupted
}

// completed says whether the run came to the end that was planned.
func (r *run) completed() bool {
	_, complete := r.phases[history.PhaseEnd]
	return complete
}

func undecidedBecause(r *run, ops Operations) []string {
	if _, interrupted := r.phases[history.PhaseInterrupted]; interrupted {
		return []string{"the run was interrupted"}
	}
	done, one, many := ops.Acknowledged, "update was acknowledged", "updates were acknowledged"
	if history.WritesNothing(r.header.Workload) {
		done, one, many = ops.Released, "hold was released", "holds were released"
	}
	if least := max(1, r.header.MinOps); done < least {
		return []string{fmt.Sprintf("only %s, %d are needed%s", count(done, one, many), least, r.refusals(ops))}
	}
	if r.header.Parameters[ignoreFailedAcquire] == "true" && !r.ignoredAny() {
		return []string{"--" + ignoreFailedAcquire + " changed nothing: no worker used the data after a failed acquire"}
	}
	return nil
}

// ignoreFailedAcquire is the parameter of runs in which workers go on after a failed acquire.
const ignoreFailedAcquire = "ignore-failed-acquire"

// ignoredAny says whether a worker that had been refused the lock used the data all the same.
func (r *run) ignoredAny() bool {
	for k := range r.dataKeys {
		if slices.ContainsFunc(k.accesses, func(e access) bool { return r.unlocked(r.attempt(e.grant)) }) {
			return true
		}
	}
	return false
}

// refusals says what kept those who were granted the lock from their work, as far as the resource did.
func (r *run) refusals(ops Operations) string {
	refused := make(map[grant]bool)
	for k := range r.dataKeys {
		for _, e := range k.accesses {
			if e.refused && !e.write {
				refused[e.grant] = true
			}
		}
	}
	if len(refused) == 0 {
		return ""
	}
	return fmt.Sprintf("; the resource refused reads in %s (guard %s), although the lock was granted: %s", count(len(refused), "hold", "holds"), r.header.Guard, count(ops.Released, "release succeeded", "releases succeeded"))
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
