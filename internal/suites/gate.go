package suites

import (
	"context"
	"sync"
)

// Gate admits as many jobs at once as its limit allows. Each job may take several places. A job
// that is alone is always admitted.
type Gate struct {
	mu    sync.Mutex
	moved *sync.Cond
	// used is how many places are taken of the limit, which is between 1 and most.
	used, limit, most int64
	undelayed         int64 // how many jobs in a row were not delayed
}

// NewGate returns a gate with a number of places.
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

// adapt takes into account whether the machine delayed a job. If it did, the limit falls by one; after
// twice as many jobs in a row as the limit without a delay it rises again.
func (g *Gate) adapt(delayed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if delayed {
		g.limit, g.undelayed = max(1, g.limit-1), 0
		return
	}
	if g.undelayed++; g.undelayed >= 2*g.limit && g.limit < g.most {
		g.limit, g.undelayed = g.limit+1, 0
		g.moved.Broadcast()
	}
}
