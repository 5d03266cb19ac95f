package apphunt

import (
	"fmt"
	"path/filepath"

	"lockcheck/checker"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/repros"
	"lockcheck/nemesis"
)

// expectation is that the finding shows, whatever else does.
func (s Signature) expectation() suites.Expectation {
	e := suites.Expectation{Verdict: checker.Violation}
	if s.Property == checker.Invariants {
		e.Invariants = []string{s.What}
		return e
	}
	e.Violated, e.Cause = []checker.Property{s.Property}, s.What
	return e
}

// reproduction is the finding as a file for "lockcheck repro". Its control is the test without faults, if a trial has
// shown that this is valid.
func (h *hunt) reproduction(f Finding, s nemesis.Schedule) (repros.Reproduction, error) {
	app, err := filepath.Abs(h.Options.App.Path) // so that the file can be moved
	if err != nil {
		return repros.Reproduction{}, err
	}
	r := repros.Reproduction{
		Name:    fmt.Sprintf("hunt-%s-%d", h.Options.App.Name, len(h.result.Findings)+1),
		Summary: f.Signature.String() + ", " + f.under(), Claim: f.Sentence,
		Source: fmt.Sprintf("lockcheck hunt --app %s --seed %d", h.Options.App.Path, h.Options.Seed),
		Setup:  repros.Setup{Application: repros.Application{App: app}, TimeLimit: h.Options.TimeLimit, MinOps: h.Options.MinOps},
		Expect: f.expectation(),
	}
	if len(s.Steps) == 0 {
		r.Setup.Nemesis = "none"
		return r, nil
	}
	r.Schedule = s
	if h.calm {
		r.Control = &repros.Control{Summary: "the same without faults", Setup: repros.Changes("nemesis", "none"), Expect: suites.Expectation{Verdict: checker.Valid}}
	}
	return r, nil
}
