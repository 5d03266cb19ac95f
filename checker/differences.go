package checker

import "lockcheck/internal/stats"

// Difference compares in two sets of runs how often something happened, relative to how often it could have.
type Difference struct {
	What          Quantity
	First, Second stats.Count
	// Chance is the probability of such a difference between sets that do not differ; see stats.Permutation.
	Chance float64
	// Compared means that the sets have enough runs for a difference to be found.
	Compared bool
	// Shown means that the difference is statistically significant.
	Shown bool
}

// Worse says whether the second set has a significantly higher share.
func (d Difference) Worse() bool { return d.Shown && d.Second.Share() > d.First.Share() }

// Better says whether the second set has a significantly lower share.
func (d Difference) Better() bool { return d.Shown && d.Second.Share() < d.First.Share() }

// Open says whether there is anything to compare: the event was possible in both sets and happened in at
// least one.
func (d Difference) Open() bool { return d.First.N > 0 && d.Second.N > 0 && d.First.K+d.Second.K > 0 }

// Chance is the significance level: the probability of calling any figure different although none is
// (family-wise).
const Chance = 0.05

// figuresOfRuns are the figures that sets of runs are compared by.
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

// Differences compares two sets of runs. Only whole runs are compared, because the events within one run are
// not independent: a single run against another shows nothing.
func Differences(first, second []Results) []Difference {
	var all []Difference
	var chances []float64
	var open []int // indexes of the figures that have data; they share Chance
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

// RunsNeeded is how many runs each set needs for the differences to be compared, given the number of figures
// that have data. It is 0 if none has.
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

// RunsNeededForAll is how many runs each set needs in the worst case, when every figure has data.
func RunsNeededForAll() int { return stats.RunsNeeded(len(figuresOfRuns()), Chance) }

func perRun(runs []Results, of func(Results) stats.Count) []stats.Count {
	var all []stats.Count
	for _, r := range runs {
		all = append(all, of(r))
	}
	return all
}
