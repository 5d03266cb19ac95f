//go:build mutants

package clusters

import (
	"math/rand/v2"
	"time"

	"lockcheck/clients"
)

// slow delays each answer.
func slow(_ *leases, m methods) methods {
	wait := func(clients.MemoryRequest, *clients.MemoryReply) { time.Sleep(rand.N(30 * time.Millisecond)) }
	m.acquire, m.renew, m.release = m.acquire.answered(wait), m.renew.answered(wait), m.release.answered(wait)
	return m
}

// lateEnd ends leases later than requested, but within the grace period of mutants.
func lateEnd(_ *leases, m methods) methods {
	longer := func(r *clients.MemoryRequest) { r.TTL += 200 * time.Millisecond }
	m.acquire, m.renew = m.acquire.asked(longer), m.renew.asked(longer)
	return m
}

// sparseTokens skips tokens.
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

// idempotent grants a lock again to the attempt that already holds it.
func idempotent(_ *leases, m methods) methods {
	m.acquire = m.acquire.answered(func(r clients.MemoryRequest, reply *clients.MemoryReply) {
		if !reply.Done && reply.Holder == r.ID {
			*reply = m.renew(r)
		}
	})
	return m
}

// queue lets an attempt wait for a while before refusing it.
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

// anonymous never names the holder.
func anonymous(_ *leases, m methods) methods {
	m.acquire = m.acquire.answered(func(_ clients.MemoryRequest, reply *clients.MemoryReply) { reply.Holder = "" })
	return m
}

// refusesAtTimes refuses each fourth attempt, even if the lock is free.
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

// forgetsAnswers executes every request, but sometimes answers too late.
func forgetsAnswers(_ *leases, m methods) methods {
	silence := func(clients.MemoryRequest, *clients.MemoryReply) {
		if rand.IntN(25) == 0 {
			time.Sleep(time.Minute)
		}
	}
	m.acquire, m.renew, m.release = m.acquire.answered(silence), m.renew.answered(silence), m.release.answered(silence)
	return m
}
