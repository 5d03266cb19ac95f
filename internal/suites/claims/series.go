package claims

import (
	"regexp"
	"slices"

	"lockcheck/internal/suites"
)

// Experiments lists the experiments of the claims, each once, if their names match. Measurements run alone
// and last, so that the others need not wait for them.
func Experiments(all []Claim, only *regexp.Regexp) (suites.Series, error) {
	known, err := experiments()
	if err != nil {
		return suites.Series{}, err
	}
	s := suites.Series{Alone: make(map[string]bool)}
	add := func(r reference) {
		named := func(e suites.Experiment) bool { return e.Name == r.Name }
		if r.Name != "" && only.MatchString(r.Name) && !slices.ContainsFunc(s.Experiments, named) {
			s.Experiments = append(s.Experiments, known[r.Name])
		}
	}
	for _, c := range all {
		for _, e := range slices.Concat(c.For, c.Against) {
			add(e.Run)
		}
		for _, m := range c.Measured {
			add(m.Run)
			add(m.Than)
			s.Alone[m.Run.Name], s.Alone[m.Than.Name] = true, true
		}
	}
	slices.SortStableFunc(s.Experiments, func(a, b suites.Experiment) int {
		switch alone := s.Alone[a.Name]; {
		case alone == s.Alone[b.Name]:
			return 0
		case alone:
			return 1
		}
		return -1
	})
	return s, nil
}
