package bench

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clients/protocol"
	"lockcheck/clients/serve"
	"lockcheck/clusters"
	"lockcheck/clusters/clustertest"
)

const (
	embedded = "memory" // the name of the lock, and of its servers
	patience = 10 * time.Second
	// asClient is the environment variable that makes this program a client of the protocol.
	asClient = "LOCKCHECK_BENCH_CLIENT"
)

func TestMain(m *testing.M) {
	if os.Getenv(asClient) == "" {
		os.Exit(clustertest.Main(m))
	}
	if err := serve.Run(open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func config(socket string) clients.Config {
	return clients.Config{Worker: "w1", Nodes: []string{socket}, TTL: time.Minute, Timeout: patience}
}

// served is the library as a client of the protocol.
type served struct{ clients.Lock }

func open(s serve.Setup) (serve.Lock, string, error) {
	info, _ := clients.ByName(embedded)
	lock, err := info.Open(config(s.Servers[0].Address()))
	return served{lock}, embedded, err
}

func (s served) Acquire(ctx context.Context, a serve.Attempt) (serve.Grant, error) {
	grant, err := s.Lock.Acquire(ctx, clients.Attempt{Key: a.Key, ID: a.ID, TTL: a.TTL})
	return serve.Grant{Held: grant, Token: grant.Token}, err
}

func (s served) Release(ctx context.Context, g serve.Grant) error {
	return s.Lock.Release(ctx, g.Held.(clients.Grant))
}

// BenchmarkHold acquires and releases the embedded lock, once through its client library and once through the
// same library behind the client protocol. The difference is the cost of the protocol, at most 300 µs.
func BenchmarkHold(b *testing.B) {
	spec, _ := clusters.ByName(embedded)
	cluster, err := clusters.Start(b.Context(), clusters.Request{Run: "overhead", Spec: spec, Binary: clustertest.Binary(b)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := cluster.Close(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
	})
	library, _ := clients.ByName(embedded)
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	through := clients.Definition{Name: embedded, Program: protocol.Command{Args: []string{"env", asClient + "=1", self}}}
	for _, c := range []struct {
		name string
		info clients.Info
	}{{"library", library}, {"protocol", through.Info()}} {
		b.Run(c.name, func(b *testing.B) {
			lock, err := c.info.Open(config(cluster.Servers()[0].Address))
			if err != nil {
				b.Fatal(err)
			}
			defer lock.Close()
			for b.Loop() {
				grant, err := lock.Acquire(b.Context(), clients.Attempt{Key: "k0", ID: "a", TTL: time.Minute})
				if err == nil {
					err = lock.Release(b.Context(), grant)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
