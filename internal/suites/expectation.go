package suites

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/checker/application"
	"lockcheck/reports"
)

// Expectation is what a run must show, and what that must rest on.
type Expectation struct {
	// Verdict of the run; "" if only the properties matter.
	Verdict checker.Verdict `yaml:"verdict,omitempty"`
	// Violated lists properties that must be among the violated ones.
	Violated []checker.Property `yaml:"violated,omitempty"`
	// Cause is one of the checker.Cause constants. At least one violation of a property in Violated must have
	// this cause; "" for any cause.
	Cause string `yaml:"cause,omitempty"`
	// Invariants are those of an application that must be among the violated ones, by name.
	Invariants []string `yaml:"invariants,omitempty,flow"`
	// Kept lists properties that must be valid.
	Kept []checker.Property `yaml:"kept,omitempty"`
	// MayViolate lists properties that may be violated or not.
	MayViolate []checker.Property `yaml:"may-violate,omitempty"`
	// DoubleGrant asks for an overlap in which the service itself granted the lock twice. An overlap by a
	// client that went on beyond its validity is not enough.
	DoubleGrant bool `yaml:"double-grant,omitempty"`
	// Earlier is what the earlier holder of an overlap must have been: healthy, paused or cut off; "" for
	// any. With DoubleGrant, the same overlap must be a double grant.
	Earlier string `yaml:"earlier,omitempty"`
	// Notified requires that a worker was notified of the loss of its lock, and NeverNotified that no worker
	// was.
	Notified      bool `yaml:"notified,omitempty"`
	NeverNotified bool `yaml:"never-notified,omitempty"`
	// OrphanedFor is the least time for which the lock of a killed holder must have stayed with it,
	// FreeWithin the greatest.
	OrphanedFor time.Duration `yaml:"orphaned-for,omitempty"`
	FreeWithin  time.Duration `yaml:"free-within,omitempty"`
	// Figures has the bounds of figures.
	Figures Bounds `yaml:"figures,omitempty"`
	// PublishedLoss is the share of updates, from 0 to 1, that others saw lost. It is compared with the
	// interval of all runs together, because one run is too short for that.
	PublishedLoss float64 `yaml:"published-loss,omitempty"`
}

// Missed says why results are not as expected; "" if they are. A run that failed, or whose faults were not in
// force, is never as expected unless that was expected: what it shows may have another cause.
func (e Expectation) Missed(r checker.Results) string {
	if e.Verdict != "" && r.Verdict != e.Verdict {
		return fmt.Sprintf("the verdict is %s, not %s", r.Verdict, e.Verdict)
	}
	if e.Verdict != checker.Undecided && e.Verdict != checker.Broken {
		if missed := missedFoundation(r); missed != "" {
			return missed
		}
	}
	return cmp.Or(
		e.missedInvariant(r), e.missedProperties(r), e.missedOverlap(r), e.missedOrphan(r.Orphans),
		e.Figures.Missed(checker.PoolOf([]checker.Results{r})),
	)
}

// missedFoundation says why no verdict can rest on the run, because its faults or assumptions do not hold; ""
// if one can.
func missedFoundation(r checker.Results) string {
	for _, p := range []checker.Property{checker.FaultEvidence, checker.Assumptions} {
		switch f := r.Finding(p); f.Verdict {
		case checker.Valid, checker.NotApplicable:
		case "":
			return fmt.Sprintf("%s was not judged", p)
		default:
			return fmt.Sprintf("%s is %s: %s", p, f.Verdict, f.Summary)
		}
	}
	return ""
}

// missedInvariant says which invariant held that was to be violated.
func (e Expectation) missedInvariant(r checker.Results) string {
	facts := r.Finding(checker.Invariants).Facts
	for _, name := range e.Invariants {
		violated := func(f checker.Fact) bool { return f.Kind == application.FactViolated && slices.Contains(f.Keys, name) }
		if !slices.ContainsFunc(facts, violated) {
			return fmt.Sprintf("invariant %s was not violated", name)
		}
	}
	return ""
}

