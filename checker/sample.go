package checker

import (
	"cmp"
	"math"
	"slices"
	"time"

	"lockcheck/internal/stats"
)

// Sample is what of a run is compared with other runs of the same test.
type Sample struct {
	Updates stats.Count `json:"updates"` // lost, of all that were acknowledged
	// Losses are the parts of Updates that do not hang together, and Over says what they are:
	// see LossInterval.
	Losses []stats.Count `json:"losses,omitempty"`
	Over   string        `json:"over,omitempty"`
	// Faults are those after which something was violated, before the next one began, of
	// all that counted. N is 0 without any, and where not all violations are listed.
	Faults stats.Count `json:"faults"`
	// Wait and Failover are 99th percentiles, see Measures; nil without data, and for ever if
	// that many never came to an end.
	Wait     *time.Duration `json:"wait_p99_ns,omitempty"`
	Failover *time.Duration `json:"failover_p99_ns,omitempty"`
}

// forEver stands for a time that did not end.
const forEver = time.Duration(math.MaxInt64)

// SampleOf takes one of a run.
func SampleOf(r Results) Sample {
	pool := PoolOf([]Results{r})
	return Sample{
		Updates: stats.Count{K: r.Updates.Lost, N: r.Updates.Acknowledged}, Losses: r.Losses, Over: r.Updates.LostOver,
		Faults: faultsWithIncidents(r), Wait: sampled(pool.Measures.Wait, 0), Failover: sampled(pool.Measures.Failover, pool.Stuck),
	}
}

// sampled is the 99th percentile of times, of which some never came to an end.
func sampled(h stats.Histogram, endless int64) *time.Duration {
	value, known := quantileOf(h, endless, 0.99)
	if !known {
		return nil
	}
	d := forEver
	if !math.IsInf(value, 1) {
		d = time.Duration(value)
	}
	return &d
}

// faultsWithIncidents counts the faults in whose windows anything was violated.
func faultsWithIncidents(r Results) stats.Count {
	var begins []int64
	for _, f := range r.Faults {
		if f.Counts() {
			begins = append(begins, f.Begin)
		}
	}
	slices.Sort(begins)
	hit := make([]bool, len(begins))
	for _, f := range r.Findings {
		if f.Total > len(f.Violations) {
			return stats.Count{}
		}
		for _, i := range f.Violations {
			after, _ := slices.BinarySearch(begins, i.From+1)
			if after > 0 {
				hit[after-1] = true
			}
		}
	}
	count := stats.Count{N: int64(len(begins))}
	for _, h := range hit {
		if h {
			count.K++
		}
	}
	return count
}

// Change is a figure of two sets of runs of the same test: of those before, and of those now.
type Change struct {
	What Quantity `json:"what"`
	// Before and Now are shares, or medians of the runs if Time, in ns.
	Before float64 `json:"before"`
	Now    float64 `json:"now"`
	Time   bool    `json:"time,omitempty"`
	// Units are how many that do not hang together each set has, and Over says what they are.
	Units [2]int `json:"units"`
	Over  string `json:"over"`
	// Chance is the probability of such a difference if there is none, see stats.Permutation.
	Chance float64 `json:"chance"`
	// Compared: there are enough units for any difference to be found.
	Compared bool `json:"compared"`
	// Shown: the difference is more than chance.
	Shown bool `json:"shown"`
	// Found is the smallest value now that would have been found, as far as the spread before
	// tells; 0 if none would.
	Found float64 `json:"found,omitempty"`

	before, now []stats.Count
}

// leastSlower is by how much a time must be longer to count as worse: machines differ.
const leastSlower = 1.25

// Worse says whether it is worse now, and not by chance.
func (c Change) Worse() bool {
	return c.Shown && c.Now > c.Before && (!c.Time || c.Now >= leastSlower*c.Before)
}

// Better says whether it is better now, and not by chance.
func (c Change) Better() bool { return c.Shown && c.Now < c.Before }

