//go:build !embedded

package clients

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
)

// consulSemaphore is api.Semaphore of Consul's own client, used as its godoc shows: SemaphoreOpts with a
// session that the library creates, renews and destroys, an attempt bounded by SemaphoreTryOnce and
// SemaphoreWaitTime, Release, and a watch on Acquire's channel. Each worker uses one server, as an application
// uses its local agent.
type consulSemaphore struct {
	servers  *consulLock
	permits  int
	attempts handles[*consulPermit]
}

type consulPermit struct {
	mu        sync.Mutex // serializes calls of the library, which also locks by itself
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
	s.attempts.put(a.ID, p) // before the call, so that a caller who abandons it can still release the attempt
	lost, err := p.semaphore.Acquire(ctx.Done())
	switch {
	case err == nil && lost == nil:
		err = &BusyError{}
	case err != nil && !p.wire.asked.Load():
		err = &NoEffectError{Err: err}
	case err == nil:
		return Grant{Key: a.Key, ID: a.ID, Lost: lost}, nil
	default: // unknown outcome: the handle stays, so that the attempt can be released
		return Grant{}, err
	}
	s.attempts.take(a.ID)
	return Grant{}, err
}

// prepare creates the library's semaphore for an attempt. The attempt has a client of its own, so its requests
// can be distinguished from those of others. All clients share the connections.
func (s *consulSemaphore) prepare(ctx context.Context, a Attempt) (*consulPermit, error) {
	wire := newConsulWire(s.servers.open, s.servers.transport, "cas", s.servers.config.renewals(a))
	client, err := newConsulClient(s.servers.config.Nodes[s.servers.server()], wire)
	if err != nil {
		return nil, err
	}
	options := &api.SemaphoreOptions{
		// The slash separates k1 from k10, because the library reads all keys with the prefix.
		Prefix: a.Key + "/", Limit: s.permits, Value: []byte(a.ID), SessionName: a.ID, SessionTTL: a.TTL.String(),
	}
	if deadline, limited := ctx.Deadline(); limited {
		options.SemaphoreTryOnce = true
		options.SemaphoreWaitTime = max(time.Until(deadline), time.Millisecond)
	}
	semaphore, err := client.SemaphoreOpts(options)
	return &consulPermit{semaphore: semaphore, wire: wire}, err
}

// Release returns ErrNotHeld if the permit was no longer held. The library discards that: it writes the list of
// holders only if its session is in it.
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
