//go:build mutants

package clusters

import (
	"math/rand/v2"
	"time"

	"lockcheck/clients"
)

// slow takes its time for each answer.
func slow(_ *leases, m methods) methods {
	wait := func(clients.MemoryRequest, *clients.MemoryReply) { time.Sleep(rand.N(30 * time.Millisecond)) }
	m.acquire, m.renew, m.release = m.acquire.answered(wait), m.renew.answered(wait), m.release.answered(wait)
	return m
}

// lateEnd ends leases later than it was asked to, but within the grace period of mutants.
func lateEnd(_ *leases, m methods) methods {
	longer := func(r *clients.MemoryRequest) { r.TTL += 200 * time.Millisecond }
	m.acquire, m.renew = m.acquire.asked(longer), m.renew.asked(longer)
	return m
}

// sparseTokens leaves out numbers.
func sparseTokens(l *leases, m methods) methods {
	m.acquire = m.acquire.asked(func(*clients.MemoryRequest) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.token += rand.Uint64N(1000)
	})
	return m
}

// clockTokens takes its tokens from a clock.
func clockTokens(l *leases, m methods) methods {
	m.acquire = m.acquire.asked(func(*clients.MemoryRequest) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.token = max(l.token, uint64(l.now()))
	})
	return m
}

// idempotent grants an attempt again what it has already.
func idempotent(_ *leases, m methods) methods {
	m.acquire = m.acquire.answered(func(r clients.MemoryRequest, reply *clients.MemoryReply) {
		if !reply.Done && reply.Holder == r.ID {
			*reply = m.renew(r)
		}
	})
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
	m.acquire = m.acquire.answered(func(_ clients.MemoryRequest, reply *clients.MemoryReply) { reply.Holder = "" })
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
	silence := func(clients.MemoryRequest, *clients.MemoryReply) {
		if rand.IntN(25) == 0 {
			time.Sleep(time.Minute)
		}
	}
	m.acquire, m.renew, m.release = m.acquire.answered(silence), m.renew.answered(silence), m.release.answered(silence)
	return m
}
