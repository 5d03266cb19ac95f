package clienttest

import (
	"strings"
	"time"

	"lockcheck/clients/protocol"
)

// carelessOnes each break one rule, whose violation shows in a run only by luck.
func carelessOnes() []Behaviour {
	careless := ofKind(Careless)
	return []Behaviour{
		careless("waits-not", "does not wait for its turn", func(*client) {}),
		careless("waits-in-vain", "waits, and never gets a lock that was taken when it came", queues(func(c *client, q request) fields {
			c.sleep(time.Duration(q.WaitMS) * time.Millisecond)
			return busy("")
		})),
		careless("stays-queued", "goes on waiting when it has said busy", queues(func(c *client, q request) fields {
			answer := c.queued(q)
			if answer["busy"] != nil {
				go func() {
					for c.acquire(q)["busy"] != nil {
						c.sleep(retry)
					}
				}()
			}
			return answer
		})),
		careless("counts-from-request", "counts its validity from before it waited", queues(func(c *client, q request) fields {
			answer := c.queued(q)
			if ok, granted := answer["ok"].(fields); granted {
				ok["until"] = q.read + q.ttl().Nanoseconds()
			}
			return answer
		})),
		careless("cancels-in-silence", "does not answer an acquire that was cancelled", queues(func(*client, request) fields { return nil })),
		careless("lease-for-ever", "renews a lease that nobody asked it to", func(c *client) {
			onGrant(func(c *client, q request, _ fields) { c.keep(q) })(c)
			c.on[protocol.Release] = func(q request) fields { c.unkeep(q); return c.release(q) }
		}),
		careless("takes-early", "takes a lock from its holder that it asks for the third time", func(c *client) {
			asked := make(map[string]int)
			c.on[protocol.Acquire] = func(q request) fields {
				answer := c.acquire(q)
				if asked[q.Key]++; answer["busy"] == nil || asked[q.Key] < 3 {
					return answer
				}
				_, _ = c.ask("release", q.Key, answer["busy"].(fields)["holder"].(string), 0) // fails if the lock is free by now
				return c.acquire(q)
			}
		}),
		careless("releases-late", "says ok to the release of a lock that it has lost", func(c *client) {
			granted := c.granting()
			c.on[protocol.Release] = func(q request) fields {
				answer := c.release(q)
				if was := granted[q.Attempt]; was {
					delete(granted, q.Attempt)
					return done(reply{})
				}
				return answer
			}
		}),
		careless("releases-twice", "says ok to each release of a lock that it gave back", func(c *client) {
			gave := make(map[string]bool)
			c.on[protocol.Release] = func(q request) fields {
				answer := c.release(q)
				if gave[q.Attempt] = gave[q.Attempt] || answer["ok"] != nil; gave[q.Attempt] {
					return done(reply{})
				}
				return answer
			}
		}),
		careless("releases-others", "releases the lock of others if it is asked for one that it never had", func(c *client) {
			granted := c.granting()
			c.on[protocol.Release] = func(q request) fields {
				answer := c.release(q)
				if _, had := granted[q.Attempt]; had || answer["ok"] != nil {
					return answer
				}
				if r, err := c.ask("holder", q.Key, "nobody", 0); err == nil && r.Holder != "" {
					_, _ = c.ask("release", q.Key, r.Holder, 0)
				}
				return answer
			}
		}),
		careless("releases-nothing", "gives no lock back, and says that it did", func(c *client) {
			granted := c.granting()
			c.on[protocol.Release] = func(q request) fields {
				if !granted[q.Attempt] {
					return fields{"not_held": fields{}}
				}
				delete(granted, q.Attempt)
				return done(reply{})
			}
		}),
		careless("renews-late", "says ok to the renewal of a lock that it has lost", on(protocol.Renew, func(c *client, q request) fields {
			_ = c.renew(q)
			return done(reply{})
		})),
		careless("renews-what-is-free", "says ok to the renewal of a lock that nobody has, and takes it", on(protocol.Renew, func(c *client, q request) fields {
			answer := c.renew(q)
			if answer["not_held"] != nil {
				if again := c.acquire(q); again["ok"] != nil {
					return again
				}
			}
			return answer
		})),
		careless("renews-for-ever", "asks the service for a thousand leases when it renews one", on(protocol.Renew, func(c *client, q request) fields {
			asked := q
			asked.TTLMS *= 1000
			if answer := c.renew(asked); answer["ok"] == nil {
				return answer
			}
			return c.granted(q, 0)
		})),
		careless("counts-renewals", "takes each renewal for one more hold, and a release for the end of one", func(c *client) {
			renewed := make(map[string]int)
			c.on[protocol.Renew] = func(q request) fields {
				answer := c.renew(q)
				if answer["ok"] != nil {
					renewed[q.Attempt]++
				}
				return answer
			}
			c.on[protocol.Release] = func(q request) fields {
				if renewed[q.Attempt] == 0 {
					return c.release(q)
				}
				renewed[q.Attempt]--
				return done(reply{})
			}
		}),
		careless("owner-is-worker", "stores its worker as the holder, not the attempt", func(c *client) {
			for _, op := range []protocol.Op{protocol.Acquire, protocol.Renew, protocol.Release, protocol.Holds} {
				handle := c.on[op]
				c.on[op] = func(q request) fields { q.Attempt, _, _ = strings.Cut(q.Attempt, "-"); return handle(q) }
			}
		}),
		careless("counts-from-answer", "counts its validity from answers that come late", onGrant(func(c *client, q request, ok fields) {
			c.sleep(q.ttl() / 5)
			ok["until"] = c.now() + q.ttl().Nanoseconds()
		})),
		careless("waits-unasked", "waits for a lock, also when it is told not to", on(protocol.Acquire, func(c *client, q request) fields {
			for {
				q.read = c.now()
				if answer := c.acquire(q); answer["busy"] == nil {
					return answer
				}
				c.sleep(retry)
			}
		})),
		careless("holds-never", "says that no grant is in force", always(protocol.Holds, func() fields { return fields{"ok": fields{"holds": false}} })),
		careless("works-not", "does not work", always(protocol.Work, func() fields { return fields{"ok": fields{}} })),
		careless("strict", "refuses fields that it does not know", func(c *client) { c.strict = true }),
		careless("knows-all", "says ok to what it does not know", func(c *client) {
			c.other = func(request) fields { return fields{"ok": fields{}} }
		}),
		careless("knows-nothing", "does not say that what it does not know had no effect", func(c *client) {
			c.other = func(request) fields { return fields{"error": fields{"text": "what?"}} }
		}),
		careless("leaves", "leaves a process", func(c *client) { c.leave() }),
		careless("hasty", "forgets what comes before it has answered", hasty),
	}
}

