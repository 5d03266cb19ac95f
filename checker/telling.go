package checker

import (
	"cmp"
	"slices"
)

// Verdicts lists the verdicts that a run can have, the least informative first. Broken ranks below Undecided
// because nobody knows what a broken run would have shown.
func Verdicts() []Verdict { return []Verdict{Valid, Broken, Undecided, Violation} }

// MostTelling returns the most informative of several verdicts. An unknown verdict counts as Broken, and
// NotApplicable ranks below all others. There must be at least one verdict.
func MostTelling(verdicts []Verdict) Verdict {
	rank := func(v Verdict) int {
		if v != NotApplicable && !slices.Contains(Verdicts(), v) {
			v = Broken
		}
		return slices.Index(Verdicts(), v)
	}
	return slices.MaxFunc(verdicts, func(a, b Verdict) int { return cmp.Compare(rank(a), rank(b)) })
}
