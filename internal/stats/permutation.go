package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// mostExact is the number of partitions of the runs up to which all are tried. If there are more, as many are
// drawn.
const mostExact = 20_000

// Permutation is the p-value of a two-sided permutation test (R. A. Fisher, 1935). It is the probability of a
// difference at least as large as the observed one if the outcome of a run did not depend on its set. The
// compared figure is the pooled share of all runs of a set. Runs in which nothing could happen are left out;
// if a set has no others, the result is 1.
//
// All partitions of the runs are tried. If there are more than 20,000, that many are drawn, always the same
// ones; the result is then never below 1 in 20,000.
func Permutation(first, second []Count) float64 {
	first, second = Informative(first), Informative(second)
	if len(first) == 0 || len(second) == 0 {
		return 1
	}
	all := slices.Concat(first, second)
	p := parting{all: all, sum: Sum(all), size: len(first)}
	// Rounding must not exclude partitions that are exactly as far apart as the observed one.
	p.seen = p.apart(Sum(first)) - 1e-12
	if ways(len(all), len(first)) <= mostExact {
		p.each(0, 0, Count{})
	} else {
		p.draw()
	}
	return float64(p.atLeastAsFar) / float64(p.tried)
}

// parting tries partitions of runs into two sets.
type parting struct {
	all                 []Count
	sum                 Count
	size                int     // of the first set
	seen                float64 // observed difference between the sets
	atLeastAsFar, tried int     // partitions that differ at least as much, and all that were tried
}

// apart is the difference between the shares if the first set has that sum.
func (p *parting) apart(first Count) float64 {
	second := Count{p.sum.K - first.K, p.sum.N - first.N}
	return math.Abs(first.Share() - second.Share())
}

func (p *parting) count(first Count) {
	p.tried++
	if p.apart(first) >= p.seen {
		p.atLeastAsFar++
	}
}

// each tries all ways to complete a set that has chosen runs with runs from index from on.
func (p *parting) each(from, chosen int, sum Count) {
	if chosen == p.size {
		p.count(sum)
		return
	}
	for i := from; i <= len(p.all)-(p.size-chosen); i++ {
		p.each(i+1, chosen+1, Count{sum.K + p.all[i].K, sum.N + p.all[i].N})
	}
}

// draw tries random partitions, and the observed one.
func (p *parting) draw() {
	p.atLeastAsFar, p.tried = 1, 1
	random := rand.New(rand.NewPCG(1, 1))
	for p.tried < mostExact {
		for i := range p.size { // the rest need not be shuffled
			j := i + random.IntN(len(p.all)-i)
			p.all[i], p.all[j] = p.all[j], p.all[i]
		}
		p.count(Sum(p.all[:p.size]))
	}
}

// Least is the smallest probability that Permutation can return for sets of these sizes.
func Least(first, second int) float64 {
	if first < 1 || second < 1 {
		return 1
	}
	all := ways(first+second, first)
	if first == second { // swapping the sets gives the same difference
		all /= 2
	}
	return 1 / min(all, mostExact)
}

// RunsNeeded is how many runs each of two sets needs so that a number of comparisons, which share a
// significance level such as 0.05, can find any difference; 0 if no number is enough.
func RunsNeeded(comparisons int, level float64) int {
	if 1/float64(mostExact) > level/float64(comparisons) {
		return 0
	}
	n := 1
	for Least(n, n) > level/float64(comparisons) {
		n++
	}
	return n
}

// ways is the number of ways to choose some of n (binomial coefficient).
func ways(n, some int) float64 {
	all := 1.0
	for i := 1; i <= some; i++ {
		all = all * float64(n-some+i) / float64(i)
	}
	return math.Round(all)
}

// Significant says which of several p-values are significant, so that the family-wise error rate is at most
// level (S. Holm, 1979).
func Significant(probabilities []float64, level float64) []bool {
	order := make([]int, len(probabilities))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(probabilities[a], probabilities[b]) })
	all := make([]bool, len(probabilities))
	for rank, i := range order {
		if probabilities[i] > level/float64(len(order)-rank) {
			break
		}
		all[i] = true
	}
	return all
}
