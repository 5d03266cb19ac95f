package clienttest

import (
	"fmt"
	"io"
	"strings"
	"time"

	"lockcheck/clients/protocol"
)

// hostileOnes are clients that no user should write.
func hostileOnes() []Behaviour {
	hostile := ofKind(Hostile)
	dies := func(c *client, _ request) fields { c.exit(9); return nil }
	silent := func(*client, request) fields { return nil }
	staying := func(before time.Duration) func(*client) {
		return func(c *client) {
			c.stay = true
			c.on[protocol.Acquire] = func(q request) fields {
				c.say(fields{"event": "asked"})
				c.sleep(before)
				return c.acquire(q)
			}
		}
	}
	all := []Behaviour{
		hostile("silent-in-hello", "does not answer hello", on(protocol.Hello, silent)),
		hostile("silent-in-acquire", "does not answer acquire", on(protocol.Acquire, silent)),
		hostile("silent-in-release", "does not answer release", on(protocol.Release, silent)),
		hostile("silent-in-work", "does not answer work", on(protocol.Work, silent)),
		hostile("slow", "takes 3 s to acquire", on(protocol.Acquire, func(c *client, q request) fields {
			c.sleep(3 * time.Second)
			return c.acquire(q)
		})),
		hostile("never-reads", "reads nothing after hello", on(protocol.Hello, func(c *client, q request) fields {
			c.answer(q, c.hello(q))
			c.forever()
			return nil
		})),
		hostile("stopped", "stops itself", on(protocol.Acquire, func(c *client, _ request) fields {
			c.say(fields{"event": "asked"})
			c.stop()
			return nil
		})),

		hostile("no-json", "says what is no JSON", on(protocol.Acquire, func(c *client, _ request) fields { c.write("{ok}\n"); return nil })),
		hostile("wrong-types", "says a text where a number belongs", always(protocol.Acquire, func() fields {
			return fields{"ok": fields{"token": "seventeen"}}
		})),
		hostile("half-a-line", "ends in the middle of a line", on(protocol.Acquire, func(c *client, q request) fields {
			c.write(fmt.Sprintf(`{"id":%d,"ok":{"tok`, q.ID))
			c.exit(0)
			return nil
		})),
		hostile("long-line", "writes a line of 2 MiB", on(protocol.Acquire, func(c *client, q request) fields {
			return fields{"ok": fields{}, "text": strings.Repeat("x", 2<<20)}
		})),
		hostile("long-log-line", "writes log of 2 MiB without an end of line", on(protocol.Acquire, func(c *client, q request) fields {
			c.write(strings.Repeat("x", 2<<20))
			return nil
		})),
		hostile("unasked", "answers what nobody asked", on(protocol.Acquire, func(c *client, q request) fields {
			c.say(fields{"id": 4711, "ok": fields{"token": 1}})
			return c.acquire(q)
		})),
		hostile("twice", "answers twice", on(protocol.Release, func(c *client, q request) fields {
			answer := c.release(q)
			c.answer(q, answer)
			return answer
		})),
		hostile("two-answers", "says ok and busy", always(protocol.Acquire, func() fields { return fields{"ok": fields{}, "busy": fields{}} })),
		hostile("no-answer", "says neither ok nor busy nor an error", always(protocol.Acquire, func() fields { return fields{} })),
		hostile("wrong-answer", "says busy to a release", always(protocol.Release, func() fields { return busy("") })),
		hostile("other-version", "speaks version 2", always(protocol.Hello, func() fields {
			return fields{"ok": fields{"protocol": 2}}
		})),
		hostile("refuses", "answers hello by an error", always(protocol.Hello, func() fields {
			return fields{"error": fields{"text": "no module named redis"}}
		})),
		hostile("clock-off", "tells a time that is a second off", on(protocol.Hello, func(c *client, q request) fields {
			answer := c.hello(q)
			answer["ok"].(fields)["now"] = c.now() - time.Second.Nanoseconds()
			return answer
		})),
		hostile("wall-clock", "tells of a validity by the wall clock", validity(func(q request) int64 { return time.Now().Add(q.ttl()).UnixNano() })),
		hostile("until-in-ms", "tells of a validity in ms", validity(func(q request) int64 { return (q.read + q.ttl().Nanoseconds()) / 1e6 })),
		hostile("until-without-now", "tells of a validity, but not its time", func(c *client) {
			c.plain = true
			validity(func(q request) int64 { return q.read + q.ttl().Nanoseconds() })(c)
		}),

		hostile("dies-at-once", "ends before hello", func(c *client) {
			fmt.Fprintln(c.stderr(), "ImportError: no module named redis")
			c.exit(9)
		}),
		hostile("dies-in-hello", "ends when hello comes", on(protocol.Hello, dies)),
		hostile("dies-in-acquire", "ends when an acquire comes", on(protocol.Acquire, dies)),
		hostile("dies-in-release", "ends when a release comes", on(protocol.Release, dies)),
		hostile("dies-as-holder", "ends right after a grant", on(protocol.Acquire, func(c *client, q request) fields {
			answer := c.acquire(q)
			c.answer(q, answer)
			if answer["ok"] != nil {
				c.exit(0)
			}
			return nil
		})),
		hostile("killed", "kills itself", on(protocol.Release, func(c *client, _ request) fields {
			c.kill()
			return nil
		})),

		hostile("stays", "goes on after SIGTERM and the end of its input", func(c *client) {
			c.ignoreSignals()
			c.stay = true
		}),
		hostile("slow-and-stays", "takes 2 s to acquire, and goes on after the end of its input", staying(2*time.Second)),
		hostile("answers-last", "takes 4.8 s to acquire, and goes on after the end of its input", staying(4800*time.Millisecond)),
		hostile("closes-output", "closes its output and lives on", on(protocol.Release, func(c *client, _ request) fields {
			_ = c.stdout().Close()
			c.forever()
			return nil
		})),
		hostile("closes-input", "closes its input and lives on", on(protocol.Release, func(c *client, q request) fields {
			_ = c.stdin().Close()
			c.answer(q, c.release(q))
			c.forever()
			return nil
		})),
		hostile("dies-and-leaves", "ends and leaves a process that has its output", on(protocol.Release, func(c *client, _ request) fields {
			c.leave()
			c.exit(0)
			return nil
		})),
		hostile("stays-and-leaves", "goes on after the end of its input, and so does a process of its own", func(c *client) {
			c.leave()
			c.stay = true
		}),
	}
	return append(all, floods()...)
}

