package clusters

import (
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"lockcheck/clients"
	"lockcheck/clients/unixrpc"
)

// The zoo: variants of the embedded lock service that lockcheck is tested with. Those
// that are wrong do one thing wrong, often enough to be caught within seconds and
// seldom enough to work otherwise; the others are unusual, but right. Package zoo of
// the harness says what each is to be found guilty of.

// zooVariant changes the methods of the textbook service on its table.
type zooVariant func(*leases, methods) methods

// ZooNames lists the locks of the zoo by name.
func ZooNames() []string { return slices.Sorted(maps.Keys(zooVariants())) }

func zooVariants() map[string]zooVariant {
	named := make(map[string]zooVariant)
	for name, variant := range map[string]zooVariant{
		// Right.
		"textbook":         textbook,
		"slow":             slow,
		"late-end":         lateEnd,
		"sparse-tokens":    sparseTokens,
		"clock-tokens":     clockTokens,
		"idempotent":       idempotent,
		"queue":            queue,
		"anonymous":        anonymous,
		"refuses-at-times": refusesAtTimes,
		"forgets-answers":  forgetsAnswers,
		// Wrong.
		"double-grant":        doubleGrant,
		"split-brain":         splitBrain,
		"early-end":           earlyEnd,
		"unit-mistake":        unitMistake,
		"never-ends":          neverEnds,
		"contention-renews":   contentionRenews,
		"token-reused":        tokenReused,
		"token-back":          tokenBack,
		"token-per-worker":    tokenPerWorker,
		"blind-release":       blindRelease,
		"release-lost":        releaseLost,
		"release-denied":      releaseDenied,
		"renews-the-dead":     renewsTheDead,
		"renewal-steals":      renewalSteals,
		"forgets":             forgets,
		"names-wrong-holder":  namesWrongHolder,
		"grants-the-dead":     grantsTheDead,
		"starves":             starves,
		"stops-granting":      stopsGranting,
		"long-promise":        textbook, // its client is wrong
		"fence-on-writes":     textbook, // its resource is wrong
		"no-lock":             noLock,
		"release-by-anybody":  releaseByAnybody,
		"grant-before-expiry": grantBeforeExpiry,
	} {
		named[clients.ZooPrefix+name] = variant
	}
	return named
}

// zooSpec is the embedded service of a variant.
func zooSpec(name string, variant zooVariant) Spec {
	spec := memorySpec()
	spec.Name = name
	spec.Embedded = func(ctx context.Context, socket string, input io.Reader) error {
		table := newLeases()
		m := variant(table, table.methods())
		holder := func(r clients.MemoryRequest) clients.MemoryReply {
			return clients.MemoryReply{Done: table.holder(r.Key) == r.ID}
		}
		return serve(ctx, socket, input, map[string]http.HandlerFunc{
			"acquire": unixrpc.Method(m.acquire),
			"renew":   unixrpc.Method(m.renew),
			"release": unixrpc.Method(m.release),
			"holder":  unixrpc.Method(holder),
		})
	}
	return spec
}

// holder returns who holds a key, "" for nobody.
func (l *leases) holder(key string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	current, _ := l.live(key)
	return current.holder
}

// take gives a key to the request whoever has it.
func (l *leases) take(r clients.MemoryRequest) clients.MemoryReply {
	l.drop(r.Key)
	return l.acquire(r)
}

// drop ends the lease of a key.
func (l *leases) drop(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, key)
}

// change changes the lease of a key, if it is held.
func (l *leases) change(key string, how func(*lease)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if current, held := l.live(key); held {
		how(&current)
		l.held[key] = current
	}
}

// every is true each n-th time. It is safe for concurrent use.
func every(n int) func() bool {
	var mu sync.Mutex
	calls := 0
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		calls++
		return calls%n == 0
	}
}

// workerOf returns the worker of an attempt: w3 of w3-17.
func workerOf(id string) string {
	worker, _, _ := strings.Cut(id, "-")
	return worker
}

func textbook(_ *leases, m methods) methods { return m }

// slow takes its time for each answer.
func slow(_ *leases, m methods) methods {
	delayed := func(do func(clients.MemoryRequest) clients.MemoryReply) func(clients.MemoryRequest) clients.MemoryReply {
		return func(r clients.MemoryRequest) clients.MemoryReply {
			reply := do(r)
			time.Sleep(rand.N(30 * time.Millisecond))
			return reply
		}
	}
	return methods{delayed(m.acquire), delayed(m.renew), delayed(m.release)}
}

