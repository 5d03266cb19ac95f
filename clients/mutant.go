//go:build mutants

package clients

import (
	"context"
	"strings"
	"time"

	"lockcheck/clients/unixrpc"
	"lockcheck/history"
)

// MutantPrefix begins the names of the mutants of the embedded lock, with which lockcheck itself is tested.
// Most of them are wrong on purpose. Their servers are in package clusters, under the same names. Users see
// them in no list.
const MutantPrefix = "mutant-"

// MutantLongValidity is the mutant whose client believes that its lease is longer than it is.
const MutantLongValidity = MutantPrefix + "long-validity"

// MutantSemaphore begins the names of the mutants of the semaphore.
const MutantSemaphore = MutantPrefix + "semaphore-"

// mutantByName describes a mutant. Only its servers know whether a mutant of that name exists.
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

// mutant is the client of all mutants. Unlike memory, it asks after a grant who holds the lock.
type mutant struct {
	memory
	stretch int64 // factor by which the client overestimates its lease; 0: it does not
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
	// A negative answer counts only if the lease cannot have run out since the grant.
	grant.Expired = err == nil && !holds && history.Now()-start < a.TTL.Nanoseconds()
	return grant, nil
}
