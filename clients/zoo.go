package clients

import (
	"context"
	"strings"
	"time"

	"lockcheck/clients/unixrpc"
	"lockcheck/history"
)

// ZooPrefix begins the names of the variants of the embedded lock that lockcheck is
// tested with: most of them are wrong on purpose. Their servers are in package
// clusters, under the same names. They are in no list for users.
const ZooPrefix = "zoo-"

// ZooLongPromise is the variant whose client takes its lease for longer than it is.
const ZooLongPromise = ZooPrefix + "long-promise"

// zooInfo describes the variant of a name. Whether there is one is known to its servers.
func zooInfo(name string) Info {
	return Info{
		Name: name, Summary: "a variant of memory, for tests of lockcheck itself",
		Servers: name, TTL: 400 * time.Millisecond, MinTTL: time.Millisecond, Slack: 250 * time.Millisecond,
		Renew: true, Ask: true, Token: "counter of the service", Told: "when a renewal fails", Clock: "monotonic clock of the service",
		Open: func(c Config) (Lock, error) {
			lock := &zoo{memory: memory{service: unixrpc.NewClient(c.Nodes[0])}}
			if name == ZooLongPromise {
				lock.stretch = 5
			}
			return lock, nil
		},
	}
}

func isZoo(name string) bool { return strings.HasPrefix(name, ZooPrefix) }

// zoo is a client of a variant. Other than that of memory it asks who holds the lock
// when it was granted it.
type zoo struct {
	memory
	stretch int64 // how many times as long it takes its lease to be, if not 0
}

func (z *zoo) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	start := history.Now()
	grant, err := z.memory.Acquire(ctx, a)
	if err != nil {
		return grant, err
	}
	if z.stretch > 0 {
		grant.Until = start + z.stretch*a.TTL.Nanoseconds()
	}
	holds, err := z.Holds(ctx, grant)
	// A lease that may have run out since the grant says nothing.
	grant.Dead = err == nil && !holds && history.Now()-start < a.TTL.Nanoseconds()
	return grant, nil
}
