package hunt

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// guide chooses the next trial by what earlier ones covered.
type guide struct {
	space space
	// pairs of values and cells that were covered.
	pairs map[string]bool
	cells map[Cell]bool
	// single are the first trials that are left, nearly all with at most one fault, and tries is how often each of them
	// may still be made if it fails.
	single []Trial
	tries  map[string]int
	// drawn are the trials that next returned. All others were made before the hunt was interrupted.
	drawn map[string]bool
	// made counts the trials after the first ones. At the beginning all of them cover pairs, later every other one, as
	// long as there are new pairs.
	made  int
	stale int // trials in a row that covered no new pair
	// pool has the trials that are changed next. If it is empty, the next ones are drawn.
	pool []scored
	// asked counts the trials that the present rung returned, and rung has those that came back, in the first rung all
	// trials before any is changed.
	asked int
	rung  []scored
}

type scored struct {
	trial Trial
	score float64
}

// generation is the least size of a rung. The best of a rung go on, half as many as of the rung before, and are changed
// twice as often (successive halving).
const generation = 16

// enoughPairs is how many trials in a row without a new pair end the covering of pairs.
const enoughPairs = 8

func newGuide(p Plan) *guide {
	g := &guide{space: p.space, tries: make(map[string]int), drawn: make(map[string]bool), pairs: make(map[string]bool), cells: make(map[Cell]bool)}
	for i, t := range p.space.first(rand.New(rand.NewPCG(p.Seed, math.MaxUint64))) {
		if p.Shard.Has(i) {
			g.single, g.tries[t.key()] = append(g.single, t), 2
		}
	}
	return g
}

func (g *guide) next(rng *rand.Rand) Trial {
	t := g.draw(rng)
	g.drawn[t.key()] = true
	return t
}

func (g *guide) draw(rng *rand.Rand) Trial {
	if len(g.single) > 0 {
		first := g.single[0]
		g.single = g.single[1:]
		return first
	}
	g.made++
	if g.covers() {
		return g.cover(rng)
	}
	if len(g.pool) == 0 {
		return g.space.draw(rng)
	}
	parent := g.pool[g.asked%len(g.pool)]
	g.asked++
	return g.space.change(rng, parent.trial)
}

// covers says whether the present trial is to cover pairs.
func (g *guide) covers() bool {
	return g.stale < enoughPairs && (g.beginning() || g.made%2 == 0)
}

// beginning reports whether the first trials are still being made, or the early generations in which
// every trial is chosen to cover new pairs.
func (g *guide) beginning() bool {
	return len(g.single) > 0 || g.stale < enoughPairs && g.made <= 2*generation
}

// cover takes, of some drawn trials, the one with the most new pairs.
func (g *guide) cover(rng *rand.Rand) Trial {
	const draws = 30
	var best Trial
	most := -1
	for range draws {
		t := g.space.draw(rng)
		if fresh := g.fresh(t); fresh > most {
			best, most = t, fresh
		}
	}
	g.covered(best)
	return best
}

func (g *guide) covered(t Trial) {
	g.stale++
	if g.fresh(t) > 0 {
		g.stale = 0
	}
	for _, pair := range t.pairs() {
		g.pairs[pair] = true
	}
}

func (g *guide) fresh(t Trial) (n int) {
	for _, pair := range t.pairs() {
		if !g.pairs[pair] {
			n++
		}
	}
	return n
}

// learn takes in what a trial covered first, and how near it came to a violation, 0 to 1.
func (g *guide) learn(t Trial, fresh []Cell, nearness float64, guided bool) {
	_, isSingle := g.tries[t.key()]
	if guided && !isSingle && !g.drawn[t.key()] { // before the hunt was interrupted
		g.made++
		switch {
		case g.covers():
			g.covered(t)
		case len(g.pool) > 0:
			g.asked++
		}
	}
	g.drop(t)
	for _, c := range fresh {
		g.cells[c] = true
	}
	for _, pair := range t.pairs() {
		g.pairs[pair] = true
	}
	if guided {
		g.rung = append(g.rung, scored{t, nearness + min(1, float64(len(fresh))/10)})
		g.climb()
	}
}

// retry puts a first trial that failed, or whose faults were not exercised, behind the others once.
func (g *guide) retry(t Trial) {
	g.drop(t)
	if g.tries[t.key()] > 1 {
		g.tries[t.key()]--
		g.single = append(g.single, t)
	}
}

func (g *guide) drop(t Trial) {
	g.single = slices.DeleteFunc(g.single, func(other Trial) bool { return other.key() == t.key() })
}

// climb begins the next rung once the present one is complete. After a rung of one trial, the next ones are drawn.
func (g *guide) climb() {
	if len(g.rung) < generation || g.beginning() {
		return
	}
	slices.SortStableFunc(g.rung, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	keep := len(g.pool) / 2
	if len(g.pool) == 0 {
		keep = generation / 2
	}
	g.pool = slices.Clone(g.rung[:keep])
	g.rung, g.asked = nil, 0
}
