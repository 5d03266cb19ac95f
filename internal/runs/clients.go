package runs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"lockcheck/clusters"
	"lockcheck/history"
	"lockcheck/workloads"
)

// clientsTime bounds how long a user's clients may take to start. The protocol has its own bound, and its
// error names the client that did not start.
const clientsTime = time.Minute

// roll reports when each of some programs has said that its client has started.
type roll struct {
	complete chan struct{} // closed when all have

	mu      sync.Mutex
	missing map[string]bool
}

func newRoll(programs []*clusters.Node) *roll {
	r := &roll{complete: make(chan struct{}), missing: make(map[string]bool)}
	for _, p := range programs {
		r.missing[p.Name] = true
	}
	return r
}

// Observe sees an event.
func (r *roll) Observe(e history.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.F != history.Client || !r.missing[e.Process] {
		return
	}
	if delete(r.missing, e.Process); len(r.missing) == 0 {
		close(r.complete)
	}
}

// begin lets the workers begin. Clients of a user's lock may take long to start, so they all start together,
// and faults begin only after the last of them has started.
func (r *run) begin(ctx context.Context, interrupt <-chan struct{}) (interrupted bool, err error) {
	clients := slices.Clone(r.workers)
	if r.guard() == workloads.Ask {
		clients = append(clients, r.resource)
	}
	present := newRoll(clients)
	if r.lock.Definition != nil {
		r.recorder.observe = append(r.recorder.observe, present.Observe)
	}
	r.followAll()
	if err := command(clients, workloads.CommandOpen); err != nil {
		return false, err
	}
	if r.lock.Definition != nil {
		r.progress.Step("starting the clients")
		if interrupted, err := r.awaitClients(ctx, interrupt, present); interrupted || err != nil {
			return interrupted, err
		}
	}
	return false, command(r.workers, workloads.CommandGo)
}

func (r *run) awaitClients(ctx context.Context, interrupt <-chan struct{}, present *roll) (interrupted bool, err error) {
	limit := time.NewTimer(clientsTime)
	defer limit.Stop()
	select {
	case <-present.complete:
		return false, nil
	case <-interrupt:
		return true, nil
	case <-ctx.Done():
		return true, nil
	case err := <-r.failed:
		return false, err
	case <-limit.C:
		return false, fmt.Errorf("not all clients have begun within %s", clientsTime)
	}
}

// command sends a command to programs.
func command(programs []*clusters.Node, text string) error {
	for _, p := range programs {
		if _, err := io.WriteString(p.Input, text+"\n"); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}
