package application

import (
	"slices"

	"lockcheck/checker"
	"lockcheck/history"
)

// assumptions judges whether the run did its work at all: one that did not is neither valid nor a violation.
func assumptions(r *run) checker.Finding {
	f := checker.Finding{Property: checker.Assumptions}
	broken, undecided := r.brokenBecause(), r.undecidedBecause()
	switch {
	case len(broken) > 0:
		because(&f, checker.Broken, broken...)
	case len(undecided) > 0:
		because(&f, checker.Undecided, undecided...)
	default:
		because(&f, checker.Valid, checker.Fact{Kind: checker.FactComplete}, checker.Fact{Kind: FactWorked})
	}
	if r.cutOff > 0 {
		because(&f, f.Verdict, checker.Fact{Kind: checker.FactCutOff, N: int64(r.cutOff)})
	}
	return f
}

func (r *run) brokenBecause() []checker.Fact {
	var reasons []checker.Fact
	_, complete := r.phases[history.PhaseEnd]
	_, interrupted := r.phases[history.PhaseInterrupted]
	if failed := r.phases[history.PhaseBroken]; failed != nil {
		reasons = append(reasons, checker.Fact{Kind: checker.FactRunFailed, Said: failed.Error})
	} else if !complete && !interrupted {
		reasons = append(reasons, checker.Fact{Kind: checker.FactHistoryEnds})
	}
	for _, name := range r.header.Require {
		if !slices.Contains(Properties(), checker.Property(name)) {
			reasons = append(reasons, checker.Fact{Kind: checker.FactUnknownProperty, Said: name})
		}
	}
	return reasons
}

func (r *run) undecidedBecause() []checker.Fact {
	if _, interrupted := r.phases[history.PhaseInterrupted]; interrupted {
		return []checker.Fact{{Kind: checker.FactInterrupted}}
	}
	var reasons []checker.Fact
	if !r.judgesAnything() {
		reasons = append(reasons, checker.Fact{Kind: FactNothingJudged})
	}
	if least := max(1, r.header.MinOps); !r.worked(least) {
		reasons = append(reasons, checker.Fact{Kind: FactNoWork, N: r.shownWork(), Of: least})
	}
	if n := r.startedReplicas(); n < 2 {
		reasons = append(reasons, checker.Fact{Kind: FactFewReplicas, N: n})
	}
	for _, p := range r.replicas {
		reasons = append(reasons, linesLost(p.name, p.lines)...)
	}
	reasons = append(reasons, linesLost(history.Load, r.load)...)
	return append(reasons, r.unansweredWork()...)
}

// linesLost says that lines of a program are missing, and why; nil if none are. A missing line of a replica may hide a
// violation; a missing line of the load may hide accepted work that was not kept.
func linesLost(program string, lines []*history.Event) []checker.Fact {
	i := slices.IndexFunc(lines, func(e *history.Event) bool { return e.Error != "" })
	if i < 0 {
		return nil
	}
	return []checker.Fact{{Kind: FactLinesLost, Workers: []string{program}, Said: lines[i].Error}}
}

// unansweredWork says that the question for work was never answered. Such a question is probably wrong. It is reported even
// if printed lines show work, because nothing else would point to it.
func (r *run) unansweredWork() []checker.Fact {
	var reasons []checker.Fact
	for _, i := range r.app.Invariants {
		if answers := r.answers[i.Name]; i.Kind == history.InvariantWork && !slices.ContainsFunc(answers, answered) {
			reasons = append(reasons, checker.Fact{Kind: FactWorkUnanswered, N: int64(len(answers)), Said: mostError(answers)})
		}
	}
	return reasons
}

// judgesAnything says whether the app file gives anything to judge.
func (r *run) judgesAnything() bool {
	return r.says(history.Holding) || r.doesWork() ||
		slices.ContainsFunc(r.app.Invariants, func(i history.Invariant) bool { return history.Judged(i.Kind) })
}

// shownWork counts the effects that replicas printed or appended in the resource, and other writes there.
func (r *run) shownWork() int64 {
	n := int64(len(r.effects))
	for _, p := range r.replicas {
		for _, e := range p.used {
			if e.F == history.Write && (r.says(history.Did) || !appends(e)) { // appended lines are among the effects otherwise
				n++
			}
		}
	}
	return n
}

// worked reports whether anything shows that the application did something: effects, accepted work that an invariant
// watches, or an answer that changed.
func (r *run) worked(least int64) bool {
	return r.shownWork() >= least || len(r.accepted) > 0 && r.watchedWork() || r.workChanged()
}

// watchedWork says whether an invariant was answered that tells what became of accepted work.
func (r *run) watchedWork() bool {
	return slices.ContainsFunc(r.app.Invariants, func(i history.Invariant) bool {
		return (i.Kind == history.InvariantKept || i.Kind == history.InvariantOnce) && slices.ContainsFunc(r.answers[i.Name], answered)
	})
}

// workChanged says whether an answer of InvariantWork differs from that at the beginning of the work.
func (r *run) workChanged() bool {
	ready := r.phase(history.PhaseReady)
	for _, i := range r.app.Invariants {
		if i.Kind != history.InvariantWork {
			continue
		}
		var first *history.Event
		for _, e := range r.answers[i.Name] {
			switch {
			case !answered(e):
			case first == nil || e.Time < ready:
				first = e
			case e.Answer.Count != first.Answer.Count || !slices.Equal(e.Answer.Rows, first.Answer.Rows):
				return true
			}
		}
	}
	return false
}

func (r *run) startedReplicas() int64 {
	n := int64(0)
	for _, p := range r.replicas {
		if slices.ContainsFunc(p.lines, func(e *history.Event) bool { return e.F == history.Started }) {
			n++
		}
	}
	return n
}
