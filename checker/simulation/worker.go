package simulation

import (
	"fmt"
	"slices"

	"lockcheck/history"
)

// worker takes locks and updates data, one after the other.
type worker struct {
	s             *sim
	name          string
	ops           int64
	attempts      int
	dead          bool
	done          bool
	resumesAt     int64 // when it goes on, if it is stopped
	cutUntil      int64
	dropped       *int64 // packets that the current partition dropped
	troubledUntil int64  // end of its last fault
	session       *session
	line          int // number of its current connection, from 1
	hungUp        int // number of its last ended connection
	held          []*hold
}

// hold is a lock that a worker believes that it has, or asks for.
type hold struct {
	*Grant
	token   uint64
	until   int64 // end of the validity for the client, ms
	session *session
	lost    bool
}

// act does something after a delay, unless the worker is dead by then; a stopped worker does it when it goes
// on.
func (w *worker) act(delay int64, do func()) { w.s.after(delay, func() { w.wake(do) }) }

func (w *worker) wake(do func()) {
	switch {
	case w.dead:
	case w.s.now < w.resumesAt:
		w.act(w.resumesAt-w.s.now, do)
	default:
		do()
	}
}

func (w *worker) cut() bool {
	is := w.s.now < w.cutUntil
	if is && w.dropped != nil {
		*w.dropped++
	}
	return is
}

// send sends a message to the server. Delayed messages may arrive after their sender gave up.
func (w *worker) send(steady bool, handle func()) {
	w.pass(steady, func() { w.s.server.receive(handle) })
}

// receive delivers a message from the server to the worker.
func (w *worker) receive(steady bool, handle func()) {
	w.pass(steady, func() { w.wake(handle) })
}

// pass carries a message over the network, unless it is lost.
func (w *worker) pass(steady bool, arrive func()) {
	s := w.s
	if w.cut() || !steady && s.chance(s.loss()/2) {
		return
	}
	delay := s.upTo(5)
	if !steady && s.chance(s.loss()/4) {
		delay += s.upTo(150)
	}
	s.after(delay, func() {
		if !w.cut() {
			arrive()
		}
	})
}

// loss is the probability of losing a message without a fault. A connection loses none.
func (s *sim) loss() float64 {
	if s.Lease == 0 {
		return 0
	}
	return s.Loss
}

// sendUntilDelivered sends a message, and repeats that until it may have arrived.
func (w *worker) sendUntilDelivered(handle func()) {
	s := w.s
	if s.now < w.cutUntil || s.server.down {
		s.after(5, func() { w.sendUntilDelivered(handle) })
		return
	}
	s.after(s.upTo(5), func() {
		if s.now < w.cutUntil || s.server.down {
			w.sendUntilDelivered(handle)
			return
		}
		s.server.receive(handle)
	})
}

// call is an operation at the service. done gets its completion, which has an unknown outcome if no answer
// arrives in time.
func (w *worker) call(f history.Function, h *hold, patience int64, serve func(func(history.Event)), done func(history.Event)) {
	w.ops++
	e := history.Event{Process: w.name, Key: h.Key, Grant: h.ID, F: f, Op: w.ops, Type: history.Invoke}
	switch f {
	case history.Release:
		e.Token = h.token
	case history.Acquire:
		e.Shared = h.Shared
	}
	w.s.emit(e)
	e.Shared = false
	asked, finished := w.s.now, false
	finish := func(answer history.Event) {
		if finished {
			return
		}
		finished = true
		answer.Process, answer.Key, answer.Grant, answer.F, answer.Op = e.Process, e.Key, e.Grant, f, e.Op
		if answer.Type == history.OK && f != history.Release {
			w.relyUntil(h, &answer, asked)
		}
		if f == history.Acquire && answer.Type == history.OK && w.s.Confirms && w.gone(h) {
			answer.Expired = true
		}
		w.s.emit(answer)
		done(answer)
	}
	w.act(patience, func() { finish(history.Event{Type: history.Info, Error: "timeout"}) })
	w.send(false, func() {
		serve(func(answer history.Event) {
			if f == history.Acquire && w.s.deaf() {
				return
			}
			w.receive(false, func() { finish(answer) })
		})
	})
}

// gone says whether the server, if asked now, reports that it has no such grant on record.
func (w *worker) gone(h *hold) bool {
	v := w.s.server
	return !w.cut() && !v.down && !v.stopped && !v.holds(h.Grant)
}

// deaf says whether answers to acquires are lost now.
func (s *sim) deaf() bool { return s.Deaf > 0 && s.now > start+200 && s.now < start+200+s.Deaf }

// relyUntil moves the deadline of a client that computes one.
func (w *worker) relyUntil(h *hold, answer *history.Event, from int64) {
	s := w.s
	if s.Lease == 0 || s.Session {
		return
	}
	switch granted := h.Granted / ns(1); {
	case s.chance(s.Late):
		s.truth.Wrong["late"]++
		from = s.now
	case s.Polls && s.Queue && granted > from && !h.Revived && h.until == 0:
		from = granted
	}
	answer.Until = ns(from + s.Lease - 5)
	h.until = max(h.until, from+s.Lease-5)
}

