package hunt

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// guide chooses the next trial according to what earlier trials covered.
type guide struct {
	space space
	// pairs are the pairs of values, and cells the cells, that trials have covered.
	pairs map[string]bool
	cells map[Cell]bool
	// first are the first trials that are still to be made, nearly all with at most one fault. tries is how
	// often each of them may still be made if it fails.
	first []Trial
	tries map[string]int
	// drawn are the trials that next returned. All other trials were made before the hunt was interrupted.
	drawn map[string]bool
	// made counts the trials after the first ones. At first every trial covers pairs. Later every second one
	// does, as long as there are new pairs.
	made  int
	stale int // trials in a row that covered no new pair
	// pool has the trials that are changed next. If it is empty, new trials are drawn.
	pool []scored
	// asked counts the trials that the present rung handed out, and rung has their scores. In the first rung
	// these are all trials made before any was changed.
	asked int
	rung  []scored
}

type scored struct {
	trial Trial
	score float64
}

// generation is the smallest size of the first rung. Each later rung keeps the better half of the one before
// and changes its trials twice as often (successive halving).
const generation = 16

// enoughPairs in a row without a new pair end the search for pairs.
const enoughPairs = 8

func newGuide(p Plan) *guide {
	g := &guide{space: p.space, tries: make(map[string]int), drawn: make(map[string]bool), pairs: make(map[string]bool), cells: make(map[Cell]bool)}
	for i, t := range p.space.first(rand.New(rand.NewPCG(p.Seed, math.MaxUint64))) {
		if p.Shard.Has(i) {
			g.first, g.tries[t.key()] = append(g.first, t), 2
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
	if len(g.first) > 0 {
		first := g.first[0]
		g.first = g.first[1:]
		return first
	}
	g.made++
	if g.isCovering() {
		return g.cover(rng)
	}
	if len(g.pool) == 0 {
		return g.space.draw(rng)
	}
	parent := g.pool[g.asked%len(g.pool)]
	g.asked++
	return g.space.change(rng, parent.trial)
}

// isCovering says whether the present trial is chosen to cover pairs.
func (g *guide) isCovering() bool {
	return g.stale < enoughPairs && (g.isBeginning() || g.made%2 == 0)
}

// isBeginning says whether the first trials are still being made, or the early generations in which every trial
// is chosen to cover new pairs.
func (g *guide) isBeginning() bool {
	return len(g.first) > 0 || g.stale < enoughPairs && g.made <= 2*generation
}

// cover draws some trials and returns the one with the most new pairs.
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
	g.markCovered(best)
	return best
}

func (g *guide) markCovered(t Trial) {
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

// learn records which cells a trial covered first, and how near the trial came to a violation, 0 to 1.
func (g *guide) learn(t Trial, fresh []Cell, nearness float64, guided bool) {
	_, isSingle := g.tries[t.key()]
	if guided && !isSingle && !g.drawn[t.key()] { // made before the hunt was interrupted
		g.made++
		switch {
		case g.isCovering():
			g.markCovered(t)
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
		g.nextRung()
	}
}

// retry moves a first trial that failed, or whose faults were not exercised, to the end of the queue, once.
func (g *guide) retry(t Trial) {
	g.drop(t)
	if g.tries[t.key()] > 1 {
		g.tries[t.key()]--
		g.first = append(g.first, t)
	}
}

func (g *guide) drop(t Trial) {
	g.first = slices.DeleteFunc(g.first, func(other Trial) bool { return other.key() == t.key() })
}

// nextRung begins the next rung once the present one is complete. After a rung of one trial, new trials are
// drawn.
func (g *guide) nextRung() {
	if len(g.rung) < generation || g.isBeginning() {
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
