package reports

import (
	"fmt"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/history"
)

// coverage sums up the injected faults of one kind.
type coverage struct {
	kind      string
	requested int
	injected  int
	proven    int
	exercised int
	outlasted int
	unhealed  int
	// holders: exercised means that it hit a worker inside its critical section.
	holders bool
	reasons []reason
}

// reason is why some faults do not count, and how many.
type reason struct {
	text string
	n    int
}

// coverages groups faults by kind: those asked for first, in the order asked,
// even when none was injected, because that is what a reader must not miss.
func coverages(h history.Header, faults []checker.FaultCoverage) []coverage {
	var out []coverage
	index := map[string]int{}
	group := func(kind string) *coverage {
		i, ok := index[kind]
		if !ok {
			i = len(out)
			index[kind] = i
			out = append(out, coverage{kind: kind, holders: history.Does(kind, history.Stops) || history.Does(kind, history.Defers)})
		}
		return &out[i]
	}
	for _, kind := range h.Faults {
		group(clean(kind))
	}
	for _, f := range faults {
		group(clean(f.Kind)).add(f, h.Workers)
	}
	return out
}

func (c *coverage) add(f checker.FaultCoverage, workers []string) {
	c.requested++
	c.injected += one(f.Applied)
	c.proven += one(f.Proven)
	c.exercised += one(f.Exercised)
	c.outlasted += one(f.Outlasted)
	c.unhealed += one(f.Applied && !f.Healed)
	for _, t := range f.Targets {
		c.holders = c.holders && slices.Contains(workers, t)
	}
	if !f.Counts() {
		c.because(whyNot(f))
	}
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

// whyNot is why a fault does not count.
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

// line is the sum in words.
func (c coverage) line() string {
	if c.requested == 0 {
		return "asked for, never injected"
	}
	mattered := "exercised"
	if c.holders {
		mattered = "hit a holder"
	}
	parts := []string{
		fmt.Sprintf("%d injected", c.injected),
		fmt.Sprintf("%d proven", c.proven),
		fmt.Sprintf("%d %s", c.exercised, mattered),
	}
	if c.holders || c.outlasted > 0 {
		parts = append(parts, fmt.Sprintf("%d outlasted the lease", c.outlasted))
	}
	if c.unhealed > 0 {
		parts = append(parts, fmt.Sprintf("%d NOT PROVEN HEALED", c.unhealed))
	}
	return strings.Join(parts, ", ")
}

// notCounted is the reasons in words, one a line.
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

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
