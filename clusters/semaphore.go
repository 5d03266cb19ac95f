package clusters

import (
	"context"
	"io"
	"slices"
	"sync"

	"lockcheck/clients"
	"lockcheck/history"
)

// memorySemaphoreSpec is the embedded semaphore service.
func memorySemaphoreSpec() Spec {
	spec := memorySpec()
	spec.Name, spec.Embedded = "memory-semaphore", serveSemaphore
	return spec
}

// semaphores is the textbook semaphore service: of each key the leases of those who hold a
// permit, on its own monotonic clock. How many there are says who asks.
type semaphores struct {
	now func() int64 // ns

	mu   sync.Mutex
	held map[string][]lease
}

func newSemaphores() *semaphores {
	return &semaphores{now: history.Now, held: make(map[string][]lease)}
}

func (s *semaphores) methods() methods { return methods{s.acquire, s.renew, s.release, s.holder} }

func serveSemaphore(ctx context.Context, socket string, input io.Reader) error {
	return newSemaphores().methods().serve(ctx, socket, input)
}

// acquire grants a permit if one is free; a refusal names the one whose lease began first.
func (s *semaphores) acquire(r clients.MemoryRequest) clients.MemoryReply {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.live(r.Key)
	if len(held) >= max(1, r.Permits) {
		return clients.MemoryReply{Holder: held[0].holder}
	}
	s.held[r.Key] = append(held, lease{holder: r.ID, until: s.now() + r.TTL.Nanoseconds()})
	return clients.MemoryReply{Done: true}
}

func (s *semaphores) renew(r clients.MemoryRequest) clients.MemoryReply {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.at(r)
	if i >= 0 {
		s.held[r.Key][i].until = s.now() + r.TTL.Nanoseconds()
	}
	return clients.MemoryReply{Done: i >= 0}
}

func (s *semaphores) release(r clients.MemoryRequest) clients.MemoryReply {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.at(r)
	if i >= 0 {
		s.held[r.Key] = slices.Delete(s.held[r.Key], i, i+1)
	}
	return clients.MemoryReply{Done: i >= 0}
}

func (s *semaphores) holder(r clients.MemoryRequest) clients.MemoryReply {
	s.mu.Lock()
	defer s.mu.Unlock()
	return clients.MemoryReply{Done: s.at(r) >= 0}
}

// at is the place of a grant among those that hold a permit of its key, -1 if it has none.
func (s *semaphores) at(r clients.MemoryRequest) int {
	return slices.IndexFunc(s.live(r.Key), func(l lease) bool { return l.holder == r.ID })
}

// live drops the leases of a key that have run out, and returns the others in the order of
// their grants.
func (s *semaphores) live(key string) []lease {
	now := s.now()
	s.held[key] = slices.DeleteFunc(s.held[key], func(l lease) bool { return now >= l.until })
	return s.held[key]
}
