package clients

import (
	"context"
	"fmt"
	"time"

	"lockcheck/clients/unixrpc"
	"lockcheck/history"
)

// MemoryRequest calls a method of the embedded lock service: acquire, renew, release or holder. Its servers are
// in package clusters.
type MemoryRequest struct {
	Key string        `json:"key"`
	ID  string        `json:"id"`
	TTL time.Duration `json:"ttl_ns,omitempty"`
	// Shared, in an acquire, requests the key in shared mode.
	Shared bool `json:"shared,omitempty"`
	// Permits, in an acquire of a semaphore, is how many clients may hold the key at once.
	Permits int `json:"permits,omitempty"`
}

// MemoryReply is the answer to a MemoryRequest.
type MemoryReply struct {
	Done   bool   `json:"done"`
	Holder string `json:"holder,omitempty"` // the current holder, if Done is false
	Token  uint64 `json:"token,omitempty"`
}

// memory is a client of the embedded lease lock, or of the embedded semaphore.
type memory struct {
	service *unixrpc.Client
	permits int // of a semaphore; 0 for the lease lock
}

// memoryServer is one of the embedded servers for Redlock.
type memoryServer struct{ *memory }

// openMemoryRedlock is Redlock on embedded servers.
func openMemoryRedlock(c Config) (Lock, error) {
	return newRedlock(c, func(socket string) redlockServer {
		return memoryServer{&memory{service: unixrpc.NewClient(socket)}}
	})
}

func (s memoryServer) set(ctx context.Context, a Attempt) error {
	_, err := s.Acquire(ctx, a)
	return err
}

func (s memoryServer) renew(ctx context.Context, g Grant, ttl time.Duration) error {
	_, err := s.Renew(ctx, g, ttl)
	return err
}

func (s memoryServer) release(ctx context.Context, g Grant) error { return s.Release(ctx, g) }

func (s memoryServer) holds(ctx context.Context, g Grant) (bool, error) { return s.Holds(ctx, g) }

func openMemory(c Config) (Lock, error) {
	if len(c.Nodes) != 1 {
		return nil, fmt.Errorf("memory needs one server, not %d", len(c.Nodes))
	}
	return &memory{service: unixrpc.NewClient(c.Nodes[0])}, nil
}

func openMemorySemaphore(c Config) (Lock, error) {
	if len(c.Nodes) != 1 {
		return nil, fmt.Errorf("memory-semaphore needs one server, not %d", len(c.Nodes))
	}
	return &memory{service: unixrpc.NewClient(c.Nodes[0]), permits: max(1, c.Permits)}, nil
}

func (m *memory) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	start := history.Now()
	reply, err := m.call(ctx, "acquire", MemoryRequest{Key: a.Key, ID: a.ID, TTL: a.TTL, Shared: a.Shared, Permits: m.permits})
	switch {
	case err != nil:
		return Grant{}, err
	case !reply.Done:
		return Grant{}, &BusyError{Holder: reply.Holder}
	}
	return Grant{Key: a.Key, ID: a.ID, Token: reply.Token, Until: start + a.TTL.Nanoseconds()}, nil
}

func (m *memory) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	start := history.Now()
	reply, err := m.call(ctx, "renew", MemoryRequest{Key: g.Key, ID: g.ID, TTL: ttl})
	switch {
	case err != nil:
		return 0, err
	case !reply.Done:
		return 0, ErrNotHeld
	}
	return start + ttl.Nanoseconds(), nil
}

func (m *memory) Release(ctx context.Context, g Grant) error {
	reply, err := m.call(ctx, "release", MemoryRequest{Key: g.Key, ID: g.ID})
	if err == nil && !reply.Done {
		err = ErrNotHeld
	}
	return err
}

// Holds implements Asker.
func (m *memory) Holds(ctx context.Context, g Grant) (bool, error) {
	reply, err := m.call(ctx, "holder", MemoryRequest{Key: g.Key, ID: g.ID})
	return reply.Done, err
}

func (m *memory) Close() error { return m.service.Close() }

func (m *memory) call(ctx context.Context, method string, request MemoryRequest) (MemoryReply, error) {
	var reply MemoryReply
	err := m.service.Call(ctx, method, request, &reply)
	if err != nil && unixrpc.NeverSent(err) {
		err = &NoEffectError{Err: err}
	}
	return reply, err
}
