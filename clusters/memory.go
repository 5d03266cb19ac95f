package clusters

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"lockcheck/clients"
	"lockcheck/clients/unixrpc"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/vdso"
	"lockcheck/history"
)

// memorySpec is the embedded lock service, changed by a mutation.
func memorySpec(name string, change mutation) Spec {
	return Spec{
		Name: name, Nodes: 1,
		Server: func(int) Server { return Server{Program: "memory", Probes: memoryProbes{}} },
		Embedded: func(ctx context.Context, socket string, input io.Reader) error {
			table := newLeases(history.Now)
			return change(table, table.methods()).serve(ctx, socket, input)
		},
	}
}

// memory5Spec is five instances of that service. Their leases use their own wall clocks, which can be moved, as
// in Redis.
func memory5Spec() Spec {
	return Spec{
		Name: "memory5", Nodes: 5, Sizes: []int{3}, WallClock: true,
		Server: func(int) Server { return Server{Program: "memory", Probes: wallClockProbes{}} },
		Embedded: func(ctx context.Context, socket string, input io.Reader) error {
			return newLeases(func() int64 { return time.Now().UnixNano() }).methods().serve(ctx, socket, input)
		},
	}
}

// mutation changes the methods of the textbook service.
type mutation func(*leases, methods) methods

// textbook changes nothing.
func textbook(_ *leases, m methods) methods { return m }

// answered changes the replies of a method.
func (do method) answered(change func(clients.MemoryRequest, *clients.MemoryReply)) method {
	return func(r clients.MemoryRequest) clients.MemoryReply {
		reply := do(r)
		change(r, &reply)
		return reply
	}
}

// withoutTokens is a service of semaphores: its grants have no order.
func withoutTokens(_ *leases, m methods) methods {
	m.acquire = m.acquire.answered(func(_ clients.MemoryRequest, reply *clients.MemoryReply) { reply.Token = 0 })
	return m
}

// noneSpec is for a lock without servers.
func noneSpec() Spec { return Spec{Name: "none"} }

// leases is the textbook lock service: a table of leases on the service's own monotonic clock, and one counter
// of tokens. Shared holders may hold a key together, and so may as many exclusive holders as there are permits.
type leases struct {
	now func() int64 // ns

	mu    sync.Mutex
	held  map[string][]lease // by key, in grant order
	token uint64
}

type lease struct {
	holder string
	token  uint64
	until  int64
	shared bool
}

// acquire grants a key, or names the holder with the oldest lease.
func (l *leases) acquire(r clients.MemoryRequest) clients.MemoryReply {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.live(r.Key)
	if r.Shared && !slices.ContainsFunc(held, exclusive) || !r.Shared && len(held) < max(1, r.Permits) {
		return l.grant(r)
	}
	return clients.MemoryReply{Holder: held[0].holder}
}

func exclusive(l lease) bool { return !l.shared }

// grant gives a key to a request.
func (l *leases) grant(r clients.MemoryRequest) clients.MemoryReply {
	l.token++
	l.held[r.Key] = append(l.held[r.Key], lease{holder: r.ID, token: l.token, until: l.now() + r.TTL.Nanoseconds(), shared: r.Shared})
	return clients.MemoryReply{Done: true, Token: l.token}
}

func (l *leases) renew(r clients.MemoryRequest) clients.MemoryReply {
	return l.ofHolder(r, func(at int) { l.held[r.Key][at].until = l.now() + r.TTL.Nanoseconds() })
}

func (l *leases) release(r clients.MemoryRequest) clients.MemoryReply {
	return l.ofHolder(r, func(at int) { l.held[r.Key] = slices.Delete(l.held[r.Key], at, at+1) })
}

func (l *leases) holder(r clients.MemoryRequest) clients.MemoryReply {
	return l.ofHolder(r, func(int) {})
}

// ofHolder calls do with the index of the caller's lease among those of the key. For another caller it names
// the holder with the oldest lease.
func (l *leases) ofHolder(r clients.MemoryRequest, do func(at int)) clients.MemoryReply {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.live(r.Key)
	at := slices.IndexFunc(held, func(l lease) bool { return l.holder == r.ID })
	switch {
	case len(held) == 0:
		return clients.MemoryReply{}
	case at < 0:
		return clients.MemoryReply{Holder: held[0].holder}
	}
	reply := clients.MemoryReply{Done: true, Token: held[at].token}
	do(at)
	return reply
}

// live returns the leases of a key that have not expired.
func (l *leases) live(key string) []lease {
	now := l.now()
	l.held[key] = slices.DeleteFunc(l.held[key], func(l lease) bool { return now >= l.until })
	if len(l.held[key]) == 0 {
		delete(l.held, key)
	}
	return l.held[key]
}

// method is a method of an embedded lock service.
type method func(clients.MemoryRequest) clients.MemoryReply

// methods are the methods of an embedded lock service. holder says whether the caller holds the lock.
type methods struct{ acquire, renew, release, holder method }

func newLeases(now func() int64) *leases {
	return &leases{now: now, held: make(map[string][]lease)}
}

func (l *leases) methods() methods { return methods{l.acquire, l.renew, l.release, l.holder} }

// serve serves the lock on the socket until the input ends.
func (m methods) serve(ctx context.Context, socket string, input io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, input)
	}()
	return unixrpc.Serve(ctx, socket, map[string]http.HandlerFunc{
		"acquire":       unixrpc.Method(m.acquire),
		"renew":         unixrpc.Method(m.renew),
		"release":       unixrpc.Method(m.release),
		"holder":        unixrpc.Method(m.holder),
		vdso.TimeMethod: vdso.TellTime(nil),
	})
}

type memoryProbes struct{}

var _ agent.Probes = memoryProbes{}

// Ready asks to release a lock that is not held.
func (memoryProbes) Ready(ctx context.Context, socket string) error {
	client := unixrpc.NewClient(socket)
	defer client.Close()
	var reply clients.MemoryReply
	return client.Call(ctx, "release", clients.MemoryRequest{Key: "ready"}, &reply)
}

func (memoryProbes) Clock(context.Context, string) (time.Time, error) {
	return time.Time{}, errors.New("the embedded lock has no wall clock")
}

func (memoryProbes) Version(context.Context, string) (string, error) { return "", nil }

// wallClockProbes asks an embedded lock service that has a wall clock.
type wallClockProbes struct{ memoryProbes }

func (wallClockProbes) Clock(ctx context.Context, socket string) (time.Time, error) {
	return vdso.Ask(ctx, socket)
}
