//go:build mutants

package clusters

import (
	"slices"
	"strings"
	"sync"
	"time"

	"lockcheck/clients"
)

// doubleGrant grants each tenth attempt that it has to refuse.
func doubleGrant(l *leases, m methods) methods {
	now := every(10)
	m.acquire = m.acquire.answered(func(r clients.MemoryRequest, reply *clients.MemoryReply) {
		if !reply.Done && now() {
			*reply = l.take(r)
		}
	})
	return m
}

// noLock grants everything.
func noLock(l *leases, m methods) methods {
	m.acquire = l.take
	return m
}

// splitBrain has a table for each half of the workers; tokens come from one counter.
func splitBrain(_ *leases, m methods) methods {
	half := func(r *clients.MemoryRequest) {
		if name := workerOf(r.ID); name != "" && name[len(name)-1]%2 == 0 {
			r.Key += "'"
		}
	}
	return methods{m.acquire.asked(half), m.renew.asked(half), m.release.asked(half), m.holder.asked(half)}
}

// withTTL gives leases another length than they were asked for.
func withTTL(m methods, other func(time.Duration) time.Duration) methods {
	m.acquire = m.acquire.asked(func(r *clients.MemoryRequest) { r.TTL = other(r.TTL) })
	return m
}

// earlyEnd ends leases at half time.
func earlyEnd(_ *leases, m methods) methods {
	return withTTL(m, func(ttl time.Duration) time.Duration { return ttl / 2 })
}

// unitMistake takes the length of a lease for a thousandth of what it is.
func unitMistake(_ *leases, m methods) methods {
	return withTTL(m, func(ttl time.Duration) time.Duration { return ttl / 1000 })
}

// neverEnds keeps leases until they are released.
func neverEnds(_ *leases, m methods) methods {
	return withTTL(m, func(time.Duration) time.Duration { return time.Hour })
}

// renewedNeverEnds keeps leases until they are released once they were renewed.
func renewedNeverEnds(_ *leases, m methods) methods {
	m.renew = m.renew.asked(func(r *clients.MemoryRequest) { r.TTL = time.Hour })
	return m
}

// grantBeforeExpiry passes a lock on shortly before its lease has run out.
func grantBeforeExpiry(l *leases, m methods) methods {
	m.acquire = m.acquire.asked(func(r *clients.MemoryRequest) {
		ending := false
		l.change(r.Key, func(current *lease) { ending = current.until-l.now() < (60 * time.Millisecond).Nanoseconds() })
		if ending {
			l.drop(r.Key)
		}
	})
	return m
}

// contentionRenews moves the end of a lease on with each attempt to get the lock.
func contentionRenews(l *leases, m methods) methods {
	m.acquire = m.acquire.asked(func(r *clients.MemoryRequest) {
		l.change(r.Key, func(current *lease) { current.until = l.now() + r.TTL.Nanoseconds() })
	})
	return m
}

// tokenReused hands out each fifth token twice.
func tokenReused(l *leases, m methods) methods { return withToken(l, m, 1) }

// tokenBack goes back with each fifth token.
func tokenBack(l *leases, m methods) methods { return withToken(l, m, 3) }

// withToken goes back by so much with each fifth token.
func withToken(l *leases, m methods, back uint64) methods {
	now := every(5)
	m.acquire = m.acquire.answered(func(r clients.MemoryRequest, reply *clients.MemoryReply) {
		if reply.Done && reply.Token > back && now() {
			reply.Token -= back
			l.change(r.Key, func(current *lease) { current.token = reply.Token })
		}
	})
	return m
}

