package suites

import (
	"context"
	"sync"
)

// Gate lets as many jobs in at once as its limit allows, of which each may take several places.
// One is always let in that is alone.
type Gate struct {
	mu    sync.Mutex
	moved *sync.Cond
	// used is how many places are taken of the limit, which is between 1 and most.
	used, limit, most int64
	good              int64 // jobs in a row for which there was time
}

// NewGate returns one with so many places.
func NewGate(most int64) *Gate {
	g := &Gate{limit: most, most: most}
	g.moved = sync.NewCond(&g.mu)
	return g
}

// enter waits until that many places are free. Its error is that of the context.
func (g *Gate) enter(ctx context.Context, places int64) error {
	defer context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.moved.Broadcast()
	})()
	g.mu.Lock()
	defer g.mu.Unlock()
	for ctx.Err() == nil && g.used > 0 && g.used+places > g.limit {
		g.moved.Wait()
	}
	if ctx.Err() == nil {
		g.used += places
	}
	return ctx.Err()
}

// leave gives places back.
func (g *Gate) leave(places int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used -= places
	g.moved.Broadcast()
}

// Limit is how many places there are at the moment, at least 1.
func (g *Gate) Limit() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int(g.limit)
}

// tell says whether a job was delayed by the machine. Then there is one place less for those to
// come, until as many in a row were not as would be let in twice over.
func (g *Gate) tell(delayed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if delayed {
		g.limit, g.good = max(1, g.limit-1), 0
		return
	}
	if g.good++; g.good >= 2*g.limit && g.limit < g.most {
		g.limit, g.good = g.limit+1, 0
		g.moved.Broadcast()
	}
}
