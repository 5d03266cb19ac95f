package matrix

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/internal/spelling"
)

// Expectation says of some cells which verdict other than valid they are known to have.
type Expectation struct {
	// Lock, Fault and Guard are patterns as in a shell; "" for any.
	Lock  string `yaml:"lock,omitempty"`
	Fault string `yaml:"fault,omitempty"`
	Guard string `yaml:"guard,omitempty"`
	// Verdict is violation if it is "".
	Verdict checker.Verdict `yaml:"verdict,omitempty"`
	// Properties are those that may be violated; nil for any.
	Properties []checker.Property `yaml:"properties,omitempty,flow"`
	Reason     string             `yaml:"reason,omitempty"`
	Link       string             `yaml:"link,omitempty"`
}

// checkExpected refuses an expectation that is about no cell: what it was meant for would be
// red without a hint why.
func (s Suite) checkExpected(places []Place) error {
	for i, e := range s.Expected {
		wrong := func(key, format string, args ...any) error {
			return wrongKey([]any{"expected", i, key}, format, args...)
		}
		for _, p := range []struct{ key, pattern string }{{"lock", e.Lock}, {"fault", e.Fault}, {"guard", e.Guard}} {
			if _, err := path.Match(p.pattern, ""); err != nil {
				return wrong(p.key, "%s: %s is no pattern", p.key, p.pattern)
			}
		}
		if !slices.Contains([]checker.Verdict{"", checker.Violation, checker.Undecided, checker.Broken}, e.Verdict) {
			return wrong("verdict", "verdict %s: write violation, undecided or broken", e.Verdict)
		}
		for _, p := range e.Properties {
			if !slices.Contains(checker.Properties(), p) {
				return wrong("properties", "there is no property %s%s", p, spelling.Hint(string(p), propertyNames()))
			}
		}
		if !slices.ContainsFunc(places, func(c Place) bool { return s.expectedOf(c) == i }) {
			return wrong("", "entry %d is about no cell, or only about those of entries before it", i+1)
		}
	}
	return nil
}

func propertyNames() []string {
	var names []string
	for _, p := range checker.Properties() {
		names = append(names, string(p))
	}
	return names
}

// expectedOf returns the index of the first expectation that matches a cell, or -1.
func (s Suite) expectedOf(c Place) int {
	return slices.IndexFunc(s.Expected, func(e Expectation) bool {
		return matches(e.Lock, c.Lock) && matches(e.Fault, c.Fault) && matches(e.Guard, c.Guard)
	})
}

func matches(pattern, name string) bool {
	match, err := path.Match(pattern, name)
	return pattern == "" || err == nil && match
}

// expect says whether a judged cell is as expected, and with which verdict it counts. What is
// expected and does not happen passes unless it must fail: faults are random, and miss.
func (s Suite) expect(c *Cell) {
	c.Counts = c.Verdict
	i := s.expectedOf(c.Place)
	if i < 0 || c.Verdict == "" {
		return
	}
	e := s.Expected[i]
	verdict := cmp.Or(e.Verdict, checker.Violation)
	c.Expected = &Expected{Verdict: verdict, Properties: e.Properties, Because: strings.TrimSpace(e.Reason + " " + e.Link)}
	switch {
	case c.Verdict == verdict && e.allows(*c):
		c.Counts, c.Expected.Met = checker.Valid, true
	case c.Verdict == checker.Valid && s.MustFail:
		c.Counts = checker.Violation
	}
}

// allows says whether nothing else was violated in a cell than what is named.
func (e Expectation) allows(c Cell) bool {
	if len(e.Properties) == 0 {
		return true
	}
	other := slices.ContainsFunc(c.Thresholds, func(t ThresholdResult) bool {
		return t.Counts == "" && t.Verdict != checker.Valid
	})
	return !other && !slices.ContainsFunc(c.violatedProperties(), func(p checker.Property) bool { return !slices.Contains(e.Properties, p) })
}
