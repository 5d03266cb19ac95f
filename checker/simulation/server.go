package simulation

import (
	"cmp"
	"math"
	"slices"

	"lockcheck/history"
)

const (
	serverName = "n1"
	keepAlive  = 60 // ms after which the server ends the connection of a cut-off client
	never      = math.MaxInt64 / 4
)

// server is the lock service: a single server that may stop, die and come back.
type server struct {
	s         *sim
	locks     map[string]*lock
	names     []string // of locks, in the order of their first use
	down      bool
	stopped   bool
	struck    bool     // by a fault that is not over
	clock     int64    // ms that its clock is ahead
	inbox     []func() // messages that arrived while it was stopped
	everAsked []string // all grants that were ever asked for
}

// lock is one key at the service.
type lock struct {
	holders, queue []*claim
	token          uint64
}

// claim is an attempt on record.
type claim struct {
	*Grant
	worker  *worker
	line    int // number of the worker's connection
	session *session
	until   int64 // by the server's clock
	fairEnd int64 // the service has no right to end the claim before
	cut     bool  // a bug shortened until
	token   uint64
	reply   func(history.Event)
}

// session is what a client renews in the background.
type session struct {
	begun, gone, over bool // begun and gone at the service; over when the client gave it up
	until, fairEnd    int64
}

func newServer(s *sim) *server { return &server{s: s, locks: make(map[string]*lock)} }

func (v *server) lock(key string) *lock {
	if v.locks[key] == nil {
		v.locks[key] = &lock{}
		v.names = append(v.names, key)
	}
	return v.locks[key]
}

// receive handles a message if the server runs. A stopped server handles it later.
func (v *server) receive(handle func()) {
	switch {
	case v.down:
	case v.stopped:
		v.inbox = append(v.inbox, handle)
	default:
		v.expire()
		handle()
	}
}

func (v *server) time() int64 { return v.s.now + v.clock }

// expire ends holders and sessions that have run out.
func (v *server) expire() {
	if v.down || v.stopped {
		return
	}
	for _, name := range v.names {
		l := v.locks[name]
		for _, c := range slices.Clone(l.holders) {
			if until, fair, cut := c.term(); v.time() >= until {
				v.end(l, c, reason(v.s.now >= fair, cut))
			}
		}
		l.queue = slices.DeleteFunc(l.queue, func(c *claim) bool {
			over := c.session != nil && v.time() >= c.session.until
			if over {
				c.session.gone = true
				v.tellGhost(c)
			}
			return over
		})
		v.promote(l)
	}
}

// tellGhost may tell a waiter whose claim is gone that it is its turn.
func (v *server) tellGhost(c *claim) {
	if v.s.chance(v.s.Ghost) {
		v.s.truth.Wrong["ghost"]++
		answer := history.Event{Type: history.OK}
		if v.s.Tokens {
			answer.Token, c.Token = c.token, c.token
		}
		c.reply(answer)
	}
}

func (c *claim) term() (until, fair int64, cut bool) {
	if c.session != nil {
		return c.session.until, c.session.fairEnd, c.cut
	}
	return c.until, c.fairEnd, c.cut
}

func reason(fair, cut bool) End {
	switch {
	case fair:
		return Expired
	case cut:
		return Early
	}
	return Stepped
}

func (v *server) end(l *lock, c *claim, why End) {
	l.holders = slices.DeleteFunc(l.holders, func(other *claim) bool { return other == c })
	c.Ended, c.EndedAt, c.EndOrder = why, ns(v.s.now), v.s.truth.next()
	c.Ends = append(c.Ends, Ending{why, c.EndOrder})
	if c.session != nil && (why == Expired || why == Stepped) {
		c.session.gone = true
	}
	switch why {
	case Stepped, Wiped, Taken, Early, Forgotten, Denied:
		v.s.truth.Wrong[string(why)]++
	}
}

// hasSlot says whether a claim may have the lock now.
func (v *server) hasSlot(l *lock, c *claim) bool {
	if v.s.Jam > 0 && v.s.now > start+v.s.Jam {
		v.s.truth.Wrong["jam"]++
		return false
	}
	if v.s.Reentrant > 1 && len(l.holders) > 0 && l.holders[0].worker == c.worker {
		return len(l.holders) < v.s.Reentrant
	}
	if c.Shared && !slices.ContainsFunc(l.holders, func(other *claim) bool { return !other.Shared }) {
		return true
	}
	return len(l.holders) < v.s.Permits
}

func (v *server) promote(l *lock) {
	for len(l.queue) > 0 && v.hasSlot(l, l.queue[0]) {
		c := l.queue[0]
		l.queue = l.queue[1:]
		v.grant(l, c)
	}
}

