package checker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"lockcheck/history"
)

// DefaultPorcupineLimit is how long porcupine may take where Options do not say.
const DefaultPorcupineLimit = 30 * time.Second

// Options of a check. The zero value is fine.
type Options struct {
	// PorcupineLimit bounds the second opinion, for all keys together. Zero or
	// less is DefaultPorcupineLimit.
	PorcupineLimit time.Duration
	// NoHolds leaves Results.Holds empty: only pictures need them, and those of a
	// history of millions of operations are large.
	NoHolds bool
}

// judged is a finding with what it contributes to the sentence of a run.
type judged struct {
	Finding
	clause string // of a violation
	bug    bool   // of lockcheck itself: no verdict can rest on this run
}

// Check judges a history, which the caller has validated; the prefix that a
// killed run leaves is fine. It is pure but for the time limit of porcupine.
func Check(h *history.History, opts Options) Results { return newRun(h).check(opts) }

// Checker judges a history event by event, for those that do not fit in memory.
type Checker struct{ b *builder }

// New returns the Checker of a history that has not begun. The table of names may be
// shared with its Validator.
func New(h history.Header, names *history.Names) *Checker { return &Checker{newBuilder(h, names)} }

// Add takes the next event, which the caller has validated.
func (c *Checker) Add(e *history.Event) { c.b.add(e) }

// Results judges what was added, as Check does; truncated is that of the reader. The
// Checker must not be used afterwards.
func (c *Checker) Results(truncated int, opts Options) Results {
	return c.b.finish(truncated).check(opts)
}

func (r *run) check(opts Options) Results {
	if opts.PorcupineLimit <= 0 {
		opts.PorcupineLimit = DefaultPorcupineLimit
	}
	return r.weigh(secondOpinion(r, opts.PorcupineLimit), opts)
}

// weigh makes the results of a run of what porcupine says of it.
func (r *run) weigh(o opinion, opts Options) Results {
	res := Results{Schema: Schema, Begin: r.begin, End: r.end}
	if !opts.NoHolds {
		res.Holds = r.described()
	}
	_, res.Interrupted = r.phases[history.PhaseInterrupted]
	all := res.fill(r, o)
	res.Required = Required(r.header)
	for i := range all {
		all[i].Summary = summed(all[i].Summary, causedBy(all[i].Causes))
		require(&all[i], res.Required, r.header)
		res.Findings = append(res.Findings, all[i].Finding)
	}
	res.Verdict = verdict(all)
	res.Sentence = conclude(r, res, all)
	return res
}

// fill runs all checkers and returns their findings in the order of properties.
func (res *Results) fill(r *run, o opinion) []judged {
	wrong := wrongReleases(r) // first, for it explains some of the rest
	overlaps := findOverlaps(r)
	res.Operations = operationsOf(r)
	stale, fence := noStaleWrite(r, staleWrites(r))
	u := checkUpdates(r)
	evidence, coverage := faultEvidence(r)
	alive, orphans := liveness(r)
	res.Orphans, res.Notices = orphans, overlaps.notices
	res.Measures = r.measures(res.Operations)
	res.Measures.Told = overlaps.told
	res.Handovers, res.Measures.Handover = r.handovers()
	alive.Summary = summed(alive.Summary, res.Handovers.text(r.header.Lease), res.Notices.text())
	res.Overlaps, res.Fence, res.Updates, res.Faults = overlaps.summary, fence, u.UpdateSummary, coverage
	return []judged{
		mutualExclusion(r, overlaps),
		noDeadGrant(r, deadGrants(r)),
		noWrongRelease(r, wrong),
		stale,
		noLostUpdate(r, u),
		fencingOrder(r, o.tokens),
		linearizability(o),
		alive,
		evidence,
		assumptions(r, res.Operations, disagreements(r, o, overlaps, wrong, o.tokens)),
	}
}

// Properties returns all of them, in the order of findings.
func Properties() []Property {
	return []Property{
		MutualExclusion, NoExpiredGrant, NoWrongRelease, NoStaleWrite, NoLostUpdate, FencingOrder,
		Linearizability, Liveness, FaultEvidence, Assumptions,
	}
}

func guarded(h history.Header) bool { return h.Guard != "" && h.Guard != history.GuardNone }

