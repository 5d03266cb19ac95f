//go:build !embedded

package clients

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
)

// consulSemaphore is api.Semaphore of Consul's own client, as its godoc shows it:
// SemaphoreOpts with a session that the library makes, renews and destroys, an attempt
// bounded by SemaphoreTryOnce and SemaphoreWaitTime, Release, and Acquire's channel watched.
// Each worker asks one server, as an application asks the agent next to it.
type consulSemaphore struct {
	servers  *consulLock
	permits  int
	attempts handles[*consulPermit]
}

type consulPermit struct {
	mu        sync.Mutex // of the calls of the library, which keeps them apart, too
	semaphore *api.Semaphore
	wire      *consulWire
}

func openConsulSemaphore(c Config) (Lock, error) {
	servers, err := newConsulLock(c)
	if err != nil {
		return nil, err
	}
	return &consulSemaphore{servers: servers, permits: max(1, c.Permits)}, nil
}

func (s *consulSemaphore) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	p, err := s.prepare(ctx, a)
	if err != nil {
		return Grant{}, &NoEffectError{Err: err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.attempts.put(a.ID, p) // who gives the call up before it returns takes it back, too
	lost, err := p.semaphore.Acquire(ctx.Done())
	switch {
	case err == nil && lost == nil:
		err = &BusyError{}
	case err != nil && !p.wire.asked.Load():
		err = &NoEffectError{Err: err}
	case err == nil:
		return Grant{Key: a.Key, ID: a.ID, Lost: lost}, nil
	default: // one of unknown outcome is released, too
		return Grant{}, err
	}
	s.attempts.take(a.ID)
	return Grant{}, err
}

// prepare makes the library's semaphore for an attempt, with a client of its own: so its
// requests are told from those of others. They share the connections.
func (s *consulSemaphore) prepare(ctx context.Context, a Attempt) (*consulPermit, error) {
	wire := newConsulWire(s.servers.open, s.servers.transport, "cas")
	client, err := newConsulClient(s.servers.config.Nodes[s.servers.server()], wire)
	if err != nil {
		return nil, err
	}
	options := &api.SemaphoreOptions{
		// The slash keeps the keys of k10 out of what is read of k1.
		Prefix: a.Key + "/", Limit: s.permits, Value: []byte(a.ID), SessionName: a.ID, SessionTTL: a.TTL.String(),
	}
	if deadline, limited := ctx.Deadline(); limited {
		options.SemaphoreTryOnce = true
		options.SemaphoreWaitTime = max(time.Until(deadline), time.Millisecond)
	}
	semaphore, err := client.SemaphoreOpts(options)
	return &consulPermit{semaphore: semaphore, wire: wire}, err
}

// Release says whether the permit was still held, which the library drops: it looks for its
// session in the list of holders, and changes that only if it is there.
func (s *consulSemaphore) Release(_ context.Context, g Grant) error {
	p, known := s.attempts.take(g.ID)
	if !known {
		return errNoHandle
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wire.held.Store(false)
	err := p.semaphore.Release()
	if err == nil && !p.wire.held.Load() {
		return ErrNotHeld
	}
	return err
}

func (s *consulSemaphore) Close() error { return s.servers.Close() }
