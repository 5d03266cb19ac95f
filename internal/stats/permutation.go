package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// mostExact is how many ways to part the runs are tried one by one; of more, as many are
// drawn.
const mostExact = 20_000

// Permutation is the probability of a difference between two sets of runs at least as large
// as the one between theirs, in either direction, if the sets are alike: if what came of a
// run did not depend on the set that it is in (R. A. Fisher, 1935). What is compared is the
// share that all runs of a set have together. Runs in which nothing could happen are left
// out; without any others in a set it is 1.
//
// All ways to part the runs are tried, or where there are more than 20,000 that many of
// them, always the same ones; what they give is then never below 1 in 20,000.
func Permutation(first, second []Count) float64 {
	first, second = Informative(first), Informative(second)
	if len(first) == 0 || len(second) == 0 {
		return 1
	}
	all := slices.Concat(first, second)
	p := parting{all: all, sum: Sum(all), size: len(first)}
	// Rounding must not leave out what is as far apart as what was seen.
	p.seen = p.apart(Sum(first)) - 1e-12
	if ways(len(all), len(first)) <= mostExact {
		p.each(0, 0, Count{})
	} else {
		p.draw()
	}
	return float64(p.far) / float64(p.tried)
}

// parting tries ways to part runs into two sets.
type parting struct {
	all        []Count
	sum        Count
	size       int     // of the first set
	seen       float64 // how far the sets were apart
	far, tried int     // as far apart, of all that were tried
}

// apart is how far the shares are apart if one set has that sum.
func (p *parting) apart(first Count) float64 {
	second := Count{p.sum.K - first.K, p.sum.N - first.N}
	return math.Abs(first.Share() - second.Share())
}

func (p *parting) try(first Count) {
	p.tried++
	if p.apart(first) >= p.seen {
		p.far++
	}
}

// each tries all ways to add runs from a place on to a set that has some already.
func (p *parting) each(from, chosen int, sum Count) {
	if chosen == p.size {
		p.try(sum)
		return
	}
	for i := from; i <= len(p.all)-(p.size-chosen); i++ {
		p.each(i+1, chosen+1, Count{sum.K + p.all[i].K, sum.N + p.all[i].N})
	}
}

// draw tries some ways. What was seen is one of them.
func (p *parting) draw() {
	p.far, p.tried = 1, 1
	random := rand.New(rand.NewPCG(1, 1))
	for p.tried < mostExact {
		for i := range p.size { // what is behind them need not be shuffled
			j := i + random.IntN(len(p.all)-i)
			p.all[i], p.all[j] = p.all[j], p.all[i]
		}
		p.try(Sum(p.all[:p.size]))
	}
}

// Least is the smallest probability that Permutation can give for sets of that many runs.
func Least(first, second int) float64 {
	if first < 1 || second < 1 {
		return 1
	}
	all := ways(first+second, first)
	if first == second { // the sets the other way round are as far apart
		all /= 2
	}
	return 1 / min(all, mostExact)
}

// RunsNeeded is how many runs each of two sets must have for so many comparisons of them to
// find any difference at a level, such as 0.05, that they share; 0 if no number will do.
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

// ways is in how many ways some of n can be chosen.
func ways(n, some int) float64 {
	all := 1.0
	for i := 1; i <= some; i++ {
		all = all * float64(n-some+i) / float64(i)
	}
	return math.Round(all)
}

// Significant says which of several probabilities are too small to be attributed to chance,
// so that with a probability of at most level any of them is called so wrongly (S. Holm,
// 1979).
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
