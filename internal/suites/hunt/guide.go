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
	cells map[cell]bool
	// single are the trials with one fault that are still to be made, which come first.
	single []Trial
	// made is how many trials were after them. The first ones cover pairs, and later every other
	// one, as long as there are new ones.
	made int
	// covering is how many trials in a row covered no new pair.
	covering int
	// pool has the trials that are changed next; none where the next ones are drawn.
	pool []scored
	// asked is how many trials the present rung was asked for, and rung what came back.
	asked int
	rung  []scored
}

// scored is a trial and what it was worth.
type scored struct {
	trial Trial
	score float64
}

// generation is how many trials a bracket begins with. Of each rung the better half goes on,
// and is changed twice as often (successive halving).
const generation = 16

// enoughPairs is how many trials in a row may fail to cover a new pair before covering is over.
const enoughPairs = 8

func newGuide(p Plan) *guide {
	var singles []Trial
	for i, t := range p.space.singles(rand.New(rand.NewPCG(p.Seed, math.MaxUint64))) {
		if p.Shard.Has(i) {
			singles = append(singles, t)
		}
	}
	return &guide{space: p.space, single: singles, pairs: make(map[string]bool), cells: make(map[cell]bool)}
}

// unaided are the trials without faults that each hunt begins with: what needs none is found
// by long sections, or by many holds.
func unaided() []Trial {
	return []Trial{{Workers: 3, Section: sections()[1]}, {Workers: 5, Section: shortest}}
}

// next makes a trial.
func (g *guide) next(rng *rand.Rand) Trial {
	if len(g.single) > 0 {
		first := g.single[0]
		g.single = g.single[1:]
		return first
	}
	g.made++
	if first := g.made <= 2*generation; g.covering < enoughPairs && (first || g.made%2 == 0) {
		return g.cover(rng)
	}
	if len(g.pool) == 0 {
		return g.space.draw(rng)
	}
	parent := g.pool[g.asked%len(g.pool)]
	g.asked++
	return g.space.change(rng, parent.trial)
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
	g.covering++
	if most > 0 {
		g.covering = 0
	}
	for _, pair := range best.pairs() {
		g.pairs[pair] = true
	}
	return best
}

func (g *guide) fresh(t Trial) (n int) {
	for _, pair := range t.pairs() {
		if !g.pairs[pair] {
			n++
		}
	}
	return n
}

// told learns what a trial met. It returns the cells that nobody had met before, whoever
// drew the trial.
func (g *guide) told(t Trial, met []cell, nearness float64, guided bool) (fresh []cell) {
	g.single = slices.DeleteFunc(g.single, func(other Trial) bool { return other.key() == t.key() })
	for _, c := range met {
		if !g.cells[c] {
			g.cells[c] = true
			fresh = append(fresh, c)
		}
	}
	for _, pair := range t.pairs() {
		g.pairs[pair] = true
	}
	if guided {
		g.rung = append(g.rung, scored{t, nearness + min(1, float64(len(fresh))/10)})
		g.climb()
	}
	return fresh
}

// climb begins the next rung once as many trials as one has are back. After that of a single
// trial a bracket is over, and the next one begins with trials that are drawn.
func (g *guide) climb() {
	if len(g.rung) < generation {
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
