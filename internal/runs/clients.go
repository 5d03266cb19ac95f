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

// clientsTime bounds how long the clients of a user's own may take to begin. The protocol
// bounds it, too, and says then which of them did not.
const clientsTime = time.Minute

// roll tells when each of some programs has said that its client has begun.
type roll struct {
	complete chan struct{} // closed then

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

// begin lets the workers begin. Those with a client of the user's own, which may take long to
// start, do so together: no fault comes before the last of them.
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

// command tells programs what to do.
func command(programs []*clusters.Node, text string) error {
	for _, p := range programs {
		if _, err := io.WriteString(p.Input, text+"\n"); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}
