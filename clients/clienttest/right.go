package clienttest

import (
	"fmt"
	"time"

	"lockcheck/clients/protocol"
)

// rightOnes are correct clients as users write them.
func rightOnes() []Behaviour {
	right := ofKind(Right)
	return []Behaviour{
		right("right", "does one thing at a time, with tokens and ends of validities", func(*client) {}),
		right("right-plain", "tells neither its time nor tokens nor ends of validities", func(c *client) { c.plain = true }),
		right("right-side-by-side", "answers in any order", func(c *client) { c.sideBySide = true }),
		right("right-session", "keeps its lease alive by itself, and says when it is lost", session),
		right("right-slow", "takes 50 ms for everything", func(c *client) {
			for op, handle := range c.on {
				c.on[op] = func(q request) fields { c.sleep(50 * time.Millisecond); return handle(q) }
			}
		}),
		right("right-one-lock", "gives up the lock that it has when it asks for another one, which no worker does", oneLock),
		right("right-queue", "waits for its turn", queues((*client).queued)),
		right("right-wall-clock", "takes a lock from its holder if its wall clock has jumped ahead by more than the lease", wallClock),
		right("right-talkative", "logs, sends events and fields that nobody knows", talkative),
	}
}

// session renews leases from acquire to release.
func session(c *client) {
	c.sideBySide = true
	onGrant(func(c *client, q request, ok fields) {
		delete(ok, "until") // a session ends when it is lost
		c.keep(q)
	})(c)
	c.on[protocol.Release] = func(q request) fields { c.unkeep(q); return c.release(q) }
}

func talkative(c *client) {
	for op, handle := range c.on {
		c.on[op] = func(q request) fields {
			c.write(fmt.Sprintf("about to %s\n\n  \n", q.Op))
			fmt.Fprintln(c.stderr(), "about to", q.Op)
			c.say(fields{"event": "metrics", "text": "of a later version", "load": 0.5})
			answer := handle(q)
			answer["took_ms"] = 1
			return answer
		}
	}
}

// wallClock is a client that judges leases by its wall clock, which is right as long as nobody moves it.
func wallClock(c *client) {
	began := time.Now()
	c.on[protocol.Acquire] = func(q request) fields {
		answer := c.acquire(q)
		// Without its monotonic part a time is that of the wall clock.
		ahead := time.Now().Round(0).Sub(began.Round(0)) - time.Since(began)
		taken, busy := answer["busy"].(fields)
		if !busy || ahead < q.ttl() {
			return answer
		}
		_, _ = c.ask("release", q.Key, taken["holder"].(string), 0) // fails if the lock is free by now
		return c.acquire(q)
	}
}

// oneLock is a client of a service whose sessions hold at most one lock, as in MySQL 5.6.
func oneLock(c *client) {
	var last request
	c.on[protocol.Acquire] = func(q request) fields {
		if last.Attempt != "" {
			c.release(last)
		}
		last = request{}
		answer := c.acquire(q)
		if answer["ok"] != nil {
			last = q
		}
		return answer
	}
}
