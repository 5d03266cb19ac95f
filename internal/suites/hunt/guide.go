package hunt

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// guide decides what to try next by what was tried.
type guide struct {
	space space
	// pairs of features that were tried together, and cells that were met.
	pairs map[string]bool
	cells map[Cell]bool
	// single are the first trials that are still to be made, nearly all with one fault or none, and tries how
	// often each of them may still be made until it tells something.
	single []Trial
	tries  map[string]int
	// drawn are the trials that next made: all others were made before the hunt was interrupted.
	drawn map[string]bool
	// made is how many trials were after them. The first ones cover pairs, and later every other
	// one, as long as there are new ones.
	made int
	// covering is how many trials in a row covered no new pair.
	covering int
	// pool has the trials that are changed next; none where the next ones are drawn.
	pool []scored
	// asked is how many trials the present rung was asked for, and rung what came back: for the first of
	// them all that were made before any is changed.
	asked int
	rung  []scored
}

// scored is a trial and what it was worth.
type scored struct {
	trial Trial
	score float64
}

// generation is how many trials a rung has at least. The best go on, of each rung half as many as of
// the one before, and are changed twice as often (successive halving).
const generation = 16

// enoughPairs is how many trials in a row may fail to cover a new pair before covering is over.
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

// next makes a trial.
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

// covers says whether the trial that is made now is one that covers pairs.
func (g *guide) covers() bool {
	return g.covering < enoughPairs && (g.beginning() || g.made%2 == 0)
}

// beginning says whether first trials are made, or those after them that all cover pairs.
func (g *guide) beginning() bool {
	return len(g.single) > 0 || g.covering < enoughPairs && g.made <= 2*generation
}

// cover draws some trials, and takes the one with the most pairs that are new.
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
	g.covering++
	if g.fresh(t) > 0 {
		g.covering = 0
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

// learn takes in what a trial met that nobody had met before, whoever drew it.
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

// retry makes one of the first trials that failed, or whose faults met nobody, once more, after the others.
func (g *guide) retry(t Trial) {
	g.drop(t)
	if g.tries[t.key()] > 1 {
		g.tries[t.key()]--
		g.single = append(g.single, t)
	}
}

// drop takes a trial out of those that are still to be made.
func (g *guide) drop(t Trial) {
	g.single = slices.DeleteFunc(g.single, func(other Trial) bool { return other.key() == t.key() })
}

// climb begins the next rung once as many trials as one has are back. After that of a single
// trial a bracket is over, and the next one begins with trials that are drawn.
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
