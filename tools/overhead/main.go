// Command overhead measures what lockcheck adds to a lock. It calls one client library
// directly, and through the client protocol, on the same embedded lock service, and fails if
// too much is added; then it compares a worker with a bare loop of its client. The figures of
// the last run are in results.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"lockcheck/clients"
	"lockcheck/clients/protocol"
	"lockcheck/clients/serve"
	"lockcheck/clusters"
)

const (
	acquires = 5_000
	lease    = time.Minute
	timeout  = 10 * time.Second
	// most that may be added to the median, far less than what a server on a network takes.
	most = 300 * time.Microsecond
	// servers is the name of the lock, too.
	servers = "memory"
)

func main() {
	binary := flag.String("lockcheck", "./lockcheck", "the binary that serves the lock")
	lock := flag.String("lock", "redis", "the lock of the server")
	server := flag.String("server", "", "the address of a server; the worker is compared on that one alone")
	client := flag.Bool("client", false, "be the client of the protocol")
	flag.Parse()
	run := func() error { return measure(context.Background(), *binary) }
	if *server != "" {
		run = func() error { return harness(context.Background(), *binary, *lock, *server) }
	}
	if *client {
		run = func() error { return serve.Run(open) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

// library opens the client library.
func library(socket string) (clients.Lock, error) {
	info, _ := clients.ByName(servers)
	return info.Open(config(socket))
}

func config(socket string) clients.Config {
	return clients.Config{Worker: "w1", Nodes: []string{socket}, TTL: lease, Timeout: timeout}
}

// served is the library as a client of the protocol.
type served struct{ clients.Lock }

func open(s serve.Setup) (serve.Lock, string, error) {
	lock, err := library(s.Servers[0].Address())
	return served{lock}, servers, err
}

func (s served) Acquire(ctx context.Context, a serve.Attempt) (serve.Grant, error) {
	grant, err := s.Lock.Acquire(ctx, clients.Attempt{Key: a.Key, ID: a.ID, TTL: a.TTL})
	return serve.Grant{Held: grant, Token: grant.Token}, err
}

func (s served) Release(ctx context.Context, g serve.Grant) error {
	return s.Lock.Release(ctx, g.Held.(clients.Grant))
}

// measure lets both take turns, so that what else the machine does falls on both.
func measure(ctx context.Context, binary string) (err error) {
	spec, _ := clusters.ByName(servers)
	cluster, err := clusters.Start(ctx, clusters.Request{Run: "overhead", Spec: spec, Binary: binary})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close(ctx)) }()
	socket := cluster.Servers()[0].Address
	direct, err := library(socket)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, direct.Close()) }()
	through, err := throughProtocol(socket)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, through.Close()) }()
	var called, answered []time.Duration
	for range acquires {
		for _, way := range []struct {
			lock  clients.Lock
			times *[]time.Duration
		}{{direct, &called}, {through, &answered}} {
			took, err := timeOfAcquire(ctx, way.lock)
			if err != nil {
				return err
			}
			*way.times = append(*way.times, took)
		}
	}
	return errors.Join(compare(called, answered), harness(ctx, binary, servers, socket))
}

// throughProtocol starts this program as the client.
func throughProtocol(socket string) (clients.Lock, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	definition := clients.Definition{Name: servers, Program: protocol.Command{Args: []string{self, "-client"}}}
	return definition.Info().Open(config(socket))
}

func timeOfAcquire(ctx context.Context, lock clients.Lock) (time.Duration, error) {
	began := time.Now()
	grant, err := lock.Acquire(ctx, clients.Attempt{Key: "k0", ID: "a", TTL: lease})
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	return took, lock.Release(ctx, grant)
}

func compare(called, answered []time.Duration) error {
	slices.Sort(called)
	slices.Sort(answered)
	fmt.Print("| acquire | median | p99 |\n| --- | --- | --- |\n")
	row := func(name string, times []time.Duration) {
		fmt.Printf("| %s | %d µs | %d µs |\n", name, times[acquires/2].Microseconds(), times[acquires*99/100].Microseconds())
	}
	row("the library, called", called)
	row("the same through the client protocol", answered)
	if added := answered[acquires/2] - called[acquires/2]; added > most {
		return fmt.Errorf("the protocol adds %s to the median acquire: more than %s", added, most)
	}
	return nil
}
