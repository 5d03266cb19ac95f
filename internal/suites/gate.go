package suites

import (
	"context"
	"sync"
)

// Gate admits as many jobs at once as its limit allows. Each job may take several places. When no other job
// runs, a job is always admitted.
type Gate struct {
	mu    sync.Mutex
	moved *sync.Cond
	// used is how many places are taken. limit is how many there are at the moment, between 1 and most.
	used, limit, most int64
	undelayed         int64 // how many jobs in a row were not delayed
}

// NewGate returns a gate with a number of places.
func NewGate(most int64) *Gate {
	g := &Gate{limit: most, most: most}
	g.moved = sync.NewCond(&g.mu)
	return g
}

// enter waits until that many places are free. It returns the error of the context.
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

// adapt lowers the limit by one if the machine delayed a job. The limit rises again after a row of jobs
// without a delay that is twice as long as the limit.
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
