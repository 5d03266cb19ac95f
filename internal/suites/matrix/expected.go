package matrix

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/internal/spelling"
)

// Expectation says which verdict, other than valid, some cells are known to have.
type Expectation struct {
	// Lock, Fault and Guard are shell patterns; "" for any.
	Lock  string `yaml:"lock,omitempty"`
	Fault string `yaml:"fault,omitempty"`
	Guard string `yaml:"guard,omitempty"`
	// Verdict is the expected verdict; "" for violation.
	Verdict checker.Verdict `yaml:"verdict,omitempty"`
	// Properties may be violated; nil for any.
	Properties []checker.Property `yaml:"properties,omitempty,flow"`
	Reason     string             `yaml:"reason,omitempty"`
	Link       string             `yaml:"link,omitempty"`
}

// checkExpected refuses an expectation that matches no cell. The cell that it was meant for would fail
// without a hint.
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

// applyExpectation decides whether a judged cell is as expected and with which verdict it counts. An expected violation
// that does not happen passes, unless MustFail is set: faults are random and may miss.
func (s Suite) applyExpectation(c *Cell) {
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

// allows says whether a cell violates nothing except the named properties.
func (e Expectation) allows(c Cell) bool {
	if len(e.Properties) == 0 {
		return true
	}
	other := slices.ContainsFunc(c.Thresholds, func(t ThresholdResult) bool {
		return t.Counts == "" && t.Verdict != checker.Valid
	})
	return !other && !slices.ContainsFunc(c.violatedProperties(), func(p checker.Property) bool { return !slices.Contains(e.Properties, p) })
}
