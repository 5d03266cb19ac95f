package checker

import (
	"cmp"
	"slices"
)

// Verdicts lists those that a run can have, the least telling first: as which one counts
// what is broken is unknown.
func Verdicts() []Verdict { return []Verdict{Valid, Broken, Undecided, Violation} }

// MostTelling returns that of several verdicts which says most. One that is not known counts
// as broken, NotApplicable says nothing. There must be at least one.
func MostTelling(verdicts []Verdict) Verdict {
	rank := func(v Verdict) int {
		if v != NotApplicable && !slices.Contains(Verdicts(), v) {
			v = Broken
		}
		return slices.Index(Verdicts(), v)
	}
	return slices.MaxFunc(verdicts, func(a, b Verdict) int { return cmp.Compare(rank(a), rank(b)) })
}