// tokenPerWorker counts the tokens of each worker by themselves.
func tokenPerWorker(_ *leases, m methods) methods {
	var mu sync.Mutex
	counts := make(map[string]uint64)
	m.acquire = m.acquire.answered(func(r clients.MemoryRequest, reply *clients.MemoryReply) {
		if reply.Done {
			mu.Lock()
			defer mu.Unlock()
			counts[workerOf(r.ID)]++
			reply.Token = counts[workerOf(r.ID)]
		}
	})
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

// releaseByName removes the lease of whoever holds the lock if a release names nobody.
func releaseByName(l *leases, m methods) methods {
	release := m.release
	m.release = func(r clients.MemoryRequest) clients.MemoryReply {
		if r.ID != "" {
			return release(r)
		}
		l.drop(r.Key)
		return clients.MemoryReply{Done: true}
	}
	return m
}

// renewalTakes gives the lock to a renewal that insists.
func renewalTakes(l *leases, m methods) methods {
	renew := m.renew
	m.renew = func(r clients.MemoryRequest) clients.MemoryReply {
		id, insists := strings.CutPrefix(r.ID, clients.MutantTakes)
		if !insists {
			return renew(r)
		}
		r.ID = id
		return l.take(r)
	}
	return m
}

// releaseByAnybody says that a release was fine though it belonged to somebody else,
// and leaves that lease alone.
func releaseByAnybody(_ *leases, m methods) methods {
	m.release = m.release.answered(agree)
	return m
}

// renewsExpired accepts renewals of leases that have ended.
func renewsExpired(_ *leases, m methods) methods {
	m.renew = m.renew.answered(agree)
	return m
}

func agree(_ clients.MemoryRequest, reply *clients.MemoryReply) { reply.Done = true }

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
	now := every(5)
	m.release = m.release.answered(func(_ clients.MemoryRequest, reply *clients.MemoryReply) {
		if now() {
			reply.Done = false
		}
	})
	return m
}

// renewalSteals gives the lock back to a former holder who renews.
func renewalSteals(l *leases, m methods) methods {
	m.renew = m.renew.answered(func(r clients.MemoryRequest, reply *clients.MemoryReply) {
		if !reply.Done {
			*reply = l.take(r)
		}
	})
	return m
}

// forgets loses the lock with each fortieth attempt to get it, as a restart without a
// disk does.
func forgets(l *leases, m methods) methods {
	now := every(40)
	m.acquire = m.acquire.asked(func(r *clients.MemoryRequest) {
		if now() {
			l.drop(r.Key)
		}
	})
	return m
}

// namesWrongHolder names in each fifth refusal who held the lock last.
func namesWrongHolder(_ *leases, m methods) methods {
	now := every(5)
	var mu sync.Mutex
	var last, current string
	m.acquire = m.acquire.answered(func(r clients.MemoryRequest, reply *clients.MemoryReply) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case reply.Done:
			last, current = current, r.ID
		case now():
			reply.Holder = last
		}
	})
	return m
}

// grantsExpired grants each tenth attempt without a lease.
func grantsExpired(l *leases, m methods) methods {
	now := every(10)
	m.acquire = m.acquire.answered(func(r clients.MemoryRequest, reply *clients.MemoryReply) {
		if reply.Done && now() {
			l.drop(r.Key)
		}
	})
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

// letsIn lets each fifth reader in to a writer, or each fifth writer in to readers.
func letsIn(reader bool) mutation {
	return func(l *leases, m methods) methods {
		now := every(5)
		m.acquire = m.acquire.answered(func(r clients.MemoryRequest, reply *clients.MemoryReply) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if written := slices.ContainsFunc(l.live(r.Key), exclusive); !reply.Done && r.Shared == reader && written == reader && now() {
				*reply = l.grant(r)
			}
		})
		return m
	}
}

// readersAllOut ends the grants of all readers with the release of one.
func readersAllOut(l *leases, m methods) methods {
	m.release = m.release.answered(func(r clients.MemoryRequest, reply *clients.MemoryReply) {
		if reply.Done {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.held[r.Key] = slices.DeleteFunc(l.held[r.Key], func(l lease) bool { return l.shared })
		}
	})
	return m
}

// onePermitMore has a permit more for each tenth attempt.
func onePermitMore(_ *leases, m methods) methods {
	now := every(10)
	m.acquire = m.acquire.asked(func(r *clients.MemoryRequest) {
		if now() {
			r.Permits++
		}
	})
	return m
}

// countedTwice frees two permits when a lease has run out.
func countedTwice(l *leases, m methods) methods {
	more := make(map[string]int)
	m.acquire = m.acquire.asked(func(r *clients.MemoryRequest) {
		l.mu.Lock()
		defer l.mu.Unlock()
		before := len(l.held[r.Key])
		more[r.Key] += before - len(l.live(r.Key))
		r.Permits += more[r.Key]
	})
	return m
}

// uncheckedRelease frees the permit of somebody else for whoever has none any more.
func uncheckedRelease(l *leases, m methods) methods {
	m.release = m.release.answered(func(r clients.MemoryRequest, reply *clients.MemoryReply) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if held := l.live(r.Key); !reply.Done && len(held) > 0 {
			l.held[r.Key] = held[1:]
			reply.Done = true
		}
	})
	return m
}
