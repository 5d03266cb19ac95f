package checker

import (
	"maps"
	"slices"
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
	// NearHolds leaves in Results.Holds only those that close-ups of listed incidents show:
	// of a history of millions of operations, these can be drawn.
	NearHolds bool
}

// judged is a finding, and whether any verdict can rest on it.
type judged struct {
	Finding
	void bool // none can: lockcheck is wrong, or was told what is
}

// because makes a fact what the verdict of a property rests on.
func (j *judged) because(v Verdict, facts ...Fact) {
	j.Verdict, j.Facts = v, append(j.Facts, facts...)
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
	res.Clients = r.clients
	_, res.Interrupted = r.phases[history.PhaseInterrupted]
	res.Required = Required(r.header)
	void := false
	shared := newJudging(r, o, &res)
	for _, p := range properties() {
		if p.applies != nil && !p.applies(r.header) {
			continue
		}
		found := p.judge(shared)
		found.Weigh(p.required(r.header), p.guarded && guarded(r.header), r.header.Require)
		void, res.Findings = void || found.void, append(res.Findings, found.Finding)
	}
	switch {
	case opts.NearHolds:
		res.Holds = r.near(res.Findings)
	case !opts.NoHolds:
		res.Holds = r.described()
	}
	res.Incidents = r.origins.total()
	res.Verdict = Conclude(res.Findings, void)
	return res
}

// Weigh says what a finding counts for: by itself, with a guard there to make its violations harmless, or because
// its property is among those that somebody requires.
func (f *Finding) Weigh(required, guarded bool, require []string) {
	asked := slices.Contains(require, string(f.Property))
	f.Required = asked || required && !guarded
	f.Tolerated = guarded && !f.Required && f.Verdict == Violation
	// What someone asks for by name and the lock does not have was not shown.
	if f.Verdict == NotApplicable && asked {
		f.Verdict, f.Facts = Undecided, slices.Insert(f.Facts, 0, Fact{Kind: FactRequired})
	}
}

// Conclude weighs findings. If they are void, because lockcheck is wrong or a client was not what it is to be, nobody
// knows which of them are right; else a violation that happened stands, whatever went wrong besides; after that a run
// that failed says nothing.
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