// flood is how much a flooding client writes, in bytes.
const flood = 100 << 20

// floods are clients that write useless output without end.
func floods() []Behaviour {
	line := strings.Repeat("all is well ", 80) + "\n"
	pour := func(c *client, out io.Writer) {
		for n := 0; n < flood; n += len(line) {
			if _, err := io.WriteString(out, line); err != nil {
				c.exit(4)
			}
		}
	}
	// Without the pauses no time would pass in a test with fake time.
	endlessly := func(c *client, event fields) {
		for n := 1; ; n++ {
			c.say(event)
			if n%1000 == 0 {
				c.sleep(10 * time.Millisecond)
			}
		}
	}
	hostile := func(name, does string, play func(c *client)) Behaviour {
		return ofKind(Hostile)(name, does, on(protocol.Acquire, func(c *client, _ request) fields { play(c); return nil }))
	}
	return []Behaviour{
		hostile("floods-log", "writes 100 MiB of log to its output, and no answer", func(c *client) { pour(c, c.stdout()) }),
		hostile("floods-errors", "writes 100 MiB to its error output, and no answer", func(c *client) { pour(c, c.stderr()) }),
		hostile("floods-events", "sends events without end", func(c *client) { endlessly(c, fields{"event": "metrics", "text": line}) }),
		hostile("floods-lost", "says lost of locks that it does not have, without end", func(c *client) { endlessly(c, fields{"event": "lost", "attempt": "w9-1"}) }),
	}
}
