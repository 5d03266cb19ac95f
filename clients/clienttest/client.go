package clienttest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"lockcheck/clients/protocol"
)

// request has the fields of all operations.
type request struct {
	ID      int64       `json:"id"`
	Op      protocol.Op `json:"op"`
	Worker  string      `json:"worker"`
	Servers []struct {
		Socket string `json:"socket"`
	} `json:"servers"`
	Key     string `json:"key"`
	Attempt string `json:"attempt"`
	TTLMS   int64  `json:"ttl_ms"`
	WaitMS  int64  `json:"wait_ms"`
	MS      int64  `json:"ms"`
	Of      int64  `json:"of"`

	read int64 // when it was read, in ns of CLOCK_MONOTONIC
}

func (q request) ttl() time.Duration { return time.Duration(q.TTLMS) * time.Millisecond }

// fields has the fields of an answer or event.
type fields map[string]any

// handler performs an operation and returns its answer; nil for no answer.
type handler func(request) fields

// client is a running client. Its handlers are correct until a behaviour replaces them.
type client struct {
	host
	input   *bufio.Reader
	pending chan line // a line that is being read; nil for none
	service service
	worker  string
	on      map[protocol.Op]handler
	other   handler // handles unknown operations
	// sideBySide: operations run concurrently.
	sideBySide bool
	// plain: it sends no time, no tokens and no ends of validities.
	plain bool
	// strict: it refuses requests with an unknown field.
	strict bool
	// stay: it continues after the end of its input.
	stay bool

	mu    sync.Mutex
	keeps map[string]chan struct{} // by attempt: closing the channel ends the renewals of the lease
}

type line struct {
	text []byte
	err  error
}

func newClient(h host) *client {
	c := &client{host: h, input: bufio.NewReader(h.stdin()), keeps: make(map[string]chan struct{})}
	c.on = map[protocol.Op]handler{
		protocol.Hello: c.hello, protocol.Acquire: c.acquire, protocol.Renew: c.renew, protocol.Release: c.release,
		protocol.Holds: c.holds, protocol.Work: c.work,
	}
	c.other = func(q request) fields {
		return fields{"error": fields{"effect": protocol.NoEffect, "text": fmt.Sprintf("%s is not supported", q.Op)}}
	}
	return c
}

// run applies a behaviour and serves requests until the input ends.
func (c *client) run(play func(*client)) {
	play(c)
	for {
		line, err := c.read()
		if err != nil && c.stay {
			c.forever()
		}
		if err != nil {
			return
		}
		q := request{read: c.now()}
		if err := json.Unmarshal(line, &q); err != nil {
			c.exit(3)
		}
		if c.strict && bytes.Contains(line, []byte("of_a_later_version")) {
			c.answer(q, fields{"error": fields{"effect": protocol.NoEffect, "text": "there is a field that is not known"}})
			continue
		}
		if c.sideBySide && q.Op != protocol.Hello {
			go c.serve(q)
			continue
		}
		c.serve(q)
	}
}

func (c *client) read() ([]byte, error) {
	if c.pending == nil {
		return c.input.ReadBytes('\n')
	}
	read := <-c.pending
	c.pending = nil
	return read.text, read.err
}

// readWithin reads a line if one arrives within the limit.
func (c *client) readWithin(limit time.Duration) (came bool, err error) {
	if c.pending == nil {
		c.pending = make(chan line, 1)
		go func(read chan<- line) {
			text, err := c.input.ReadBytes('\n')
			read <- line{text, err}
		}(c.pending)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case read := <-c.pending:
		c.pending = nil
		return true, read.err
	case <-timer.C:
		return false, nil
	}
}

// forever never returns.
func (c *client) forever() {
	for {
		c.sleep(time.Hour)
	}
}

func (c *client) serve(q request) {
	if q.Op == protocol.Cancel {
		return // an acquire here has been answered already, or soon will be
	}
	handle, knows := c.on[q.Op]
	if !knows {
		handle = c.other
	}
	if answer := handle(q); answer != nil {
		c.answer(q, answer)
	}
}