func (v *server) acquire(g *Grant, w *worker, line int, session *session, reply func(history.Event)) {
	s, l := v.s, v.lock(g.Key)
	v.everAsked = append(v.everAsked, g.ID)
	if s.chance(s.Forget) && len(l.holders) > 0 {
		for _, c := range slices.Clone(l.holders) {
			v.end(l, c, Forgotten)
		}
		v.promote(l)
	}
	if line <= w.hungUp {
		return // sent over a connection that has ended
	}
	c := &claim{Grant: g, worker: w, line: line, session: session, reply: reply}
	if session != nil && session.gone || session != nil && session.begun && v.time() >= session.until {
		session.gone = true
		reply(history.Event{Type: history.Fail, Error: "the session is gone"})
		return
	}
	if session != nil && !session.begun {
		session.begun = true
		session.until, session.fairEnd = v.time()+s.Lease, s.now+s.Lease
		s.after(s.Lease, v.expire)
	}
	own := slices.IndexFunc(l.holders, func(other *claim) bool { return other.worker == w && other.session == session })
	switch {
	case s.Resumes && s.Permits == 1 && s.Reentrant == 1 && own >= 0:
		if askedBefore(g, l.holders[own].Grant) {
			return // the worker no longer waits for an answer
		}
		c.token = l.holders[own].token
		v.end(l, l.holders[own], Resumed)
		v.grant(l, c)
	case v.hasSlot(l, c) && (len(l.queue) == 0 || len(l.holders) > 0 && l.holders[0].worker == w):
		if !s.Queue && s.Reentrant == 1 && s.chance(s.Loss/4) {
			v.undo(l, c)
			return
		}
		v.grant(l, c)
	case s.chance(s.Double):
		v.grant(l, c)
	case s.Queue:
		if s.Places {
			c.token = v.mint(l)
		}
		l.queue = append(l.queue, c)
	default:
		reply(history.Event{Type: history.Fail, Error: history.Busy, Holder: v.seen(l)})
	}
}

// askedBefore says whether a worker asked for a before it asked for b, by the numbers in their IDs.
func askedBefore(a, b *Grant) bool {
	return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID)) < 0
}

// seen is the holder that a busy answer names.
func (v *server) seen(l *lock) string {
	switch {
	case v.s.chance(v.s.Lies):
		v.s.truth.Wrong["lies"]++
		return v.everAsked[v.s.rng.IntN(len(v.everAsked))]
	case len(l.holders) == 0 || v.s.rng.IntN(4) == 0:
		return ""
	}
	return l.holders[v.s.rng.IntN(len(l.holders))].ID
}

// undo grants the lock for a moment and then refuses it, as if only some servers had it on record.
func (v *server) undo(l *lock, c *claim) {
	l.holders = append(l.holders, c)
	c.until, c.fairEnd = never, never
	v.s.after(v.s.upTo(8), func() {
		if slices.Contains(l.holders, c) {
			v.end(l, c, Undone)
			v.promote(l)
		}
		c.reply(history.Event{Type: history.Fail, Error: "no quorum"})
	})
}

func (v *server) grant(l *lock, c *claim) {
	s := v.s
	for _, other := range l.holders {
		if s.Reentrant > 1 && other.worker != c.worker || !v.hasSlot(l, c) && !(c.Shared && other.Shared) {
			c.Excluded = append(c.Excluded, other.ID)
		}
	}
	if len(c.Excluded) > 0 {
		s.truth.Wrong["double"]++
	}
	nested := len(l.holders) > 0 && l.holders[0].worker == c.worker && s.Reentrant > 1
	c.Order, c.Granted = s.truth.next(), ns(s.now)
	s.truth.Order = append(s.truth.Order, c.Grant)
	l.holders = append(l.holders, c)
	v.term(c)
	switch {
	case nested:
		c.token = l.holders[0].token
	case c.token == 0:
		c.token = v.mint(l)
	}
	answer := history.Event{Type: history.OK}
	if s.Tokens {
		answer.Token, c.Token = c.token, c.token
	}
	c.reply(answer)
}

// term starts the lease of a claim now.
func (v *server) term(c *claim) {
	s := v.s
	if s.Lease == 0 {
		c.until, c.fairEnd = never, never
		return
	}
	if c.session != nil {
		return
	}
	c.until, c.fairEnd = max(c.until, v.time()+s.Lease), s.now+s.Lease
	if s.chance(s.Early) {
		c.until, c.cut = v.time()+s.upTo(60), true
	}
	s.after(max(0, c.until-v.time()), v.expire)
}

func (v *server) mint(l *lock) uint64 {
	s := v.s
	switch {
	case l.token > 0 && s.chance(s.Repeat):
		v.badToken()
		return l.token
	case l.token > 1 && s.chance(s.Back):
		v.badToken()
		return 1 + uint64(s.upTo(int64(l.token)-2))
	}
	l.token++
	return l.token
}

func (v *server) badToken() {
	if v.s.Tokens {
		v.s.truth.Wrong["token"]++
	}
}