// attempt is one round: take a lock, work under it, and give it back.
func (w *worker) attempt(left int) {
	if left == 0 {
		w.done = true
		return
	}
	w.take(fmt.Sprintf("k%d", w.s.rng.IntN(w.s.Keys)), func(ok bool) {
		pause := w.s.upTo(40)
		if ok {
			pause = w.s.upTo(30)
		}
		w.act(pause, func() { w.attempt(left - 1) })
	})
}

// take asks for a key, and calls then when everything that followed is over.
func (w *worker) take(key string, then func(held bool)) {
	s := w.s
	w.attempts++
	g := &Grant{ID: fmt.Sprintf("%s-%d", w.name, w.attempts), Worker: w.name, Key: key}
	g.Shared = s.Workload == history.WorkloadReadWrite && s.chance(0.6)
	s.truth.Grants[g.ID] = g
	h := &hold{Grant: g, session: w.enter(g)}
	patience, line := 20+s.upTo(40), w.line
	if s.chance(0.3) {
		patience += 200
	}
	w.call(history.Acquire, h, patience, func(reply func(history.Event)) {
		s.server.acquire(g, w, line, h.session, reply)
	}, func(answer history.Event) {
		switch answer.Type {
		case history.OK:
			h.token = answer.Token
			s.moment(w, history.Release)
			w.hold(h, then)
		case history.Info:
			w.takeBack(h, 2, func() { then(false) })
		default:
			if h.session != nil && h.session.gone {
				w.leave(h.session)
			}
			w.endSession(h)
			then(false)
		}
	})
	s.moment(w, history.Acquire)
}

// takeBack withdraws an attempt of unknown outcome. A nested attempt for a reentrant lock may be left,
// because its worker has the lock anyway.
func (w *worker) takeBack(h *hold, tries int, then func()) {
	if w.s.Reentrant > 1 && len(w.held) > 0 && w.s.chance(0.5) {
		then()
		return
	}
	w.act(w.s.upTo(4), func() {
		w.release(h, func(answer history.Event) {
			switch {
			case answer.Type != history.Info:
				w.endSession(h)
				then()
			case tries > 1 && w.s.chance(0.5):
				w.takeBack(h, tries-1, then)
			default:
				w.hangUp(h)
				then()
			}
		})
	})
}

// enter returns the session for an attempt, nil for locks without sessions.
func (w *worker) enter(g *Grant) *session {
	switch {
	case !w.s.Session:
		return nil
	case w.s.OldSession && w.session != nil && !w.session.over:
		return w.session
	}
	w.session = &session{}
	var of history.Event
	if !w.s.OldSession {
		of.Key, of.Grant = g.Key, g.ID
	}
	w.opens(of)
	w.beat(w.session, of)
	return w.session
}

// opens records that a session begins; the first request for the lock opens it at the server.
func (w *worker) opens(of history.Event) {
	of.Note = history.Opens
	opened := w.renewal(of)
	opened(true)
}

// renewal records that the client renews a session, and then the answer.
func (w *worker) renewal(e history.Event) (answered func(alive bool)) {
	if !w.s.RenewalsRecorded {
		return func(bool) {}
	}
	w.ops++
	e.Process, e.F, e.Op, e.Type = w.name, history.Renew, w.ops, history.Invoke
	w.s.emit(e)
	return func(alive bool) {
		if e.Type = history.Fail; alive {
			e.Type = history.OK
		}
		w.s.emit(e)
	}
}

// beat renews a session for as long as the worker uses it.
func (w *worker) beat(session *session, of history.Event) {
	w.act(w.s.Lease/4, func() {
		if session.over || w.done {
			return
		}
		answered := w.renewal(of)
		w.send(true, func() {
			alive := w.s.server.beat(session)
			w.receive(true, func() {
				answered(alive)
				if !alive {
					w.leave(session)
					w.notifyLost(func(h *hold) bool { return h.session == session })
				}
			})
		})
		w.beat(session, of)
	})
}

func (w *worker) leave(session *session) {
	session.over = true
	if w.session == session {
		w.session = nil
	}
}

// notifyLost notifies a worker that locks are gone, if its client does so.
func (w *worker) notifyLost(which func(*hold) bool) {
	for _, h := range w.held {
		if which(h) && !h.lost && w.s.Watches {
			w.lose(h, history.ByService)
		}
	}
}

func (w *worker) lose(h *hold, by string) {
	h.lost = true
	w.s.emit(history.Event{Process: w.name, Type: history.Info, F: history.Lost, Key: h.Key, Grant: h.ID, Token: h.token, Error: by})
}

func (w *worker) endSession(h *hold) {
	if h.session != nil && !w.s.OldSession {
		w.leave(h.session)
	}
}

// hangUp ends the connection or session after an unanswered call, so that nothing is left behind.
func (w *worker) hangUp(h *hold) {
	switch {
	case w.s.Lease == 0:
		for _, other := range w.held {
			if !other.lost && other != h {
				w.lose(other, history.ByService)
			}
		}
		w.hang()
	case h.session != nil:
		for _, other := range w.held {
			if !other.lost && other != h && other.session == h.session {
				w.lose(other, history.ByService)
			}
		}
		w.leave(h.session)
	}
}