// answer writes an answer with the ID of its request.
func (c *client) answer(q request, answer fields) {
	answer["id"] = q.ID
	c.say(answer)
}

func (c *client) say(line fields) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	c.write(string(text) + "\n")
}

// write writes any text, not only lines of the protocol. If the reader is gone, the client exits.
func (c *client) write(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := io.WriteString(c.stdout(), text); err != nil {
		c.exit(4)
	}
}

// reply is an answer of the embedded service.
type reply struct {
	Done   bool   `json:"done"`
	Holder string `json:"holder"`
	Token  uint64 `json:"token"`
}

func (c *client) ask(method, key, id string, ttl time.Duration) (reply, error) {
	return c.service.ask(method, key, id, ttl)
}

func (c *client) hello(q request) fields {
	socket := "" // nothing serves this socket
	if len(q.Servers) > 0 {
		socket = q.Servers[0].Socket
	}
	c.worker, c.service = q.Worker, c.connect(socket)
	ok := fields{"protocol": protocol.Version, "client": "clienttest 1.0"}
	if !c.plain {
		ok["now"] = c.now()
	}
	return fields{"ok": ok}
}

// endless is used as the lease for a lock that never ends by itself.
const endless = time.Hour

func (c *client) acquire(q request) fields {
	ttl := q.ttl()
	if ttl == 0 {
		ttl = endless
	}
	r, err := c.ask("acquire", q.Key, q.Attempt, ttl)
	switch {
	case err != nil:
		return unknown(err)
	case !r.Done:
		return busy(r.Holder)
	default:
		return c.granted(q, r.Token)
	}
}

// granted returns the answer for a grant.
func (c *client) granted(q request, token uint64) fields {
	ok := fields{}
	if !c.plain {
		ok["token"] = token
		if q.TTLMS != 0 {
			ok["until"] = q.read + q.ttl().Nanoseconds()
		}
	}
	return fields{"ok": ok}
}

func busy(holder string) fields { return fields{"busy": fields{"holder": holder}} }

func unknown(err error) fields {
	return fields{"error": fields{"effect": "unknown", "text": err.Error()}}
}

func (c *client) about(method string, q request, done func(reply) fields) fields {
	r, err := c.ask(method, q.Key, q.Attempt, q.ttl())
	switch {
	case err != nil:
		return unknown(err)
	case !r.Done && method != "holder":
		return fields{"not_held": fields{}}
	}
	return done(r)
}

func done(reply) fields { return fields{"ok": fields{}} }

func (c *client) renew(q request) fields {
	return c.about("renew", q, func(r reply) fields { return c.granted(q, r.Token) })
}

func (c *client) release(q request) fields { return c.about("release", q, done) }

func (c *client) holds(q request) fields {
	return c.about("holder", q, func(r reply) fields { return fields{"ok": fields{"holds": r.Done}} })
}

func (c *client) work(q request) fields {
	c.sleep(time.Duration(q.MS) * time.Millisecond)
	return fields{"ok": fields{}}
}

// keep renews the lease of an attempt in the background, and reports the loss if a renewal is refused.
func (c *client) keep(q request) {
	over := make(chan struct{})
	c.mu.Lock()
	c.keeps[q.Attempt] = over
	c.mu.Unlock()
	go func() {
		for {
			c.sleep(q.ttl() / 3)
			select {
			case <-over:
				return
			default:
			}
			if r, err := c.ask("renew", q.Key, q.Attempt, q.ttl()); err == nil && !r.Done {
				c.lost(q)
				return
			}
		}
	}()
}

func (c *client) lost(q request) {
	c.say(fields{"event": "lost", "attempt": q.Attempt, "text": "the lease has run out"})
}

// unkeep ends the renewals that keep started, if any.
func (c *client) unkeep(q request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if over, kept := c.keeps[q.Attempt]; kept {
		delete(c.keeps, q.Attempt)
		close(over)
	}
}
