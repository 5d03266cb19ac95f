package checker

import (
	"maps"
	"slices"
	"time"

	"lockcheck/history"
)

// DefaultPorcupineLimit is the time limit of porcupine if Options do not set one.
const DefaultPorcupineLimit = 30 * time.Second

// Options of a check. The zero value selects the defaults.
type Options struct {
	// PorcupineLimit limits the second opinion, for all keys together. Zero or less means
	// DefaultPorcupineLimit.
	PorcupineLimit time.Duration
	// NoHolds leaves Results.Holds empty. Only pictures need holds, and a history of millions of operations
	// has many.
	NoHolds bool
	// NearHolds keeps in Results.Holds only the holds that close-ups of listed incidents show. With it,
	// pictures of a history of millions of operations remain possible.
	NearHolds bool
}

// judged is a finding, and whether the verdict can rest on any finding at all.
type judged struct {
	Finding
	void bool // no verdict can: lockcheck has a bug, or a client said what is not true
}

// because sets the verdict of a property and adds the facts that it rests on.
func (j *judged) because(v Verdict, facts ...Fact) {
	j.Verdict, j.Facts = v, append(j.Facts, facts...)
}

// Check judges a history that the caller has validated. The history may be the prefix that a killed run
// leaves. Check is pure except for the time limit of porcupine.
func Check(h *history.History, opts Options) Results { return newRun(h).check(opts) }

// Checker judges a history event by event, for histories that do not fit in memory.
type Checker struct{ b *builder }

// New returns a Checker for a history without events yet. The table of names may be shared with its
// Validator.
func New(h history.Header, names *history.Names) *Checker { return &Checker{newBuilder(h, names)} }

// Add takes the next event, which the caller has validated.
func (c *Checker) Add(e *history.Event) { c.b.add(e) }

// Results judges the events that were added, as Check does; truncated is what the reader reported. The
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

// weigh computes the results of a run from its history and from porcupine's opinion.
func (r *run) weigh(o opinion, opts Options) Results {
	res := Results{Schema: Schema, Begin: r.begin, End: r.end}
	res.Clients = r.clients
	_, res.Interrupted = r.phases[history.PhaseInterrupted]
	res.Required = Required(r.header)
	void := false
	shared := newJudging(r, o, &res)
	for _, p := range properties() {
		if p.applies != nil && !p.applies(r.header) && !slices.Contains(r.header.Require, string(p.name)) {
			continue
		}
		found := p.judge(shared)
		found.Weigh(p.required(r.header), p.guarded && guarded(r.header), r.header.Require)
		void, res.Findings = void || found.void, append(res.Findings, found.Finding)
	}
	switch {
	case opts.NearHolds:
		res.Holds = r.holdsNearIncidents(res.Findings)
	case !opts.NoHolds:
		res.Holds = r.described()
	}
	res.Incidents = r.origins.total()
	res.Verdict = Conclude(res.Findings, void)
	return res
}

// Weigh says whether the finding counts for the verdict. It counts if its property is required, unless a
// guard makes its violations harmless, or if require names the property.
func (f *Finding) Weigh(required, guarded bool, require []string) {
	asked := slices.Contains(require, string(f.Property))
	f.Required = asked || required && !guarded
	f.Tolerated = guarded && !f.Required && f.Verdict == Violation
	// A property that was required by name, but that the lock does not have, was not shown.
	if f.Verdict == NotApplicable && asked {
		f.Verdict, f.Facts = Undecided, slices.Insert(f.Facts, 0, Fact{Kind: FactRequired})
	}
}

// Conclude derives the verdict from the findings. If they are void (lockcheck has a bug, or a client broke
// the protocol), nobody knows which findings are right. Otherwise a violation stands, whatever else went
// wrong. After that, a run that failed says nothing.
func Conclude(findings []Finding, void bool) Verdict {
	if void {
		return Broken
	}
	for _, v := range []Verdict{Violation, Broken, Undecided} {
		if slices.ContainsFunc(findings, func(f Finding) bool { return f.Required && f.Verdict == v }) {
			return v
		}
	}
	return Valid
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
