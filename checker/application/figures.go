package application

import (
	"cmp"

	"lockcheck/checker"
	"lockcheck/history"
)

// summary counts what happened.
func (r *run) summary() *checker.ApplicationSummary {
	holds, _ := r.countHolds()
	s := &checker.ApplicationSummary{
		Invariants: r.invariantSummaries(), Replicas: []checker.ReplicaSummary{}, Holds: holds, Effects: int64(len(r.effects)), Accepted: r.acceptedWork(),
	}
	done := make(map[string]bool)
	for _, d := range r.effects {
		if done[d.id] {
			s.Repeated++
		}
		done[d.id] = true
	}
	for _, p := range r.replicas {
		of := r.summaryOf(p)
		s.Reads, s.Writes = s.Reads+of.Reads, s.Writes+of.Writes
		s.Restarts += max(0, of.Started-1)
		s.Replicas = append(s.Replicas, of)
	}
	return s
}

func (r *run) summaryOf(p *replica) checker.ReplicaSummary {
	s := checker.ReplicaSummary{Name: p.name}
	for _, e := range p.lines {
		switch e.F {
		case history.Started:
			s.Started++
		case history.Ended:
			s.Ended++
		case history.Did:
			s.Effects++
		}
	}
	for _, h := range p.holds {
		if !h.again {
			s.Holds++
		}
	}
	for _, e := range p.used {
		switch {
		case e.F == history.Read:
			s.Reads++
		case appends(e) && !r.says(history.Did):
			s.Effects++
		default:
			s.Writes++
		}
	}
	for i := range r.faults {
		if f := &r.faults[i]; f.Applied && f.Does(history.Ends) && f.Involves(p.name) {
			s.Killed++
		}
	}
	return s
}

func (r *run) invariantSummaries() []checker.InvariantSummary {
	all := make([]checker.InvariantSummary, 0, len(r.app.Invariants))
	for _, i := range r.app.Invariants {
		all = append(all, r.invariantSummary(i))
	}
	return all
}

// invariantSummary counts the answers to a question. Of those of kept only the last one is compared with anything.
func (r *run) invariantSummary(i history.Invariant) checker.InvariantSummary {
	s := checker.InvariantSummary{Name: i.Name, Kind: i.Kind, Said: mostError(r.answers[i.Name])}
	last := cmp.Or(r.phase(history.PhaseReady), r.begin)
	for _, e := range r.answers[i.Name] {
		s.Asked++
		switch e.Type {
		case history.OK:
			s.Held++
		case history.Fail:
			s.Violated++
		default:
			s.Unknown++
			continue
		}
		if gap := (checker.Gap{From: last, To: e.Time}); gap.Length() > s.Gap.Length() {
			s.Gap = gap
		}
		last = e.From
	}
	w := watch{run: r, Invariant: i, answers: r.answers[i.Name]}
	if i.Kind == history.InvariantKept {
		if _, missing := w.lacking(); len(missing) > 0 {
			s.Held, s.Violated = s.Held-1, 1
		}
	}
	if s.Gap.Length() > 0 {
		s.Gap.Faults = ids(r.inForce(s.Gap.From, s.Gap.To))
	}
	return s
}
