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
	"lockcheck/history"
)

// memorySpec is the embedded lock service.
func memorySpec() Spec {
	return Spec{
		Name: "memory", Nodes: 1, Embedded: serveMemory,
		Server: func(int) Server { return Server{Program: "memory", Probes: memoryProbes{}} },
	}
}

// memory5Spec is that service five times, each with leases on its own wall clock, which can
// be moved: they are processes of ours.
func memory5Spec() Spec {
	return Spec{
		Name: "memory5", Nodes: 5, Sizes: []int{3}, Embedded: serveMemoryByWallClock, WallClock: true,
		Server: func(int) Server { return Server{Program: "memory", Probes: wallClockProbes{}} },
	}
}

// noneSpec is for a lock without servers.
func noneSpec() Spec { return Spec{Name: "none"} }

// leases is the textbook lock service: a table of leases on its own monotonic
// clock, and one counter of tokens.
type leases struct {
	now func() int64 // ns

	mu      sync.Mutex
	held    map[string]lease
	readers map[string][]lease // that share a key, in the order of their grants
	token   uint64
}

type lease struct {
	holder string
	token  uint64
	until  int64
}

func (l *leases) acquire(r clients.MemoryRequest) clients.MemoryReply {
	l.mu.Lock()
	defer l.mu.Unlock()
	if current, held := l.live(r.Key); held {
		return clients.MemoryReply{Holder: current.holder}
	}
	readers := l.reading(r.Key)
	if !r.Shared && len(readers) > 0 {
		return clients.MemoryReply{Holder: readers[0].holder}
	}
	return l.grant(r)
}

// grant gives a key to a request.
func (l *leases) grant(r clients.MemoryRequest) clients.MemoryReply {
	l.token++
	granted := lease{holder: r.ID, token: l.token, until: l.now() + r.TTL.Nanoseconds()}
	if r.Shared {
		l.readers[r.Key] = append(l.readers[r.Key], granted)
	} else {
		l.held[r.Key] = granted
	}
	return clients.MemoryReply{Done: true, Token: l.token}
}

// reading returns the leases of those who share a key that have not run out.
func (l *leases) reading(key string) []lease {
	readers := slices.DeleteFunc(l.readers[key], func(r lease) bool { return l.now() >= r.until })
	if len(readers) == 0 {
		delete(l.readers, key)
		return nil
	}
	l.readers[key] = readers
	return readers
}

// reader returns that of a holder who shares a key, nil if it has none.
func (l *leases) reader(key, holder string) *lease {
	readers := l.reading(key)
	if i := slices.IndexFunc(readers, func(r lease) bool { return r.holder == holder }); i >= 0 {
		return &readers[i]
	}
	return nil
}

func (l *leases) renew(r clients.MemoryRequest) clients.MemoryReply {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reader := l.reader(r.Key, r.ID); reader != nil {
		reader.until = l.now() + r.TTL.Nanoseconds()
		return clients.MemoryReply{Done: true, Token: reader.token}
	}
	current, held := l.live(r.Key)
	if !held || current.holder != r.ID {
		return clients.MemoryReply{Holder: current.holder}
	}
	current.until = l.now() + r.TTL.Nanoseconds()
	l.held[r.Key] = current
	return clients.MemoryReply{Done: true, Token: current.token}
}

func (l *leases) release(r clients.MemoryRequest) clients.MemoryReply {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reader := l.reader(r.Key, r.ID); reader != nil {
		reader.until = l.now()
		return clients.MemoryReply{Done: true, Token: reader.token}
	}
	current, held := l.live(r.Key)
	if !held || current.holder != r.ID {
		return clients.MemoryReply{Holder: current.holder}
	}
	delete(l.held, r.Key)
	return clients.MemoryReply{Done: true, Token: current.token}
}

func (l *leases) holder(r clients.MemoryRequest) clients.MemoryReply {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reader := l.reader(r.Key, r.ID); reader != nil {
		return clients.MemoryReply{Done: true, Holder: r.ID, Token: reader.token}
	}
	current, held := l.live(r.Key)
	return clients.MemoryReply{Done: held && current.holder == r.ID, Holder: current.holder, Token: current.token}
}

// live returns the lease of a key unless it has run out.
func (l *leases) live(key string) (lease, bool) {
	current, held := l.held[key]
	if held && l.now() >= current.until {
		delete(l.held, key)
		return lease{}, false
	}
	return current, held
}

// method is one of an embedded lock service.
type method func(clients.MemoryRequest) clients.MemoryReply

// methods are what an embedded lock service answers; holder says whether a request is
// that of the holder.
type methods struct{ acquire, renew, release, holder method }

func newLeases() *leases {
	return &leases{now: history.Now, held: make(map[string]lease), readers: make(map[string][]lease)}
}

func (l *leases) methods() methods { return methods{l.acquire, l.renew, l.release, l.holder} }

// serveMemory serves the lock on the socket until the input ends.
func serveMemory(ctx context.Context, socket string, input io.Reader) error {
	return newLeases().methods().serve(ctx, socket, input)
}

// serveMemoryByWallClock does so with leases that end by the wall clock of the process, as
// those of Redis do.
func serveMemoryByWallClock(ctx context.Context, socket string, input io.Reader) error {
	l := newLeases()
	l.now = wallClock
	return l.methods().serve(ctx, socket, input)
}

func wallClock() int64 { return time.Now().UnixNano() }

func (m methods) serve(ctx context.Context, socket string, input io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, input)
	}()
	return unixrpc.Serve(ctx, socket, map[string]http.HandlerFunc{
		"acquire": unixrpc.Method(m.acquire),
		"renew":   unixrpc.Method(m.renew),
		"release": unixrpc.Method(m.release),
		"holder":  unixrpc.Method(m.holder),
		"time":    unixrpc.Method(func(struct{}) int64 { return wallClock() }),
	})
}

// memoryProbes asks the embedded lock service.
type memoryProbes struct{}

var _ agent.Probes = memoryProbes{}

// Ready asks for the release of a lock that nobody has.
func (memoryProbes) Ready(ctx context.Context, socket string) error {
	client := unixrpc.NewClient(socket)
	defer client.Close()
	var reply clients.MemoryReply
	return client.Call(ctx, "release", clients.MemoryRequest{Key: "ready"}, &reply)
}

func (memoryProbes) Clock(context.Context, string) (time.Time, error) {
	return time.Time{}, errors.New("the embedded lock has no wall clock")
}

// wallClockProbes asks an embedded lock service that has a wall clock.
type wallClockProbes struct{ memoryProbes }

func (wallClockProbes) Clock(ctx context.Context, socket string) (time.Time, error) {
	client := unixrpc.NewClient(socket)
	defer client.Close()
	var told int64
	err := client.Call(ctx, "time", struct{}{}, &told)
	return time.Unix(0, told), err
}

func (memoryProbes) Version(context.Context, string) (string, error) { return "", nil }
