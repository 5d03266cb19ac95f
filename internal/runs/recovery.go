package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lockcheck/history"
)

const (
	// recoveryLimit is how long a cluster may need beyond the recovery period.
	recoveryLimit = 10 * time.Second
	// recoveryTolerance is the delay beyond the recovery period that is not reported.
	recoveryTolerance = time.Second
)

// recover waits until every server can serve and a worker was granted the lock again. The recovery
// period was for that; recover records by how much the period was too short. The checkers judge what
// this means for the lock.
func (r *run) recover(ctx context.Context, interrupt <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.recoveryLimit, recoveryLimit))
	defer cancel()
	interruptedEarly := cancelOn(ctx, cancel, interrupt)
	began := time.Now()
	err := r.awaitRecovery(ctx)
	interruptedEarly()
	if err != nil && Closed(interrupt) {
		return // the cluster might have recovered in time
	}
	overran := time.Since(began).Round(100 * time.Millisecond)
	var why string
	switch {
	case err != nil:
		why = fmt.Sprintf("not recovered %s after the recovery period: %v", overran, err)
	case overran > recoveryTolerance:
		why = fmt.Sprintf("recovered only %s after the recovery period", overran)
	}
	if why != "" {
		r.progress.Step("%s", why)
	}
	r.recorder.Phase(history.PhaseRecovered, why)
}

func (r *run) awaitRecovery(ctx context.Context) error {
	for _, server := range r.cluster.Servers() {
		if err := until(ctx, func() error { return server.Host.Ready(ctx) }); err != nil {
			return fmt.Errorf("%s: %w", server.Name, err)
		}
	}
	return until(ctx, r.canary.served)
}

// until calls ask until it returns no error. When the context is done, it returns the last error.
func until(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(statusInterval):
		}
	}
}

// canary says whether workers are granted the lock again after the last fault.
type canary struct {
	// everyone is closed when every live worker was granted the lock, each later than the time after which
	// the lock of a dead holder is free.
	everyone chan struct{}
	lease    time.Duration

	mu         sync.Mutex
	asking     map[string]bool // workers that wait for an answer
	gone       map[string]bool // workers that were killed
	unserved   map[string]bool // workers that everyone still waits for
	since      int64           // start of the recovery period, ns
	recovering bool
	asked      bool // a worker asked for the lock in the recovery period
	granted    bool // a worker was granted the lock in the recovery period
}

func newCanary(workers []string, lease time.Duration) *canary {
	c := &canary{
		everyone: make(chan struct{}), lease: lease,
		asking: make(map[string]bool), gone: make(map[string]bool), unserved: make(map[string]bool),
	}
	for _, name := range workers {
		c.unserved[name] = true
	}
	return c
}

// Observe sees an event.
func (c *canary) Observe(e history.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.F == history.Phase && e.Note == history.PhaseRecovery:
		c.recovering, c.since = true, e.Time
	case e.Fault != nil && history.Does(e.Fault.Kind, history.Ends) && e.Fault.Stage == history.Applied:
		for _, target := range e.Fault.Targets {
			c.gone[target] = true
			delete(c.unserved, target)
		}
	case e.F == history.Acquire:
		c.asking[e.Process] = e.Type == history.Invoke
		c.asked = c.asked || c.recovering && e.Type == history.Invoke
		c.granted = c.granted || c.recovering && e.Type == history.OK
		c.serve(e)
	}
}

// serve counts down the workers that are still to be granted the lock.
func (c *canary) serve(e history.Event) {
	if !c.recovering || e.Type != history.OK || e.Time < c.since+c.lease.Nanoseconds() || len(c.unserved) == 0 {
		return
	}
	if delete(c.unserved, e.Process); len(c.unserved) == 0 {
		close(c.everyone)
	}
}

// errNotServed says that workers ask for the lock and none is granted it.
var errNotServed = errors.New("no worker was granted the lock")

// served returns nil if a worker was granted the lock, or no worker asks for it any more.
func (c *canary) served() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if (c.asked || c.waited()) && !c.granted {
		return errNotServed
	}
	return nil
}

// waited says whether a live worker has been waiting since before the recovery period.
func (c *canary) waited() bool {
	for worker, asking := range c.asking {
		if asking && !c.gone[worker] {
			return true
		}
	}
	return false
}