// lateEnd ends leases a fifth later than it was asked to.
func lateEnd(_ *leases, m methods) methods {
	longer := func(do func(clients.MemoryRequest) clients.MemoryReply) func(clients.MemoryRequest) clients.MemoryReply {
		return func(r clients.MemoryRequest) clients.MemoryReply {
			r.TTL += r.TTL / 5
			return do(r)
		}
	}
	return methods{longer(m.acquire), longer(m.renew), m.release}
}

// sparseTokens leaves out numbers.
func sparseTokens(l *leases, m methods) methods {
	acquire := m.acquire
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		l.mu.Lock()
		l.token += rand.Uint64N(1000)
		l.mu.Unlock()
		return acquire(r)
	}
	return m
}

// clockTokens takes its tokens from a clock.
func clockTokens(l *leases, m methods) methods {
	acquire := m.acquire
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		l.mu.Lock()
		l.token = max(l.token, uint64(l.now()))
		l.mu.Unlock()
		return acquire(r)
	}
	return m
}

// idempotent grants an attempt again what it has already.
func idempotent(l *leases, m methods) methods {
	acquire := m.acquire
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		reply := acquire(r)
		if !reply.Done && reply.Holder == r.ID {
			return m.renew(r)
		}
		return reply
	}
	return m
}

// queue lets attempts wait a while before it refuses them.
func queue(_ *leases, m methods) methods {
	acquire := m.acquire
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		for until := time.Now().Add(100 * time.Millisecond); ; time.Sleep(5 * time.Millisecond) {
			if reply := acquire(r); reply.Done || time.Now().After(until) {
				return reply
			}
		}
	}
	return m
}

// anonymous never says who holds the lock.
func anonymous(_ *leases, m methods) methods {
	acquire := m.acquire
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		reply := acquire(r)
		reply.Holder = ""
		return reply
	}
	return m
}

// refusesAtTimes refuses each fourth attempt, whether the lock is held or not.
func refusesAtTimes(_ *leases, m methods) methods {
	acquire, now := m.acquire, every(4)
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		if now() {
			return clients.MemoryReply{}
		}
		return acquire(r)
	}
	return m
}

// forgetsAnswers does what it is asked, but at times answers too late.
func forgetsAnswers(_ *leases, m methods) methods {
	late := func() bool { return rand.IntN(25) == 0 }
	silent := func(do func(clients.MemoryRequest) clients.MemoryReply) func(clients.MemoryRequest) clients.MemoryReply {
		return func(r clients.MemoryRequest) clients.MemoryReply {
			reply := do(r)
			if late() {
				time.Sleep(time.Minute)
			}
			return reply
		}
	}
	return methods{silent(m.acquire), silent(m.renew), silent(m.release)}
}

// doubleGrant grants each tenth attempt that it has to refuse.
func doubleGrant(l *leases, m methods) methods {
	acquire, now := m.acquire, every(10)
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		reply := acquire(r)
		if !reply.Done && now() {
			return l.take(r)
		}
		return reply
	}
	return m
}

// noLock grants everything.
func noLock(l *leases, m methods) methods {
	m.acquire = l.take
	return m
}

// splitBrain has a table for each half of the workers; tokens come from one counter.
func splitBrain(l *leases, m methods) methods {
	mine := func(do func(clients.MemoryRequest) clients.MemoryReply) func(clients.MemoryRequest) clients.MemoryReply {
		return func(r clients.MemoryRequest) clients.MemoryReply {
			if name := workerOf(r.ID); name != "" && name[len(name)-1]%2 == 0 {
				r.Key += "'"
			}
			return do(r)
		}
	}
	return methods{mine(m.acquire), mine(m.renew), mine(m.release)}
}

// earlyEnd ends leases at half time.
func earlyEnd(_ *leases, m methods) methods {
	acquire := m.acquire
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		r.TTL /= 2
		return acquire(r)
	}
	return m
}

// unitMistake takes the length of a lease for a thousandth of what it is.
func unitMistake(_ *leases, m methods) methods {
	acquire := m.acquire
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		r.TTL /= 1000
		return acquire(r)
	}
	return m
}

// grantBeforeExpiry hands a lock over shortly before its lease has run out.
func grantBeforeExpiry(l *leases, m methods) methods {
	acquire := m.acquire
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		ending := false
		l.change(r.Key, func(current *lease) { ending = current.until-l.now() < (60 * time.Millisecond).Nanoseconds() })
		if ending {
			return l.take(r)
		}
		return acquire(r)
	}
	return m
}

// neverEnds keeps leases until they are released.
func neverEnds(_ *leases, m methods) methods {
	acquire := m.acquire
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		r.TTL = time.Hour
		return acquire(r)
	}
	return m
}

// contentionRenews moves the end of a lease on with each attempt to get the lock.
func contentionRenews(l *leases, m methods) methods {
	acquire := m.acquire
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		l.change(r.Key, func(current *lease) { current.until = l.now() + r.TTL.Nanoseconds() })
		return acquire(r)
	}
	return m
}

