package clienttest

import (
	"time"

	"lockcheck/clients/protocol"
)

// mistakes are errors that users' clients could make: the lines are well-formed, but their content is wrong.
func mistakes() []Behaviour {
	mistaken := ofKind(Mistaken)
	return []Behaviour{
		mistaken("ignores-busy", "grants what the service says is taken", on(protocol.Acquire, func(c *client, q request) fields {
			if answer := c.acquire(q); answer["busy"] == nil {
				return answer
			}
			return c.granted(q, 0)
		})),
		mistaken("asks-nobody", "grants and releases without a word to the service", func(c *client) {
			c.on[protocol.Acquire] = func(q request) fields { return c.granted(q, 0) }
			c.on[protocol.Release] = func(request) fields { return done(reply{}) }
		}),
		mistaken("own-name", "each worker locks a name of its own", func(c *client) {
			for op, handle := range c.on {
				c.on[op] = func(q request) fields { q.Key = c.worker + "/" + q.Key; return handle(q) }
			}
		}),
		mistaken("short-lease", "asks the service for a tenth of the lease that it tells of", on(protocol.Acquire, func(c *client, q request) fields {
			asked := q
			asked.TTLMS /= 10
			answer := c.acquire(asked)
			if ok, granted := answer["ok"].(fields); granted {
				ok["until"] = q.read + q.ttl().Nanoseconds()
			}
			return answer
		})),
		mistaken("long-validity", "tells of a validity of ten leases", validity(func(q request) int64 {
			return q.read + 10*q.ttl().Nanoseconds()
		})),
		mistaken("releases-anyone", "releases whoever holds, if it does not hold itself", on(protocol.Release, func(c *client, q request) fields {
			if r, err := c.ask("release", q.Key, q.Attempt, 0); err == nil && !r.Done && r.Holder != "" {
				_, _ = c.ask("release", q.Key, r.Holder, 0) // a failure is part of the behaviour
			}
			return done(reply{})
		})),
		mistaken("releases-in-silence", "says ok to a release of what it does not have", on(protocol.Release, func(c *client, q request) fields {
			_ = c.release(q)
			return done(reply{})
		})),
		mistaken("never-releases", "says ok to a release, and does nothing", always(protocol.Release, func() fields { return done(reply{}) })),
		mistaken("same-token", "has one token for all grants", token(func(uint64) uint64 { return 7 })),
		mistaken("tokens-go-back", "counts its tokens down", token(func(real uint64) uint64 { return 1_000_000 - real })),
		mistaken("renews-nothing", "says ok to a renewal, and does nothing", on(protocol.Renew, func(c *client, q request) fields { return c.granted(q, 0) })),
		mistaken("lost-late", "keeps no lease alive, and says lost a second after it was", unkept(func(c *client, q request) {
			time.AfterFunc(q.ttl()+time.Second, func() { c.lost(q) })
		})),
		mistaken("lost-never", "keeps no lease alive, and never says lost", unkept(func(*client, request) {})),
		mistaken("busy-for-ever", "says busy without a word to the service", always(protocol.Acquire, func() fields { return busy("") })),
		mistaken("none-though-granted", "says of each third grant that it certainly failed", thirdFails),
		mistaken("one-fails-for-ever", "has nothing but errors for w1", on(protocol.Acquire, func(c *client, q request) fields {
			if c.worker == "w1" {
				return fields{"error": fields{"effect": "none", "text": "no route to host"}}
			}
			return c.acquire(q)
		})),
		mistaken("holds-always", "says that each grant is in force", always(protocol.Holds, func() fields { return fields{"ok": fields{"holds": true}} })),
	}
}

// validity replaces the end of each validity.
func validity(until func(request) int64) func(*client) {
	return onGrant(func(_ *client, q request, ok fields) { ok["until"] = until(q) })
}

// token replaces each token.
func token(of func(real uint64) uint64) func(*client) {
	return onGrant(func(_ *client, _ request, ok fields) { ok["token"] = of(ok["token"].(uint64)) })
}

// unkept is a session whose lease is not renewed.
func unkept(granted func(*client, request)) func(*client) {
	return onGrant(func(c *client, q request, ok fields) {
		delete(ok, "until")
		granted(c, q)
	})
}

// thirdFails reports every third grant as a failure.
func thirdFails(c *client) {
	grants := 0
	c.on[protocol.Acquire] = func(q request) fields {
		answer := c.acquire(q)
		if answer["ok"] != nil {
			grants++
		}
		if answer["ok"] == nil || grants%3 != 0 {
			return answer
		}
		return fields{"error": fields{"effect": "none", "text": "connection refused"}}
	}
}