// missedProperties compares the verdict of each property. If no verdict of the run is expected, no other
// required property may be violated, and the run may not be undecided or broken.
func (e Expectation) missedProperties(r checker.Results) string {
	for _, p := range e.Violated {
		if r.Finding(p).Verdict != checker.Violation {
			return fmt.Sprintf("%s was not violated (only %s)", p, reports.Properties(violatedProperties(r)))
		}
	}
	caused := func(p checker.Property) bool { return r.Finding(p).Causes[e.Cause] > 0 }
	if e.Cause != "" && !slices.ContainsFunc(e.Violated, caused) {
		return fmt.Sprintf("no violation of %s was caused by: %s", reports.Properties(e.Violated), e.Cause)
	}
	for _, p := range e.Kept {
		if v := r.Finding(p).Verdict; v != checker.Valid {
			return fmt.Sprintf("%s is not shown to be kept: %s", p, v)
		}
	}
	if e.Verdict != "" {
		return ""
	}
	expected := slices.Concat(e.Violated, e.MayViolate)
	if len(e.Invariants) > 0 {
		expected = append(expected, checker.Invariants)
	}
	for _, f := range r.Findings {
		if f.Required && f.Verdict == checker.Violation && !slices.Contains(expected, f.Property) {
			return fmt.Sprintf("%s was violated", f.Property)
		}
	}
	if r.Verdict == checker.Undecided || r.Verdict == checker.Broken {
		return fmt.Sprintf("the run is %s", r.Verdict)
	}
	return ""
}

// missedOverlap looks for one overlap that has everything that is asked for.
func (e Expectation) missedOverlap(r checker.Results) string {
	class := ""
	if e.DoubleGrant {
		class = checker.DoubleGrant
	}
	asked := class != "" || e.Earlier != ""
	switch {
	case e.Notified && r.Operations.Lost == 0:
		return "no worker was notified that its lock is gone"
	case e.NeverNotified && r.Operations.Lost > 0:
		return fmt.Sprintf("%d times a worker was notified that its lock is gone", r.Operations.Lost)
	case !asked || r.Overlaps.Count(class, e.Earlier) > 0:
		return ""
	case e.Earlier == "":
		return "no overlap was a double grant"
	case class == "":
		return "in no overlap the earlier holder was " + e.Earlier
	}
	return "in no overlap by a double grant the earlier holder was " + e.Earlier
}

func (e Expectation) missedOrphan(o checker.OrphanSummary) string {
	least, most := e.OrphanedFor, e.FreeWithin
	took := o.Longest.Round(time.Millisecond)
	switch {
	case least == 0 && most == 0:
		return ""
	case o.Killed == 0:
		return "no holder was killed"
	case least > 0 && o.Longest < least:
		return fmt.Sprintf("the lock of a killed holder was granted again after %s, not after %s at the earliest", took, least)
	case most > 0 && (o.Stuck > 0 || o.Longest > most):
		return fmt.Sprintf("the lock of a killed holder stayed with it for %s, not for %s at the latest", took, most)
	}
	return ""
}

// String says in words what is expected.
func (e Expectation) String() string {
	var parts []string
	add := func(when bool, format string, args ...any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(len(e.Violated) > 0, "%s violated", reports.Properties(e.Violated))
	add(e.Cause != "", "cause: %s", e.Cause)
	add(len(e.Invariants) > 0, "invariant %s violated", strings.Join(e.Invariants, ", "))
	add(len(e.Kept) > 0, "%s kept", reports.Properties(e.Kept))
	add(e.DoubleGrant, "a double grant")
	add(e.Earlier != "", "the earlier holder %s", e.Earlier)
	add(e.Notified, "a holder notified")
	add(e.NeverNotified, "nobody notified")
	add(e.OrphanedFor > 0, "orphaned for %s at least", e.OrphanedFor)
	add(e.FreeWithin > 0, "free within %s", e.FreeWithin)
	add(len(e.Figures) > 0, "%s", e.Figures)
	text := strings.Join(parts, ", ")
	switch {
	case e.Verdict == "":
		return text
	case text == "":
		return string(e.Verdict)
	}
	return string(e.Verdict) + ": " + text
}

func violatedProperties(r checker.Results) []checker.Property {
	var violated []checker.Property
	for _, f := range r.Findings {
		if f.Verdict == checker.Violation {
			violated = append(violated, f.Property)
		}
	}
	return violated
}