// Changes lists the figures by which two sets of runs can be compared: those that any of the
// runs have. DecideChanges must judge them, with those of all other tests.
func Changes(before, now []Sample) []Change {
	var all []Change
	add := func(what Quantity, over string, a, b []stats.Count) {
		a, b = stats.Informative(a), stats.Informative(b)
		if len(a) == 0 || len(b) == 0 || stats.Sum(a).K+stats.Sum(b).K == 0 {
			return
		}
		all = append(all, Change{
			What: what, Before: stats.Sum(a).Share(), Now: stats.Sum(b).Share(), Units: [2]int{len(a), len(b)}, Over: over,
			Chance: chanceOf(a, b), before: a, now: b,
		})
	}
	a, _ := lossesOf(before)
	b, over := lossesOf(now)
	if a == nil || b == nil {
		over = OverRuns
		a, b = perSample(before, func(s Sample) stats.Count { return s.Updates }), perSample(now, func(s Sample) stats.Count { return s.Updates })
	}
	add(LostUpdates, over, a, b)
	add(ViolatingFaults, OverFaults, faultsOf(before), faultsOf(now))
	for _, t := range []struct {
		what Quantity
		of   func(Sample) *time.Duration
	}{
		{WaitP99, func(s Sample) *time.Duration { return s.Wait }},
		{FailoverP99, func(s Sample) *time.Duration { return s.Failover }},
	} {
		x, y := timesOf(before, t.of), timesOf(now, t.of)
		if len(x) == 0 || len(y) == 0 {
			continue
		}
		a, b := stats.Ranks(x, y)
		all = append(all, Change{
			What: t.what, Time: true, Before: float64(stats.Median(x)), Now: float64(stats.Median(y)), Units: [2]int{len(x), len(y)}, Over: OverRuns,
			Chance: stats.Permutation(a, b),
		})
	}
	return all
}

// chanceOf is that of the shares of units, by their ranks: how many updates there are in a
// unit is a matter of the machine, and must not make a loss of one look like many.
func chanceOf(before, now []stats.Count) float64 {
	shares := func(units []stats.Count) (all []float64) {
		for _, u := range units {
			all = append(all, u.Share())
		}
		return all
	}
	return stats.Permutation(stats.Ranks(shares(before), shares(now)))
}

// DecideChanges judges all figures of all tests together: any of them is called different
// though it is not with a probability of at most Chance (Holm).
func DecideChanges(all []*Change) {
	var chances []float64
	for _, c := range all {
		chances = append(chances, c.Chance)
	}
	level := Chance / float64(max(len(all), 1))
	for i, shown := range stats.Significant(chances, Chance) {
		c := all[i]
		c.Compared = stats.Least(c.Units[0], c.Units[1]) <= level
		c.Shown = c.Compared && shown
		if c.Compared && !c.Shown && !c.Time {
			c.Found = leastFound(c.before, c.now, level)
		}
	}
}

// leastFound is the smallest share now that would have been found: of units that are all or
// nothing, for that is how bursts come.
func leastFound(before, now []stats.Count, level float64) float64 {
	sized := slices.Clone(now)
	slices.SortFunc(sized, func(a, b stats.Count) int { return cmp.Compare(a.N, b.N) })
	with := func(lost int) []stats.Count {
		units := slices.Clone(sized)
		for i := range units {
			units[i].K = 0
			if i < lost {
				units[i].K = units[i].N
			}
		}
		return units
	}
	for lost := 1; lost <= len(sized); lost++ {
		units := with(lost)
		if share := stats.Sum(units).Share(); share > stats.Sum(before).Share() && chanceOf(before, units) <= level {
			return share
		}
	}
	return 0
}

// UnitsNeeded is how many units a set needs for DecideChanges to find any difference from one
// with so many, among so many figures; 0 if no number will do.
func UnitsNeeded(other, figures int) int {
	for n := 1; n <= 1000; n++ {
		if stats.Least(n, other) <= Chance/float64(figures) {
			return n
		}
	}
	return 0
}

// lossesOf are the units of all runs, and what they are; nil if only whole runs are independent of
// each other.
func lossesOf(samples []Sample) (units []stats.Count, over string) {
	var all []Results
	for _, s := range samples {
		u := UpdateSummary{Acknowledged: s.Updates.N, Lost: s.Updates.K, LossInterval: LossInterval{LostOver: s.Over}}
		all = append(all, Results{Updates: u, Losses: s.Losses})
	}
	if over, units = lossUnits(all); over == OverRuns {
		return nil, over
	}
	return units, over
}

// faultsOf are the faults of all runs, one by one.
func faultsOf(samples []Sample) (units []stats.Count) {
	for _, s := range samples {
		for i := range s.Faults.N {
			u := stats.Count{N: 1}
			if i < s.Faults.K {
				u.K = 1
			}
			units = append(units, u)
		}
	}
	return units
}

func perSample(samples []Sample, of func(Sample) stats.Count) (units []stats.Count) {
	for _, s := range samples {
		units = append(units, of(s))
	}
	return units
}

func timesOf(samples []Sample, of func(Sample) *time.Duration) (all []time.Duration) {
	for _, s := range samples {
		if t := of(s); t != nil {
			all = append(all, *t)
		}
	}
	return all
}
