package checker

import "lockcheck/internal/stats"

// Difference is how often something happened in two sets of runs, of how often it could
// have.
type Difference struct {
	What          Quantity
	First, Second stats.Count
	// Chance is the probability of such a difference between sets that do not differ; see
	// stats.Permutation.
	Chance float64
	// Compared: the sets have enough runs for any difference to be found.
	Compared bool
	// Shown: the difference is more than chance.
	Shown bool
}

// Worse says whether the second set has a higher share, and not by chance.
func (d Difference) Worse() bool { return d.Shown && d.Second.Share() > d.First.Share() }

// Better says whether it has a lower one, and not by chance.
func (d Difference) Better() bool { return d.Shown && d.Second.Share() < d.First.Share() }

// Open says whether there is anything to compare: it could happen in both sets, and did in
// one.
func (d Difference) Open() bool { return d.First.N > 0 && d.Second.N > 0 && d.First.K+d.Second.K > 0 }

// Chance is the probability with which any difference may be called more than chance
// though there is none: that of all figures together.
const Chance = 0.05

// figuresOfRuns are those that sets of runs are compared by.
func figuresOfRuns() []figureOfRun {
	return []figureOfRun{
		{LostUpdates, func(r Results) stats.Count { return stats.Count{K: r.Updates.Lost, N: r.Updates.Acknowledged} }},
		{StaleWrites, func(r Results) stats.Count {
			return stats.Count{K: int64(r.Finding(NoStaleWrite).Total), N: r.Operations.Acknowledged}
		}},
		{GoneAtRelease, func(r Results) stats.Count {
			return stats.Count{K: r.Operations.GoneAtRelease, N: r.Operations.Acquired}
		}},
	}
}

type figureOfRun struct {
	what Quantity
	of   func(Results) stats.Count
}

// Differences are those between two sets of runs. Only whole runs are compared, for what
// happens within one hangs together: a single run against another shows nothing.
func Differences(first, second []Results) []Difference {
	var all []Difference
	var chances []float64
	var open []int // those that anything happened of, which share Chance
	for _, f := range figuresOfRuns() {
		a, b := perRun(first, f.of), perRun(second, f.of)
		d := Difference{What: f.what, First: stats.Sum(a), Second: stats.Sum(b), Chance: stats.Permutation(a, b)}
		if d.Open() {
			open = append(open, len(all))
			chances = append(chances, d.Chance)
		}
		all = append(all, d)
	}
	shown := stats.Significant(chances, Chance)
	least := stats.Least(len(first), len(second))
	for i, at := range open {
		d := &all[at]
		d.Compared = least <= Chance/float64(len(open))
		d.Shown = d.Compared && shown[i]
	}
	return all
}

// RunsNeeded is how many runs of each set the differences need to be compared: as many
// figures as have anything to compare. It is 0 if none has.
func RunsNeeded(all []Difference) int {
	open := 0
	for _, d := range all {
		if d.Open() {
			open++
		}
	}
	if open == 0 {
		return 0
	}
	return stats.RunsNeeded(open, Chance)
}

// RunsNeededForAll is how many runs of each set are enough whatever happens in them: every figure has
// something to compare.
func RunsNeededForAll() int { return stats.RunsNeeded(len(figuresOfRuns()), Chance) }

func perRun(runs []Results, of func(Results) stats.Count) []stats.Count {
	var all []stats.Count
	for _, r := range runs {
		all = append(all, of(r))
	}
	return all
}