// Required returns the properties that the verdict of a run rests on. A guard is
// there to make overlapping holders harmless, so with one they count only if
// the header says so (docs/verdicts.md).
func Required(h history.Header) []Property {
	var names []Property
	for _, p := range Properties() {
		if usual(p, h) || slices.Contains(h.Require, string(p)) {
			names = append(names, p)
		}
	}
	return names
}

func usual(p Property, h history.Header) bool {
	switch p {
	case MutualExclusion, NoExpiredGrant, NoWrongRelease:
		return !guarded(h) && !setOnly(h)
	case FencingOrder:
		return h.Tokens
	case Linearizability:
		return false
	case NoStaleWrite:
		return h.Imported == ""
	case Liveness:
		return h.Imported == ""
	}
	return true
}

// setOnly says of the history of others that it is about a set without a lock.
func setOnly(h history.Header) bool { return h.Imported != "" && h.Lock == "" }

func require(j *judged, names []Property, h history.Header) {
	j.Required = slices.Contains(names, j.Property)
	made := slices.Contains([]Property{MutualExclusion, NoExpiredGrant, NoWrongRelease}, j.Property)
	j.Tolerated = made && guarded(h) && !j.Required && j.Verdict == Violation
	// What someone asks for by name and the lock does not have was not shown.
	if j.Verdict == NotApplicable && slices.Contains(h.Require, string(j.Property)) {
		j.Verdict, j.Summary = Undecided, fmt.Sprintf("%s was required, but %s", j.Property, j.Summary)
	}
}

// verdict weighs the findings: where lockcheck is wrong, nobody knows of which of them; else
// a violation that happened stands, whatever went wrong besides; after that a run that
// failed says nothing.
func verdict(all []judged) Verdict {
	if slices.ContainsFunc(all, func(j judged) bool { return j.bug }) {
		return Broken
	}
	for _, v := range []Verdict{Violation, Broken, Undecided} {
		for _, j := range all {
			if j.Required && j.Verdict == v {
				return v
			}
		}
	}
	return Valid
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// conclude says the verdict in plain words, reasons first.
func conclude(r *run, res Results, all []judged) string {
	switch res.Verdict {
	case Violation:
		return sentence(append(clauses(all, true), tolerated(r, res, all)...)...)
	case Broken, Undecided:
		var reasons []string
		for _, j := range all {
			if j.Required && j.Verdict == res.Verdict && !slices.Contains(reasons, j.Summary) {
				reasons = append(reasons, j.Summary)
			}
		}
		// The most general reason is that of the assumptions, which come last.
		slices.Reverse(reasons)
		return sentence(string(res.Verdict) + ": " + strings.Join(reasons, "; "))
	}
	parts := []string{work(r, res)}
	if t := tolerated(r, res, all); len(t) > 0 {
		parts = append(t, work(r, res))
	}
	if len(res.Faults) > 0 {
		parts = append(parts, coverageClauses(res.Faults, r.header)...)
	}
	return sentence("no violation: " + strings.Join(parts, "; "))
}

// clauses returns those of the violated properties that count.
func clauses(all []judged, required bool) []string {
	var parts []string
	for _, j := range all {
		if j.Verdict == Violation && j.Required == required && j.clause != "" {
			parts = append(parts, j.clause)
		}
	}
	return parts
}

// tolerated says what the guard made harmless. That nobody is kept out goes without
// saying where there is no lock.
func tolerated(r *run, res Results, all []judged) []string {
	var parts []string
	for _, j := range all {
		if !j.Tolerated || r.header.Lock == history.LockNone {
			continue
		}
		if j.Property == MutualExclusion {
			parts = append(parts, count(res.Overlaps.Total(), "overlap", "overlaps"))
		} else {
			parts = append(parts, j.clause)
		}
	}
	if refused := res.Fence.refused(r.header.Guard); refused != "" {
		parts = append(parts, refused)
	}
	return parts
}

// work says what was done without harm.
func work(r *run, res Results) string {
	if r.header.Workload == history.WorkloadMutex {
		return count(len(r.holds), "hold", "holds") + " of the lock"
	}
	how := "under the lock"
	if r.header.Lock == history.LockNone {
		how = "without a lock"
	}
	return count(res.Updates.Acknowledged, "update", "updates") + " " + how + ", none lost"
}
