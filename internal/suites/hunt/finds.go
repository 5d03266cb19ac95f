package hunt

import (
	"cmp"
	"slices"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/runs"
)

// Signature is what finds are told apart by.
type Signature struct {
	Property checker.Property `json:"property"`
	// Cause is one of the checker.Cause constants; "" where causes are not looked for.
	Cause string `json:"cause,omitempty"`
	// NotNotified: a holder that was given no deadline worked on after its lease, and nobody
	// notified it.
	NotNotified bool `json:"not_notified,omitempty"`
	// DataLost: a disk of a server had been emptied. No queue and no counter outlives that; a find
	// of the same property without it is another one.
	DataLost bool `json:"data_lost,omitempty"`
}

// key is what finds have in common that are one: overlaps and what follows from them for the
// data have one cause.
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
		text += ", and it was not notified"
	}
	if s.DataLost {
		text += ", after a server had lost its data"
	}
	return text
}

// consequences are the properties that one cause violates together, the most telling first.
func consequences() []checker.Property {
	return []checker.Property{checker.MutualExclusion, checker.NoStaleWrite, checker.NoLostUpdate}
}

// sighting is a violation in a trial that is not inherent in leases.
type sighting struct {
	Signature
	what string
}

// seen is what a trial showed.
type seen struct {
	finds []sighting
	// inherent are the causes of violations that no lock with leases can prevent.
	inherent []string
}

// look tells what is a find from what is inherent, by the findings of the checkers alone.
func look(h history.Header, r checker.Results) seen {
	v := viewer{header: h, results: r}
	if r.Verdict == checker.Broken {
		return v.seen
	}
	for _, p := range []checker.Property{checker.NoExpiredGrant, checker.NoWrongRelease, checker.FencingOrder, checker.Liveness} {
		if f := r.Finding(p); f.Verdict == checker.Violation {
			kept := p == checker.FencingOrder || p == checker.Liveness // on disks
			v.add(Signature{Property: p, DataLost: kept && v.dataLost(f)}, firstOfAll(f))
		}
	}
	v.overlaps()
	v.data()
	if f := r.Finding(checker.Linearizability); f.Verdict == checker.Violation && len(v.finds) == 0 {
		v.add(Signature{Property: checker.Linearizability}, firstOfAll(f))
	}
	slices.Sort(v.inherent)
	v.inherent = slices.Compact(v.inherent)
	return v.seen
}

// isIn says whether a run shows this find, by its property, or its cause, and all that tells it
// from others. The second opinion on its own is looked for whatever else a run shows.
func (s Signature) isIn(o runs.Outcome) bool {
	if s.Property == checker.Linearizability {
		return true
	}
	return slices.ContainsFunc(look(o.History.Header, o.Results).finds, func(f sighting) bool {
		return f.key() == s.key() && (f.NotNotified || !s.NotNotified)
	})
}

type viewer struct {
	seen
	header  history.Header
	results checker.Results
}

// dataLost says whether a fault emptied the disk of a server before all that was found was over.
func (v *viewer) dataLost(found checker.Finding) bool {
	return slices.ContainsFunc(v.results.Faults, func(f checker.FaultCoverage) bool {
		before := func(i checker.Incident) bool { return f.Begin < max(i.From, i.To) }
		return f.Applied && f.Kind == history.Wipe && (len(found.Violations) == 0 || slices.ContainsFunc(found.Violations, before))
	})
}

func firstOfAll(f checker.Finding) string {
	if len(f.Violations) == 0 {
		return f.Summary
	}
	return f.Violations[0].What
}

// add keeps the first of each kind. What an expired grant or a wrong release led to is not
// another find.
func (v *viewer) add(s Signature, what string) {
	explained := map[string]checker.Property{
		checker.CauseExpiredGrant: checker.NoExpiredGrant, checker.CauseReleasedByOther: checker.NoWrongRelease,
	}
	is := func(p checker.Property) bool {
		return slices.ContainsFunc(v.finds, func(f sighting) bool { return f.Property == p })
	}
	if by, known := explained[s.Cause]; known && is(by) {
		return
	}
	if !slices.ContainsFunc(v.finds, func(f sighting) bool { return f.key() == s.key() }) {
		v.finds = append(v.finds, sighting{s, what})
	}
}

// vouches says that holders know a deadline: nobody need notify them of it.
func (v *viewer) vouches() bool { return v.header.Lease > 0 && !v.header.Session }

// overlaps looks at holders of a lock at the same time. That of a validity that is over is
// inherent, but for holders without a deadline that run and were not notified.
func (v *viewer) overlaps() {
	for _, o := range v.results.Finding(checker.MutualExclusion).Violations {
		s := Signature{Property: checker.MutualExclusion, Cause: o.Cause}
		switch {
		case o.Class != checker.UseAfterExpiry:
			v.add(s, o.What)
		case !v.vouches() && (o.Cause == checker.CauseCutOff || !inherent(o.Cause)) && !v.notified(o):
			s.NotNotified = true
			v.add(s, o.What)
		default:
			v.inherent = append(v.inherent, cmp.Or(o.Cause, o.Class))
		}
	}
}

// notified says whether the earlier holder of an overlap learned that its lock is gone before
// it gave it back.
func (v *viewer) notified(o checker.Incident) bool {
	if len(o.Grants) == 0 {
		return true // nobody knows
	}
	i := slices.IndexFunc(v.results.Holds, func(h checker.Hold) bool { return h.Grant == o.Grants[0] })
	return i < 0 || v.results.Holds[i].Ended == checker.EndedByLost || v.results.Holds[i].Ended == checker.EndedByDeadline
}

// inherent says of a cause whether no lock can prevent it.
func inherent(cause string) bool {
	i := slices.IndexFunc(checker.Causes(), func(c checker.Cause) bool { return c.Name == cause })
	return i >= 0 && checker.Causes()[i].Inherent
}

// data looks at what became of it. What follows from an overlap that is a find is no other one; a
// holder that was cut off is judged by its overlap alone, which tells whether it was notified.
func (v *viewer) data() {
	for _, p := range consequences()[1:] {
		f := v.results.Finding(p)
		if f.Verdict != checker.Violation {
			continue
		}
		for _, i := range f.Violations {
			s := Signature{Property: p, Cause: i.Cause}
			switch {
			case slices.ContainsFunc(v.finds, func(f sighting) bool { return f.key() == s.key() }):
			case inherent(i.Cause):
				v.inherent = append(v.inherent, i.Cause)
			default:
				v.add(s, i.What)
			}
		}
	}
}
