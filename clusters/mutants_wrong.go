//go:build mutants

package clusters

import (
	"slices"
	"strings"
	"sync"
	"time"

	"lockcheck/clients"
)

// doubleGrant grants each tenth attempt that it should refuse.
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

// splitBrain has a table for each half of the workers, with one counter of tokens.
func splitBrain(_ *leases, m methods) methods {
	half := func(r *clients.MemoryRequest) {
		if name := workerOf(r.ID); name != "" && name[len(name)-1]%2 == 0 {
			r.Key += "'"
		}
	}
	return methods{m.acquire.asked(half), m.renew.asked(half), m.release.asked(half), m.holder.asked(half)}
}

// withTTL changes the length of leases.
func withTTL(m methods, other func(time.Duration) time.Duration) methods {
	m.acquire = m.acquire.asked(func(r *clients.MemoryRequest) { r.TTL = other(r.TTL) })
	return m
}

// earlyEnd halves leases.
func earlyEnd(_ *leases, m methods) methods {
	return withTTL(m, func(ttl time.Duration) time.Duration { return ttl / 2 })
}

// unitMistake shortens leases to a thousandth.
func unitMistake(_ *leases, m methods) methods {
	return withTTL(m, func(ttl time.Duration) time.Duration { return ttl / 1000 })
}

// neverEnds keeps leases until they are released.
func neverEnds(_ *leases, m methods) methods {
	return withTTL(m, func(time.Duration) time.Duration { return time.Hour })
}

// renewedNeverEnds keeps renewed leases until they are released.
func renewedNeverEnds(_ *leases, m methods) methods {
	m.renew = m.renew.asked(func(r *clients.MemoryRequest) { r.TTL = time.Hour })
	return m
}

// grantBeforeExpiry grants a lock again shortly before its lease expires.
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

// contentionRenews extends the lease with each attempt to acquire the lock.
func contentionRenews(l *leases, m methods) methods {
	m.acquire = m.acquire.asked(func(r *clients.MemoryRequest) {
		l.change(r.Key, func(current *lease) { current.until = l.now() + r.TTL.Nanoseconds() })
	})
	return m
}

// tokenReused hands out each fifth token twice.
func tokenReused(l *leases, m methods) methods { return withToken(l, m, 1) }

// tokenBack goes back by three with each fifth token.
func tokenBack(l *leases, m methods) methods { return withToken(l, m, 3) }

// withToken goes back by the given number with each fifth token.
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

// tokenPerWorker counts each worker's tokens separately.
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

// blindRelease ends the lease, whoever holds it.
func blindRelease(l *leases, m methods) methods {
	m.release = func(r clients.MemoryRequest) clients.MemoryReply {
		l.drop(r.Key)
		return clients.MemoryReply{Done: true}
	}
	return m
}

// releaseByName ends the lease, whoever holds it, if a release has no ID.
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

// renewalTakes gives the lock to a renewal with the prefix MutantTakes.
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

// releaseByAnybody confirms a release by another client, and leaves the lease alone.
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

// releaseLost confirms each fifth release without releasing the lock.
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

// releaseDenied reports each fifth release as not held, and releases the lock.
func releaseDenied(_ *leases, m methods) methods {
	now := every(5)
	m.release = m.release.answered(func(_ clients.MemoryRequest, reply *clients.MemoryReply) {
		if now() {
			reply.Done = false
		}
	})
	return m
}

// renewalSteals gives the lock back to a former holder that renews.
func renewalSteals(l *leases, m methods) methods {
	m.renew = m.renew.answered(func(r clients.MemoryRequest, reply *clients.MemoryReply) {
		if !reply.Done {
			*reply = l.take(r)
		}
	})
	return m
}

// deniesRenewals answers each tenth renewal that it executes with "not held".
func deniesRenewals(_ *leases, m methods) methods {
	now := every(10)
	m.renew = m.renew.answered(func(_ clients.MemoryRequest, reply *clients.MemoryReply) {
		reply.Done = reply.Done && !now()
	})
	return m
}

// wakesNobody grants a key to nobody for 700 ms after each tenth release, as if waiters had missed a message.
func wakesNobody(_ *leases, m methods) methods {
	acquire, now := m.acquire, every(10)
	var mu sync.Mutex
	deaf := make(map[string]time.Time) // maps each key to when it is granted again
	m.release = m.release.answered(func(r clients.MemoryRequest, reply *clients.MemoryReply) {
		mu.Lock()
		defer mu.Unlock()
		if reply.Done && now() {
			deaf[r.Key] = time.Now().Add(700 * time.Millisecond)
		}
	})
	m.acquire = func(r clients.MemoryRequest) clients.MemoryReply {
		mu.Lock()
		until := deaf[r.Key]
		mu.Unlock()
		if time.Now().Before(until) {
			return clients.MemoryReply{}
		}
		return acquire(r)
	}
	return m
}

// forgets loses the lock at each fortieth attempt to acquire it, like a restart without a disk.
func forgets(l *leases, m methods) methods {
	now := every(40)
	m.acquire = m.acquire.asked(func(r *clients.MemoryRequest) {
		if now() {
			l.drop(r.Key)
		}
	})
	return m
}

// namesWrongHolder names the previous holder in each fifth refusal.
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

// grantsExpired drops the lease of each tenth grant at once.
func grantsExpired(l *leases, m methods) methods {
	now := every(10)
	m.acquire = m.acquire.answered(func(r clients.MemoryRequest, reply *clients.MemoryReply) {
		if reply.Done && now() {
			l.drop(r.Key)
		}
	})
	return m
}

// starves never answers one worker in time.
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

// stopsGranting grants nothing after the hundredth grant.
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

// letsIn admits each fifth reader next to a writer, or each fifth writer next to readers.
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

// readersAllOut ends all readers' leases when one reader releases.
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

// onePermitMore allows one more permit for each tenth attempt.
func onePermitMore(_ *leases, m methods) methods {
	now := every(10)
	m.acquire = m.acquire.asked(func(r *clients.MemoryRequest) {
		if now() {
			r.Permits++
		}
	})
	return m
}

// countedTwice frees two permits when a lease expires.
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

// uncheckedRelease frees another client's permit when the caller has none any more.
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
