// Package present turns the findings of the checkers into words. Each kind of fact has one sentence, which
// all reports share.
package present

import (
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/history"
)

// Render fills the text fields of results. Results of an older schema have texts but no facts, and must not
// be rendered.
func Render(r *checker.Results, h history.Header) {
	p := presenter{results: r, header: h}
	for i := range r.Faults {
		r.Faults[i].Reason = missed(r.Faults[i])
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		for j := range f.Violations {
			v := &f.Violations[j]
			v.What, v.Why = p.incident(*v), p.why(*v)
		}
		f.Summary = p.summary(*f)
	}
	r.Sentence = sentence(p.conclusion())
}

// presenter has the context that sentences need besides their fact.
type presenter struct {
	results *checker.Results
	header  history.Header
}

// summary says what the verdict of a property rests on.
func (p presenter) summary(f checker.Finding) string {
	prefix, facts := "", f.Facts
	if len(facts) > 0 && facts[0].Kind == checker.FactRequired {
		prefix, facts = string(f.Property)+" was required, but ", facts[1:]
	}
	return joined(prefix+p.facts(facts), causes(f.Causes))
}

func (p presenter) facts(facts []checker.Fact) string {
	var all []string
	for _, f := range facts {
		all = append(all, p.fact(f))
	}
	return joined(all...)
}

// conclusion says why the verdict of a run is what it is.
func (p presenter) conclusion() string {
	switch p.results.Verdict {
	case checker.Violation:
		text := joined(append(p.violated(), p.tolerated()...)...)
		if p.results.Interrupted {
			text = joined(text, "the run was interrupted")
		}
		if n := p.results.Incidents; n > 0 && text != "" {
			text = count(n, "incident", "incidents") + ": " + text
		}
		return text
	case checker.Broken, checker.Undecided:
		var reasons []string
		// The assumptions come last in the findings, and are the most general reason. That reason goes first.
		for _, f := range slices.Backward(p.results.Findings) {
			if f.Required && f.Verdict == p.results.Verdict && !p.incomplete(f) && !slices.Contains(reasons, f.Summary) {
				reasons = append(reasons, f.Summary)
			}
		}
		return joined(reasons...)
	}
	tolerated, done := p.tolerated(), append([]string{p.work()}, p.coverage()...)
	if p.header.Application != nil {
		return "no violation: " + joined(append(done, tolerated...)...)
	}
	return "no violation: " + joined(append(tolerated, done...)...)
}

// incomplete reports whether a property is undecided only because the run was interrupted before its faults, its updates
// or its last reads. The interruption is reported once, and is no flaw of the run. A property that was required by name and
// that the lock lacks is not incomplete.
func (p presenter) incomplete(f checker.Finding) bool {
	asked := len(f.Facts) > 0 && f.Facts[0].Kind == checker.FactRequired
	return p.results.Interrupted && f.Verdict == checker.Undecided && f.Property != checker.Assumptions && !asked
}

// violated says how each required property was violated.
func (p presenter) violated() []string {
	var parts []string
	for _, f := range p.results.Findings {
		if f.Required && f.Verdict == checker.Violation {
			parts = append(parts, p.violation(f))
		}
	}
	return parts
}

// violation says how a property was violated, without the figures of its summary.
func (p presenter) violation(f checker.Finding) string {
	switch {
	case p.header.Application != nil:
		return p.violatedApplication(f)
	case f.Property == checker.MutualExclusion:
		return heldAtOnce(f.Total, p.header)
	case f.Property == checker.NoLostUpdate:
		return damage(p.results.Updates)
	case f.Property == checker.Liveness && len(f.Facts) > 0:
		return p.stuck(f.Facts[0])
	case f.Property == checker.Linearizability && len(f.Facts) > 0:
		return p.fact(f.Facts[0])
	}
	return p.facts(f.Facts)
}

// tolerated says what a guard made harmless, and of an application what every lease allows. Without a lock,
// violations are expected and not mentioned.
func (p presenter) tolerated() []string {
	var parts []string
	if p.header.Application != nil {
		for _, f := range p.results.Findings {
			if f.Tolerated {
				parts = append(parts, p.violation(f))
			}
		}
		if len(parts) == 0 {
			return nil
		}
		return []string{"not counted, because every lease allows it: " + strings.Join(parts, ", ")}
	}
	for _, f := range p.results.Findings {
		switch {
		case !f.Tolerated || p.header.Lock == history.LockNone:
		case f.Property == checker.MutualExclusion:
			parts = append(parts, count(p.results.Overlaps.Total(), "overlap", "overlaps"))
		default:
			parts = append(parts, p.violation(f))
		}
	}
	return append(parts, refused(p.results.Fence, p.header.Guard))
}

// refused says what a guard refused; "" for nothing.
func refused(f checker.FenceSummary, guard string) string {
	var what []string
	if n := f.RefusedReads + f.RefusedWrites - f.Unanswered; n > 0 {
		what = append(what, count(n, "stale access", "stale accesses"))
	}
	if n := f.Unanswered; n > 0 {
		what = append(what, count(n, "access", "accesses")+" because the lock service did not answer")
	}
	if len(what) == 0 {
		return ""
	}
	names := map[string]string{
		history.GuardVersions: "version check", history.GuardMatch: "match of the last reader", history.GuardIdempotency: "idempotency key",
		history.GuardFenceWrites: "fence on writes", history.GuardAsk: "check with the service",
	}
	name := guard
	if long, is := names[guard]; is {
		name = long
	}
	return "the " + name + " refused " + strings.Join(what, " and ")
}

// work says how much work was done without damage.
func (p presenter) work() string {
	if p.header.Application != nil {
		return p.watched()
	}
	if history.WritesNothing(p.header.Workload) {
		return count(p.results.Measures.Work, "hold", "holds") + " of the lock"
	}
	how := "under the lock"
	if p.header.Lock == history.LockNone {
		how = "without a lock"
	}
	if p.header.Workload == history.WorkloadJobs {
		return count(p.results.Updates.Acknowledged, "job", "jobs") + " " + how + ", none done twice"
	}
	return count(p.results.Updates.Acknowledged, "update", "updates") + " " + how + ", none lost"
}
