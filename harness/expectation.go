package harness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
)

// Expectation is what a run must give, and what it must rest on.
type Expectation struct {
	// Verdict of the run; "" if only the properties matter.
	Verdict checker.Verdict `yaml:"verdict,omitempty"`
	// Violated lists properties that must be among the violated ones.
	Violated []checker.Property `yaml:"violated,omitempty"`
	// Kept lists properties that must not be.
	Kept []checker.Property `yaml:"kept,omitempty"`
	// BrokenPromise asks for an overlap in which the service itself broke its
	// promise, not for a client that went on beyond it.
	BrokenPromise bool `yaml:"broken-promise,omitempty"`
	// Earlier is what the earlier holder of an overlap, of that one if BrokenPromise
	// is set too, must have been: healthy, paused or cut off; "" for any.
	Earlier string `yaml:"earlier,omitempty"`
	// NeverTold asks that no worker was told that its lock is gone.
	NeverTold bool `yaml:"never-told,omitempty"`
	// OrphanedFor is how long the lock of a killed holder must have stayed with it,
	// FreeWithin how long at most.
	OrphanedFor yamlDuration `yaml:"orphaned-for,omitempty"`
	FreeWithin  yamlDuration `yaml:"free-within,omitempty"`
}

// Missed says why results are not what was expected; "" if they are. A broken or
// undecided run never is, unless that was expected.
func (e Expectation) Missed(r checker.Results) string {
	switch {
	case e.Verdict != "" && r.Verdict != e.Verdict:
		return fmt.Sprintf("the verdict is %s, not %s", r.Verdict, e.Verdict)
	case e.Verdict == "" && r.Verdict != checker.Violation && r.Verdict != checker.Valid:
		return fmt.Sprintf("the verdict is %s", r.Verdict)
	}
	violated := violatedProperties(r)
	for _, p := range e.Violated {
		if !slices.Contains(violated, string(p)) {
			return fmt.Sprintf("%s was not violated (only %s)", p, strings.Join(violated, ", "))
		}
	}
	for _, p := range e.Kept {
		if slices.Contains(violated, string(p)) {
			return fmt.Sprintf("%s was violated", p)
		}
	}
	switch {
	case e.missesOverlap(r.Overlaps):
		return e.missedOverlap()
	case e.NeverTold && r.Operations.Lost > 0:
		return fmt.Sprintf("%d times a worker was told that its lock is gone", r.Operations.Lost)
	}
	return e.missedOrphan(r.Orphans)
}

// missesOverlap wants one overlap that is all that was asked for.
func (e Expectation) missesOverlap(o checker.OverlapSummary) bool {
	class := ""
	if e.BrokenPromise {
		class = checker.BrokenPromise
	}
	return (class != "" || e.Earlier != "") && o.Count(class, e.Earlier) == 0
}

func (e Expectation) missedOverlap() string {
	switch {
	case e.Earlier == "":
		return "no overlap was a broken promise"
	case !e.BrokenPromise:
		return "in no overlap the earlier holder was " + e.Earlier
	}
	return "in no overlap by a broken promise the earlier holder was " + e.Earlier
}

func (e Expectation) missedOrphan(o checker.OrphanSummary) string {
	least, most := time.Duration(e.OrphanedFor), time.Duration(e.FreeWithin)
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
	add(len(e.Violated) > 0, "%s violated", joined(e.Violated))
	add(len(e.Kept) > 0, "%s kept", joined(e.Kept))
	add(e.BrokenPromise, "a promise broken")
	add(e.Earlier != "", "the earlier holder %s", e.Earlier)
	add(e.NeverTold, "nobody told")
	add(e.OrphanedFor > 0, "orphaned for %s at least", time.Duration(e.OrphanedFor))
	add(e.FreeWithin > 0, "free within %s", time.Duration(e.FreeWithin))
	text := strings.Join(parts, ", ")
	switch {
	case e.Verdict == "":
		return text
	case text == "":
		return string(e.Verdict)
	}
	return string(e.Verdict) + ": " + text
}

func joined(properties []checker.Property) string {
	var names []string
	for _, p := range properties {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}

func violatedProperties(r checker.Results) []string {
	var violated []string
	for _, f := range r.Findings {
		if f.Verdict == checker.Violation {
			violated = append(violated, string(f.Property))
		}
	}
	return violated
}