// granting records the attempts that are granted from now on.
func (c *client) granting() map[string]bool {
	granted := make(map[string]bool)
	acquire := c.on[protocol.Acquire]
	c.on[protocol.Acquire] = func(q request) fields {
		answer := acquire(q)
		if answer["ok"] != nil {
			granted[q.Attempt] = true
		}
		return answer
	}
	return granted
}

// retry is the interval at which a waiting client asks.
const retry = 10 * time.Millisecond

// queues makes a client wait for its turn. An attempt that is not granted at once is passed to waits.
func queues(waits func(*client, request) fields) func(*client) {
	return on(protocol.Acquire, func(c *client, q request) fields {
		answer := c.acquire(q)
		if answer["busy"] == nil || q.WaitMS == 0 {
			return answer
		}
		return waits(c, q)
	})
}

// queued waits for its turn. The validity counts from the try that is granted.
func (c *client) queued(q request) fields {
	for end := time.Now().Add(time.Duration(q.WaitMS) * time.Millisecond); ; c.sleep(retry) {
		q.read = c.now()
		if answer := c.acquire(q); answer["busy"] == nil || time.Now().After(end) {
			return answer
		}
	}
}

// hasty waits before it answers an acquire, and drops the requests that arrive until then.
func hasty(c *client) {
	c.on[protocol.Acquire] = func(q request) fields {
		answer := c.acquire(q)
		for came := true; came; {
			var err error
			if came, err = c.readWithin(300 * time.Millisecond); err != nil {
				break
			}
		}
		return answer
	}
}
