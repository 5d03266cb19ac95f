package reports

import (
	"fmt"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/history"
)

// coverage is a group of faults, and why some of the faults do not count.
type coverage struct {
	checker.FaultGroup
	name    string
	reasons []reason
	lease   bool // there is a lease that a fault could outlast
}

// reason is why some faults do not count, and how many of them.
type reason struct {
	text string
	n    int
}

// coverages sorts groups of faults. The kinds that were asked for come first, in that order. They are listed
// even if none was injected, because a reader must not miss that.
func coverages(h history.Header, faults []checker.FaultCoverage) []coverage {
	groups := checker.FaultGroups(faults, h)
	var out []coverage
	var asked []string
	take := func(wanted func(checker.FaultGroup) bool) {
		for _, g := range groups {
			if wanted(g) {
				out = append(out, newCoverage(g, h))
			}
		}
	}
	for _, kind := range h.Faults {
		of := func(g checker.FaultGroup) bool { return g.Kind == kind }
		switch {
		case slices.Contains(asked, kind):
		case slices.ContainsFunc(groups, of):
			take(of)
		default:
			out = append(out, newCoverage(checker.FaultGroup{Kind: kind, Name: kind}, h))
		}
		asked = append(asked, kind)
	}
	take(func(g checker.FaultGroup) bool { return !slices.Contains(asked, g.Kind) })
	return out
}

func newCoverage(g checker.FaultGroup, h history.Header) coverage {
	c := coverage{FaultGroup: g, name: clean(g.Name), lease: h.Lease > 0}
	for _, f := range g.Faults {
		if !f.Counts() {
			c.because(whyNot(f))
		}
	}
	return c
}

func (c *coverage) because(text string) {
	for i := range c.reasons {
		if c.reasons[i].text == text {
			c.reasons[i].n++
			return
		}
	}
	c.reasons = append(c.reasons, reason{text, 1})
}

func whyNot(f checker.FaultCoverage) string {
	switch {
	case f.Reason != "":
		return clean(f.Reason)
	case !f.Applied:
		return "never applied"
	case !f.Proven:
		return "no proof that it was in force"
	}
	return "not exercised"
}

// line sums up the group in words.
func (c coverage) line() string {
	if len(c.Faults) == 0 {
		return "asked for, never injected"
	}
	mattered := "exercised"
	if c.OfHolders {
		mattered = "hit a holder"
	}
	outlasted := c.Count(func(f checker.FaultCoverage) bool { return f.Outlasted })
	parts := []string{
		fmt.Sprintf("%d injected", c.Count(func(f checker.FaultCoverage) bool { return f.Applied })),
		fmt.Sprintf("%d proven", c.Count(func(f checker.FaultCoverage) bool { return f.Proven })),
		fmt.Sprintf("%d %s", c.Count(func(f checker.FaultCoverage) bool { return f.Exercised }), mattered),
	}
	if c.lease && (c.OfHolders || outlasted > 0) {
		parts = append(parts, fmt.Sprintf("%d outlasted the lease", outlasted))
	}
	if n := c.Count(func(f checker.FaultCoverage) bool { return f.Applied && !f.Healed }); n > 0 {
		parts = append(parts, fmt.Sprintf("%d NOT PROVEN HEALED", n))
	}
	return strings.Join(parts, ", ")
}

// notCounted lists the reasons in words, one per line.
func (c coverage) notCounted() []string {
	out := make([]string, 0, len(c.reasons))
	for _, r := range c.reasons {
		verb := "does"
		if r.n > 1 {
			verb = "do"
		}
		out = append(out, fmt.Sprintf("%d %s not count: %s", r.n, verb, r.text))
	}
	return out
}
