//go:build mutants

package clients

import (
	"context"
	"strings"
	"time"

	"lockcheck/clients/unixrpc"
	"lockcheck/history"
)

// MutantPrefix begins the names of the mutants of the embedded lock that lockcheck is
// tested with: most of them are wrong on purpose. Their servers are in package
// clusters, under the same names. They are in no list for users.
const MutantPrefix = "mutant-"

// MutantLongValidity is the mutant whose client takes its lease for longer than it is.
const MutantLongValidity = MutantPrefix + "long-validity"

// MutantSemaphore begins the names of those that are semaphores.
const MutantSemaphore = MutantPrefix + "semaphore-"

// mutantByName describes a mutant. Whether there is one of that name is known to its servers.
func mutantByName(name string) (Info, bool) {
	return mutantInfo(name), strings.HasPrefix(name, MutantPrefix)
}

func mutantInfo(name string) Info {
	const ttl = 400 * time.Millisecond
	if strings.HasPrefix(name, MutantSemaphore) {
		return semaphoreInfo().as(name, "a mutant of memory-semaphore, for tests of lockcheck itself", func(i *Info) { i.Servers, i.TTL = name, ttl })
	}
	return memoryInfo().as(name, "a mutant of memory, for tests of lockcheck itself", func(i *Info) {
		i.Servers, i.TTL = name, ttl
		i.Open = func(c Config) (Lock, error) {
			lock := &mutant{memory: memory{service: unixrpc.NewClient(c.Nodes[0])}}
			if name == MutantLongValidity {
				lock.stretch = 5
			}
			return withLateAnswers(name, lock), nil
		}
	})
}

// mutant is the client of all of them. Other than that of memory it asks who holds the lock
// when it was granted it.
type mutant struct {
	memory
	stretch int64 // how many times as long it takes its lease to be, if not 0
}

func (m *mutant) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	start := history.Now()
	grant, err := m.memory.Acquire(ctx, a)
	if err != nil {
		return grant, err
	}
	if m.stretch > 0 {
		grant.Until = start + m.stretch*a.TTL.Nanoseconds()
	}
	holds, err := m.Holds(ctx, grant)
	// A lease that may have run out since the grant says nothing.
	grant.Expired = err == nil && !holds && history.Now()-start < a.TTL.Nanoseconds()
	return grant, nil
}
