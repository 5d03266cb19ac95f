package hunt

import (
	"cmp"
	"slices"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// near is how near a run was to a violation, from 0 to 1, by what is left of what keeps
// holders apart.
func near(h history.Header, r checker.Results, s seen) float64 {
	score := 0.0
	raise := func(when bool, to float64) {
		if when {
			score = max(score, to)
		}
	}
	raise(len(s.finds) > 0, 1)
	raise(len(s.inherent) > 0, 0.6)
	raise(r.Operations.Unknown > 0, 0.3)
	raise(r.Operations.GoneAtRelease > 0, 0.4)
	raise(r.Operations.Lost > 0, 0.4)
	raise(r.Finding(checker.Linearizability).Verdict == checker.Undecided, 0.5)
	raise(true, 0.9*margins(h, r.Holds))
	if bound := h.Lease + h.Grace + checker.LivenessGrace; bound > 0 {
		raise(true, min(0.8, 0.8*float64(r.Measures.LongestGap)/float64(bound)))
	}
	return score
}

// margins is how close together holds of different workers were of which the earlier one
// did not end by a release: 1 for no time in between, 0 for a lease or more.
func margins(h history.Header, holds []checker.Hold) float64 {
	if h.Lease <= 0 {
		return 0
	}
	holds = slices.Clone(holds)
	slices.SortFunc(holds, func(a, b checker.Hold) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Start, b.Start)) })
	closest := 0.0
	for i := 1; i < len(holds); i++ {
		a, b := holds[i-1], holds[i]
		if a.Key != b.Key || a.Worker == b.Worker || a.Ended == checker.EndedByRelease && a.End < a.LeaseEnd {
			continue
		}
		gap := time.Duration(max(0, b.Start-a.End))
		closest = max(closest, 1-min(1, float64(gap)/float64(h.Lease)))
	}
	return closest
}
