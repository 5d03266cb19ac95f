package hunt

import (
	"cmp"
	"slices"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/runs"
)

// Signature identifies a finding.
type Signature struct {
	Property checker.Property `json:"property"`
	// Cause is one of the checker.Cause constants; "" for a property whose violations have no cause.
	Cause string `json:"cause,omitempty"`
	// NotNotified: a holder without a known deadline was replaced, worked on, and got no loss notification.
	NotNotified bool `json:"not_notified,omitempty"`
	// DataLost: a fault had emptied a server's disk. Queues and counters do not survive that, so a violation
	// of the same property without data loss is a different finding.
	DataLost bool `json:"data_lost,omitempty"`
}

// key is equal for two forms of one finding. For example, an overlap and the stale write that follows from it
// have one cause and so one key.
func (s Signature) key() string {
	if s.Cause != "" && slices.Contains(consequences(), s.Property) {
		return s.Cause
	}
	if s.DataLost {
		return string(s.Property) + " " + history.Wipe
	}
	return string(s.Property)
}

func (s Signature) String() string {
	text := string(s.Property)
	if s.Cause != "" {
		text += ": " + s.Cause
	}
	if s.NotNotified {
		text += ", and the holder was not notified"
	}
	if s.DataLost {
		text += ", after a server had lost its data"
	}
	return text
}

// consequences are the properties that one cause can violate together, the most informative first.
func consequences() []checker.Property {
	return []checker.Property{checker.MutualExclusion, checker.NoStaleWrite, checker.NoLostUpdate}
}

// sighting is a finding that a trial showed.
type sighting struct {
	Signature
	What string `json:"what"`
	// Trial is the trial up to its first violation, at which the run ended.
	Trial Trial `json:"trial"`
}

type seen struct {
	findings []sighting
	// inherent are the causes of violations that no lock with leases can prevent.
	inherent []string
}

// findingsIn separates findings from what is inherent in leases. It uses only what the checkers reported.
func findingsIn(h history.Header, r checker.Results) seen {
	v := observer{header: h, results: r}
	if r.Verdict == checker.Broken { // the run failed, so nothing follows from it
		return v.seen
	}
	for _, p := range []checker.Property{checker.NoExpiredGrant, checker.NoWrongRelease, checker.NoWrongRenewal, checker.FencingOrder, checker.Liveness} {
		if f := r.Finding(p); f.Verdict == checker.Violation {
			onDisk := p == checker.FencingOrder || p == checker.Liveness
			v.add(Signature{Property: p, DataLost: onDisk && v.dataLost(f)}, example(f))
		}
	}
	v.overlaps()
	v.data()
	if f := r.Finding(checker.Linearizability); f.Verdict == checker.Violation && len(v.findings) == 0 {
		v.add(Signature{Property: checker.Linearizability}, example(f))
	}
	slices.Sort(v.inherent)
	v.inherent = slices.Compact(v.inherent)
	return v.seen
}

// isIn says whether a run shows the finding. The linearizability check, a second opinion, counts in every
// run.
func (s Signature) isIn(o runs.Outcome) bool {
	if s.Property == checker.Linearizability {
		return true
	}
	return slices.ContainsFunc(findingsIn(o.History.Header, o.Results).findings, func(f sighting) bool {
		return f.key() == s.key() && (f.NotNotified || !s.NotNotified)
	})
}

type observer struct {
	seen
	header  history.Header
	results checker.Results
}

// dataLost says whether a server's disk was emptied or lost power before at least one of the violations ended.
func (v *observer) dataLost(found checker.Finding) bool {
	return slices.ContainsFunc(v.results.Faults, func(f checker.FaultCoverage) bool {
		before := func(i checker.Incident) bool { return f.Begin < max(i.From, i.To) }
		return f.Applied && (f.Kind == history.Wipe || f.Kind == history.PowerLoss) && (len(found.Violations) == 0 || slices.ContainsFunc(found.Violations, before))
	})
}

func example(f checker.Finding) string {
	if len(f.Violations) == 0 {
		return f.Summary
	}
	return f.Violations[0].What
}

// add keeps the first sighting of each finding. A consequence of an expired grant, of a wrong release or of a
// wrong renewal is not a finding of its own.
func (v *observer) add(s Signature, what string) {
	explained := map[string]checker.Property{
		checker.CauseExpiredGrant: checker.NoExpiredGrant, checker.CauseReleasedByOther: checker.NoWrongRelease,
		checker.CauseRenewedByOther: checker.NoWrongRenewal,
	}
	is := func(p checker.Property) bool {
		return slices.ContainsFunc(v.findings, func(f sighting) bool { return f.Property == p })
	}
	if by, known := explained[s.Cause]; known && is(by) {
		return
	}
	if !slices.ContainsFunc(v.findings, func(f sighting) bool { return f.key() == s.key() }) {
		v.findings = append(v.findings, sighting{Signature: s, What: what})
	}
}