func (v *server) renew(g *Grant, reply func(history.Event)) {
	l := v.lock(g.Key)
	i := slices.IndexFunc(l.holders, func(c *claim) bool { return c.Grant == g })
	switch {
	case i >= 0:
		v.term(l.holders[i])
	case g.Order > 0 && v.mayTakeBack(l, g) && v.s.chance(v.s.Upsert):
		v.takeBack(l, g)
	default:
		reply(history.Event{Type: history.Fail, Error: "not held"})
		return
	}
	g.RenewOrder = v.s.truth.next()
	reply(history.Event{Type: history.OK})
}

// mayTakeBack says that a renewal by upsert would take the lock for a grant that is over: from nobody, or from
// its only holder.
func (v *server) mayTakeBack(l *lock, g *Grant) bool {
	if len(l.holders) == 0 {
		return len(l.queue) == 0
	}
	return v.s.Permits == 1 && v.s.Reentrant <= 1 && !g.Shared && !l.holders[0].Shared
}

func (v *server) takeBack(l *lock, g *Grant) {
	if g.Ended != Expired || g.NotHeld || v.s.truth.replaced(g) {
		v.s.truth.Wrong["upsert"]++
	}
	for _, c := range slices.Clone(l.holders) {
		c.Taker = g.ID
		v.end(l, c, Taken)
	}
	c := &claim{Grant: g, token: g.Token}
	g.Ended, g.EndedAt, g.EndOrder, g.Revived = Kept, 0, 0, true
	l.holders = append(l.holders, c)
	v.term(c)
}

// beat extends a session, and says whether it was alive.
func (v *server) beat(session *session) bool {
	if !session.begun || session.gone || v.time() >= session.until {
		return !session.begun
	}
	session.until, session.fairEnd = v.time()+v.s.Lease, v.s.now+v.s.Lease
	v.s.after(v.s.Lease, v.expire)
	return true
}

// release handles the request to release a lock, or to withdraw an attempt.
func (v *server) release(g *Grant, reply func(history.Event)) {
	s, l := v.s, v.lock(g.Key)
	defer v.promote(l)
	l.queue = slices.DeleteFunc(l.queue, func(c *claim) bool { return c.Grant == g })
	fine := false
	if i := slices.IndexFunc(l.holders, func(c *claim) bool { return c.Grant == g }); i >= 0 {
		fine = true
		switch c := l.holders[i]; {
		case s.chance(s.Sticky):
			s.truth.Wrong["sticky"]++
		case s.chance(s.NeverOK):
			fine = false
			v.end(l, c, Denied)
		default:
			v.end(l, c, Released)
		}
	} else if len(l.holders) > 0 && s.chance(s.Blind) {
		fine = true
		for _, c := range slices.Clone(l.holders) {
			c.Taker = g.ID
			v.end(l, c, Taken)
		}
	}
	if !fine {
		g.NotHeld = true
		reply(history.Event{Type: history.Fail, Error: "not held"})
		return
	}
	if g.ReleasedOK == 0 {
		g.ReleasedOK, g.ReleaseOrder = ns(s.now), s.truth.next()
	}
	reply(history.Event{Type: history.OK})
}

// disconnect ends everything that a worker has through connections up to line.
func (v *server) disconnect(w *worker, line int) {
	w.hungUp = max(w.hungUp, line)
	theirs := func(c *claim) bool { return c.worker == w && c.line <= line }
	for _, name := range v.names {
		l := v.locks[name]
		l.queue = slices.DeleteFunc(l.queue, theirs)
		for _, c := range slices.Clone(l.holders) {
			if theirs(c) {
				v.end(l, c, Disconnected)
			}
		}
		v.promote(l)
	}
}

// die ends the server's process: all connections end, and its data may be lost.
func (v *server) die() {
	v.down, v.inbox = true, nil
	for _, name := range v.names {
		l := v.locks[name]
		l.queue = nil
		for _, c := range slices.Clone(l.holders) {
			switch {
			case v.s.Lease == 0:
				v.end(l, c, Disconnected)
			case v.s.Wipes:
				v.end(l, c, Wiped)
				if c.session != nil {
					c.session.gone = true
				}
			}
		}
	}
}

// revive starts or resumes the server.
func (v *server) revive() {
	v.down, v.stopped, v.struck = false, false, false
	v.expire()
	inbox := v.inbox
	v.inbox = nil
	for _, handle := range inbox {
		v.receive(handle)
	}
}

// holds says whether a grant is on record as a holder.
func (v *server) holds(g *Grant) bool {
	v.expire()
	return slices.ContainsFunc(v.lock(g.Key).holders, func(c *claim) bool { return c.Grant == g })
}

func (v *server) step(by int64) {
	v.clock += by
	v.expire()
	for _, name := range v.names {
		for _, c := range append(slices.Clone(v.locks[name].holders), v.locks[name].queue...) {
			if until, _, _ := c.term(); until < never {
				v.s.after(max(0, until-v.time()), v.expire)
			}
		}
	}
}
