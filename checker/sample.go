package checker

import (
	"cmp"
	"math"
	"slices"
	"time"

	"lockcheck/internal/stats"
)

// Sample is the data of a run that is compared with other runs of the same test.
type Sample struct {
	Updates stats.Count `json:"updates"` // lost of acknowledged updates
	// Losses are the independent parts of Updates, and Over names their unit: see LossInterval.
	Losses []stats.Count `json:"losses,omitempty"`
	Over   string        `json:"over,omitempty"`
	// Faults counts the faults that counted, and among them those after which something was violated before
	// the next one began. N is 0 without such faults, and if not all violations are listed.
	Faults stats.Count `json:"faults"`
	// Wait and Failover are 99th percentiles, see Measures. They are nil without data, and forEver if that
	// many times never came to an end.
	Wait     *time.Duration `json:"wait_p99_ns,omitempty"`
	Failover *time.Duration `json:"failover_p99_ns,omitempty"`
}

// forEver stands for a time that did not end.
const forEver = time.Duration(math.MaxInt64)

// SampleOf returns the sample of a run.
func SampleOf(r Results) Sample {
	pool := PoolOf([]Results{r})
	return Sample{
		Updates: stats.Count{K: r.Updates.Lost, N: r.Updates.Acknowledged}, Losses: r.Losses, Over: r.Updates.LostOver,
		Faults: faultsWithIncidents(r), Wait: sampled(pool.Measures.Wait, 0), Failover: sampled(pool.Measures.Failover, pool.Stuck),
	}
}

// sampled is the 99th percentile of times, of which endless more never came to an end.
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

// Change is a figure of two sets of runs of the same test, before and now.
type Change struct {
	What Quantity `json:"what"`
	// Before and Now are shares, or medians over the runs in ns if Time.
	Before float64 `json:"before"`
	Now    float64 `json:"now"`
	Time   bool    `json:"time,omitempty"`
	// Units are the numbers of independent units in each set, and Over names the unit.
	Units [2]int `json:"units"`
	Over  string `json:"over"`
	// Chance is the probability of such a difference if there is none, see stats.Permutation.
	Chance float64 `json:"chance"`
	// Compared means that there are enough units for a difference to be found.
	Compared bool `json:"compared"`
	// Shown means that the difference is statistically significant.
	Shown bool `json:"shown"`
	// Found is the smallest value of Now that would have been found, by the spread before; 0 if none would.
	Found float64 `json:"found,omitempty"`

	before, now []stats.Count
}

// leastSlower is the factor by which a time must be longer to count as worse, because machines differ.
const leastSlower = 1.25

// Worse says whether the figure is significantly worse now.
func (c Change) Worse() bool {
	return c.Shown && c.Now > c.Before && (!c.Time || c.Now >= leastSlower*c.Before)
}

// Better says whether the figure is significantly better now.
func (c Change) Better() bool { return c.Shown && c.Now < c.Before }

// Changes lists the figures by which two sets of runs can be compared, if any of the runs have data for them.
// DecideChanges must judge them together with those of all other tests.
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

// chanceOf compares the shares of units by their ranks. The number of updates in a unit depends on the
// machine and must not make the loss of one unit look like many.
func chanceOf(before, now []stats.Count) float64 {
	shares := func(units []stats.Count) (all []float64) {
		for _, u := range units {
			all = append(all, u.Share())
		}
		return all
	}
	return stats.Permutation(stats.Ranks(shares(before), shares(now)))
}

// DecideChanges judges all figures of all tests together. The probability that it calls any of them different
// although none is does not exceed Chance (Holm).
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

// leastFound is the smallest share now that would have been found. It assumes units that lose all or nothing,
// because losses come in bursts.
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

// UnitsNeeded is how many units a set needs for DecideChanges to find a difference from another set. other is
// the number of units of that set, figures the number of figures; 0 if no number is enough.
func UnitsNeeded(other, figures int) int {
	for n := 1; n <= 1000; n++ {
		if stats.Least(n, other) <= Chance/float64(figures) {
			return n
		}
	}
	return 0
}

// lossesOf returns the units of all runs, and their name; nil if only whole runs are independent of each
// other.
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

// faultsOf returns the faults of all runs as units of one fault each.
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