// tokenReused hands out each fifth token twice.
func tokenReused(l *leases, m methods) methods { return withToken(l, m, 5, 1) }

// tokenBack goes back with each fifth token.
func tokenBack(l *leases, m methods) methods { return withToken(l, m, 5, 3) }

// withToken goes back with each n-th token.
func withToken(l *leases, m methods, n int, back uint64) methods {
	acquire, now := m.acquire, every(n)
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		reply := acquire(r)
		if reply.Done && reply.Token > back && now() {
			reply.Token -= back
			l.change(r.Key, func(current *lease) { current.token = reply.Token })
		}
		return reply
	}
	return m
}

// tokenPerWorker counts the tokens of each worker by themselves.
func tokenPerWorker(_ *leases, m methods) methods {
	acquire := m.acquire
	var mu sync.Mutex
	counts := make(map[string]uint64)
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		reply := acquire(r)
		if reply.Done {
			mu.Lock()
			defer mu.Unlock()
			counts[workerOf(r.ID)]++
			reply.Token = counts[workerOf(r.ID)]
		}
		return reply
	}
	return m
}

// blindRelease removes the lease of whoever holds the lock.
func blindRelease(l *leases, m methods) methods {
	m.release = func(r clients.MemoryRequest) clients.MemoryReply {
		l.drop(r.Key)
		return clients.MemoryReply{Done: true}
	}
	return m
}

// releaseByAnybody says that a release was fine though it belonged to somebody else,
// and leaves that lease alone.
func releaseByAnybody(_ *leases, m methods) methods {
	release := m.release
	m.release = func(r clients.MemoryRequest) clients.MemoryReply {
		reply := release(r)
		reply.Done = true
		return reply
	}
	return m
}

// releaseLost says each fifth time that a lock was released, and keeps it.
func releaseLost(_ *leases, m methods) methods {
	release, now := m.release, every(5)
	m.release = func(r clients.MemoryRequest) clients.MemoryReply {
		if now() {
			return clients.MemoryReply{Done: true}
		}
		return release(r)
	}
	return m
}

// releaseDenied says each fifth time that a lock was not held, and releases it.
func releaseDenied(_ *leases, m methods) methods {
	release, now := m.release, every(5)
	m.release = func(r clients.MemoryRequest) clients.MemoryReply {
		reply := release(r)
		if now() {
			reply.Done = false
		}
		return reply
	}
	return m
}

// renewsTheDead accepts renewals of leases that have ended.
func renewsTheDead(_ *leases, m methods) methods {
	renew := m.renew
	m.renew = func(r clients.MemoryRequest) clients.MemoryReply {
		reply := renew(r)
		reply.Done = true
		return reply
	}
	return m
}

// renewalSteals gives the lock back to a former holder who renews.
func renewalSteals(l *leases, m methods) methods {
	renew := m.renew
	m.renew = func(r clients.MemoryRequest) clients.MemoryReply {
		if reply := renew(r); reply.Done {
			return reply
		}
		return l.take(r)
	}
	return m
}

// forgets loses its whole table with each fortieth request, as a restart without a
// disk does.
func forgets(l *leases, m methods) methods {
	acquire, now := m.acquire, every(40)
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		if now() {
			l.drop(r.Key)
		}
		return acquire(r)
	}
	return m
}

// namesWrongHolder names in each fifth refusal who held the lock last.
func namesWrongHolder(_ *leases, m methods) methods {
	acquire, now := m.acquire, every(5)
	var mu sync.Mutex
	var last, current string
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		reply := acquire(r)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case reply.Done:
			last, current = current, r.ID
		case now():
			reply.Holder = last
		}
		return reply
	}
	return m
}

// grantsTheDead grants each tenth attempt without a lease.
func grantsTheDead(l *leases, m methods) methods {
	acquire, now := m.acquire, every(10)
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		reply := acquire(r)
		if reply.Done && now() {
			l.drop(r.Key)
		}
		return reply
	}
	return m
}

// starves never answers one of the workers in time.
func starves(_ *leases, m methods) methods {
	acquire := m.acquire
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		if workerOf(r.ID) == "w2" {
			time.Sleep(time.Minute)
			return clients.MemoryReply{}
		}
		return acquire(r)
	}
	return m
}

// stopsGranting grants nothing any more after the hundredth time.
func stopsGranting(_ *leases, m methods) methods {
	acquire, now := m.acquire, every(100)
	var mu sync.Mutex
	over := false
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return clients.MemoryReply{}
		}
		reply := acquire(r)
		over = reply.Done && now()
		return reply
	}
	return m
}