// hang ends the connection of a worker and everything that depends on it.
func (w *worker) hang() {
	line := w.line
	w.line++
	w.sendUntilDelivered(func() { w.s.server.disconnect(w, line) })
}

func (w *worker) release(h *hold, done func(history.Event)) {
	w.call(history.Release, h, 15+w.s.upTo(30), func(reply func(history.Event)) {
		w.s.server.release(h.Grant, reply)
	}, done)
	w.s.moment(w, history.Release)
}

// hold works under a lock, and gives it back.
func (w *worker) hold(h *hold, then func(bool)) {
	w.held = append(w.held, h)
	over := func() {
		w.held = slices.DeleteFunc(w.held, func(other *hold) bool { return other == h })
		w.endSession(h)
		then(true)
	}
	w.renew(h)
	if w.s.chance(w.s.Cries) {
		w.s.truth.Wrong["cries"]++
		w.act(w.s.upTo(20), func() { w.notifyLost(func(other *hold) bool { return other == h }) })
	}
	w.maybeNest(h, func() {
		w.section(h, func() {
			if h.lost && w.s.chance(0.5) {
				over()
				return
			}
			w.release(h, func(answer history.Event) {
				if answer.Type == history.Info {
					w.hangUp(h)
				}
				over()
			})
		})
	})
}

// maybeNest may take another lock, or the same again, during a hold.
func (w *worker) maybeNest(h *hold, then func()) {
	s := w.s
	inner := ""
	switch {
	case s.Reentrant > 1 && len(w.held) <= s.Reentrant && s.chance(0.5):
		inner = h.Key
	case s.Nested && len(w.held) == 1 && s.chance(0.5):
		inner = fmt.Sprintf("k%d", s.rng.IntN(s.Keys))
		if inner <= h.Key {
			inner = ""
		}
	}
	if inner == "" {
		then()
		return
	}
	w.act(s.upTo(3), func() { w.take(inner, func(bool) { then() }) })
}

func (w *worker) renew(h *hold) {
	if !w.s.Renews || w.s.Lease == 0 || w.s.chance(0.5) {
		return
	}
	w.act(20+w.s.upTo(40), func() {
		if !slices.Contains(w.held, h) {
			return
		}
		w.call(history.Renew, h, 15+w.s.upTo(30), func(reply func(history.Event)) {
			w.s.server.renew(h.Grant, reply)
		}, func(answer history.Event) {
			switch {
			case !slices.Contains(w.held, h):
			case answer.Type == history.Fail:
				w.notifyLost(func(other *hold) bool { return other == h })
			default:
				w.renew(h)
			}
		})
	})
}

// section makes the updates of a hold, one after the other.
func (w *worker) section(h *hold, then func()) {
	left := max(1, w.s.Updates)
	var next func()
	next = func() {
		if left == 0 {
			then()
			return
		}
		left--
		w.updateOnce(h, next)
	}
	next()
}

// updateOnce is a critical section with one update: read, think, write.
func (w *worker) updateOnce(h *hold, then func()) {
	s := w.s
	think := s.upTo(12)
	switch {
	case s.Slow && s.chance(0.5):
		think += 60 + s.upTo(200)
	case s.chance(0.2):
		think += s.upTo(120)
	}
	if s.chance(0.2) {
		think = 0
	}
	if s.Workload == history.WorkloadMutex && s.chance(0.5) {
		w.act(think, then)
		return
	}
	if h.lost {
		then()
		return
	}
	w.access(h, 0, 0, func(ok bool, version int64) {
		w.act(think, func() {
			if s.Careful && h.until > 0 && s.now >= h.until && !h.lost {
				w.lose(h, history.ByDeadline)
			}
			if !ok || h.lost {
				then()
				return
			}
			element := int64(0)
			if !history.WritesNothing(s.Workload) && !h.Shared {
				s.update++
				element = s.update
			}
			w.access(h, element, version, func(bool, int64) { w.act(s.upTo(3), then) })
		})
	})
}

// access reads, or writes an element that was computed from a version.
func (w *worker) access(h *hold, element, base int64, done func(ok bool, version int64)) {
	s := w.s
	w.ops++
	e := history.Event{
		Process: w.name, Key: h.Key, Grant: h.ID, F: history.Read, Op: w.ops, Type: history.Invoke, Token: h.token,
		Element: element, Base: base,
	}
	if element != 0 {
		e.F = history.Write
		s.moment(w, history.Write)
	}
	s.emit(e)
	finished := false
	finish := func(typ history.Type, version int64) {
		if finished {
			return
		}
		finished = true
		e.Type, e.Version = typ, version
		s.emit(e)
		done(typ == history.OK, version)
	}
	w.act(40+s.upTo(20), func() { finish(history.Info, 0) })
	delay := s.upTo(2)
	if s.chance(0.03) {
		delay += s.upTo(150)
	}
	s.after(delay, func() {
		s.resource.arrive(e, w, func(typ history.Type, version int64) {
			w.act(s.upTo(2), func() { finish(typ, version) })
		})
	})
}