// vouches says whether holders know their deadline, so that they need no loss notification.
func (v *observer) vouches() bool { return v.header.Lease > 0 && !v.header.Session }

// overlaps judges overlapping holds of one lock. Use after expiry is inherent in leases, with one exception:
// a running holder that knows no deadline and was not notified.
func (v *observer) overlaps() {
	for _, o := range v.results.Finding(checker.MutualExclusion).Violations {
		s := Signature{Property: checker.MutualExclusion, Cause: o.Cause}
		switch {
		case o.Class != checker.UseAfterExpiry:
			v.add(s, o.What)
		case !v.vouches() && (o.Cause == checker.CauseCutOff || o.Cause == checker.CauseUnrenewed || !inherent(o.Cause)) && !v.notified(o):
			s.NotNotified = true
			v.add(s, o.What)
		default:
			v.inherent = append(v.inherent, cmp.Or(o.Cause, o.Class))
		}
	}
}

// notified says whether the earlier holder of an overlap learned that it had lost the lock before it released
// it.
func (v *observer) notified(o checker.Incident) bool {
	if len(o.Grants) == 0 {
		return true // the holder is unknown, and an unknown must not accuse the lock
	}
	i := slices.IndexFunc(v.results.Holds, func(h checker.Hold) bool { return h.Grant == o.Grants[0] })
	return i < 0 || v.results.Holds[i].Ended == checker.EndedByLost || v.results.Holds[i].Ended == checker.EndedByDeadline
}

// inherent says whether no lock with leases can prevent a cause.
func inherent(cause string) bool {
	i := slices.IndexFunc(checker.Causes(), func(c checker.Cause) bool { return c.Name == cause })
	return i >= 0 && checker.Causes()[i].Inherent
}

// data judges stale writes and lost updates. A consequence of an overlap is not a finding of its own. A
// holder that was cut off is judged by its overlap alone, because only the overlap says whether the holder
// was notified.
func (v *observer) data() {
	for _, p := range consequences()[1:] {
		f := v.results.Finding(p)
		if f.Verdict != checker.Violation {
			continue
		}
		for _, i := range f.Violations {
			s := Signature{Property: p, Cause: i.Cause}
			switch {
			case slices.ContainsFunc(v.findings, func(f sighting) bool { return f.key() == s.key() }):
			case inherent(i.Cause):
				v.inherent = append(v.inherent, i.Cause)
			default:
				v.add(s, i.What)
			}
		}
	}
}

// nearness scores from 0 to 1 how close a run came to a violation.
func nearness(h history.Header, r checker.Results, s seen) float64 {
	score := 0.9 * closeness(h, r.Holds)
	for _, sign := range []struct {
		is    bool
		worth float64
	}{
		{len(s.findings) > 0, 1}, {len(s.inherent) > 0, 0.6}, {r.Finding(checker.Linearizability).Verdict == checker.Undecided, 0.5},
		{r.Operations.GoneAtRelease > 0, 0.4}, {r.Operations.Lost > 0, 0.4}, {r.Operations.Unknown > 0, 0.3},
	} {
		if sign.is {
			score = max(score, sign.worth)
		}
	}
	if bound := h.Lease + h.Grace + checker.LivenessGrace; bound > 0 {
		score = max(score, min(0.8, 0.8*float64(r.Measures.LongestGap)/float64(bound)))
	}
	return score
}

// closeness scores the smallest gap between two holds of different workers, if the earlier hold did not end
// by a release: 1 for no gap, 0 for a gap of a lease or more.
func closeness(h history.Header, holds []checker.Hold) float64 {
	if h.Lease <= 0 {
		return 0
	}
	holds = slices.Clone(holds)
	slices.SortFunc(holds, func(a, b checker.Hold) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Start, b.Start)) })
	closest := 0.0
	for i := 1; i < len(holds); i++ {
		a, b := holds[i-1], holds[i]
		if a.Key != b.Key || a.Worker == b.Worker || a.Ended == checker.EndedByRelease && a.End < a.LeaseEnd {
			continue
		}
		closest = max(closest, 1-min(1, float64(max(0, b.Start-a.End))/float64(h.Lease)))
	}
	return closest
}
