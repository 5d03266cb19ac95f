package checker

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"lockcheck/history"
)

// bugs are what a simulated lock service does wrong, each with a probability
// per request.
type bugs struct {
	double  float64 // grants although it is held
	early   float64 // ends a lease after a fraction of it
	forget  float64 // drops the holder at any time
	blind   float64 // releases whatever is held
	lies    float64 // names a wrong holder
	token   float64 // repeats a token
	back    float64 // hands out one that is lower than the last
	sticky  float64 // says that a release was fine, but keeps the lock
	neverOK float64 // says that a release failed, but frees the lock
}

// world says how big and how rough a simulation is.
type world struct {
	bugs
	workers, attempts int
	loss              float64 // probability that a request or answer is lost
	stop              float64 // probability that a holder stops for long
	noLease, tokens   bool
	retries           bool // renewals, notices, deadlines
}

// sim is a discrete simulation in ms of a lock service with one key, and of
// workers that may lose messages, stop, and go on too late.
type sim struct {
	*script
	world
	rng    *rand.Rand
	queue  []todo
	now    float64
	holder string
	until  float64
	token  uint64
	grants int
	all    []string
	data   int64 // version at the resource
	update int64
}

type todo struct {
	at float64
	do func()
}

func simulate(seed uint64, w world) *script {
	s := &sim{script: newScript(), world: w, rng: rand.New(rand.NewPCG(seed, 1))}
	s.header.Tokens = w.tokens
	if w.noLease {
		s.header.Lease = 0
	}
	for i := range w.workers {
		name := fmt.Sprintf("w%d", i+1)
		s.after(s.some(30), func() { s.attempt(name, w.attempts) })
	}
	for len(s.queue) > 0 {
		slices.SortStableFunc(s.queue, func(a, b todo) int { return cmp.Compare(a.at, b.at) })
		next := s.queue[0]
		s.queue = s.queue[1:]
		s.now = next.at
		next.do()
	}
	return s.script
}

// some returns a whole number of ms, so that equal times are common.
func (s *sim) some(most float64) float64  { return float64(1 + s.rng.IntN(int(most))) }
func (s *sim) chance(p float64) bool      { return p > 0 && s.rng.Float64() < p }
func (s *sim) after(d float64, do func()) { s.queue = append(s.queue, todo{s.now + d, do}) }
func (s *sim) event(e history.Event)      { s.add(s.now+1, e) }
func (s *sim) expire()                    { s.drop(s.holder != "" && s.now >= s.until) }

func (s *sim) drop(really bool) {
	if really {
		s.holder = ""
	}
}

// ask sends a request that the service handles; answered is nil-safe and gets
// called at most once: with the answer, or with info after a time out.
func (s *sim) ask(e history.Event, serve func() history.Event, answered func(history.Type)) {
	s.op++
	e.Op, e.Type = s.op, history.Invoke
	s.event(e)
	patience := 20 + s.some(40)
	if s.chance(0.1) {
		patience += 200
	}
	done := false
	finish := func(with history.Event) {
		if done {
			return
		}
		done = true
		with.Process, with.Key, with.Grant, with.Op, with.F = e.Process, e.Key, e.Grant, e.Op, e.F
		s.event(with)
		answered(with.Type)
	}
	s.after(patience, func() { finish(history.Event{Type: history.Info, Error: "timeout"}) })
	if s.chance(s.loss / 2) {
		return
	}
	slow := 0.0
	if s.chance(s.loss / 4) {
		slow = s.some(150) // arrives after the client gave up
	}
	s.after(slow+s.some(6)-1, func() {
		s.expire()
		answer := serve()
		if !s.chance(s.loss / 2) {
			late := 0.0
			if s.chance(s.loss / 4) {
				late = s.some(150) // dead on arrival
			}
			s.after(late+s.some(6)-1, func() { finish(answer) })
		}
	})
}

func (s *sim) attempt(worker string, left int) {
	if left == 0 {
		return
	}
	s.grants++
	e := history.Event{Process: worker, Key: "k0", Grant: fmt.Sprintf("g%d", s.grants), F: history.Acquire}
	s.all = append(s.all, e.Grant)
	s.script.grants[e.Grant] = history.Event{Process: worker, Key: "k0", Grant: e.Grant}
	asked := s.now + 1
	again := func() { s.after(s.some(40), func() { s.attempt(worker, left-1) }) }
	s.ask(e, func() history.Event { return s.acquire(e.Grant, asked) }, func(t history.Type) {
		switch t {
		case history.OK:
			s.hold(e, left)
		case history.Info:
			s.after(s.some(5)-1, func() { s.release(e, again) })
		default:
			again()
		}
	})
}

func (s *sim) acquire(g string, asked float64) history.Event {
	if s.chance(s.forget) {
		s.holder = ""
	}
	if s.holder != "" && !s.chance(s.double) {
		seen := s.holder
		if s.chance(s.lies) {
			seen = s.all[s.rng.IntN(len(s.all))]
		}
		if s.rng.IntN(4) == 0 {
			seen = ""
		}
		return history.Event{Type: history.Fail, Error: "busy", Holder: seen}
	}
	if s.chance(s.loss / 2) {
		s.holder, s.until = g, s.now+s.some(8) // seen by others, then undone
		return history.Event{Type: history.Fail, Error: "no quorum"}
	}
	s.holder, s.until = g, s.term()
	s.served = append(s.served, g)
	if !s.chance(s.bugs.token) {
		s.token++
	}
	e := history.Event{Type: history.OK, Until: ms(asked + 95)}
	if s.tokens {
		e.Token = s.token
		if s.token > 1 && s.chance(s.back) {
			e.Token = uint64(1 + s.rng.IntN(int(s.token)-1))
		}
	}
	return e
}

// term is when a lease that begins now runs out. The service counts from when it
// gets the request, which is one ms after the stamp of the worker at the earliest.
func (s *sim) term() float64 {
	switch {
	case s.noLease:
		return 1e12
	case s.chance(s.early):
		return s.now + s.some(60)
	}
	return s.now + 101
}

func (s *sim) hold(e history.Event, left int) {
	stay := s.some(40)
	if s.chance(s.stop) {
		stay = 60 + s.some(120)
	}
	if s.retries && s.rng.IntN(3) == 0 {
		s.renew(e)
	}
	s.after(s.some(almost(stay)), func() { s.update++; s.access(e) })
	s.after(s.some(almost(stay)), func() { s.notice(e) })
	s.after(stay, func() {
		if s.retries && s.rng.IntN(10) == 0 { // killed and started again
			s.after(s.some(100), func() { s.attempt(e.Process, left-1) })
			return
		}
		if s.retries && s.rng.IntN(4) == 0 {
			lost := e
			lost.F, lost.Type, lost.Error = history.Lost, history.Info, history.ByDeadline
			s.event(lost)
		}
		s.release(e, func() { s.after(s.some(30), func() { s.attempt(e.Process, left-1) }) })
	})
}

// notice lets the worker learn from the service that its lock is gone.
func (s *sim) notice(e history.Event) {
	s.expire()
	if s.retries && s.holder != e.Grant {
		e.F, e.Type, e.Error = history.Lost, history.Info, history.ByService
		s.event(e)
	}
}

func almost(x float64) float64 { return max(1, x-1) }

func (s *sim) renew(e history.Event) {
	e.F = history.Renew
	asked := s.now + 1
	s.ask(e, func() history.Event {
		if s.holder != e.Grant {
			return history.Event{Type: history.Fail, Error: "not held"}
		}
		s.until = max(s.until, s.term())
		return history.Event{Type: history.OK, Until: ms(asked + 95)}
	}, func(history.Type) {})
}

func (s *sim) access(e history.Event) {
	s.seq++
	s.data++
	s.add(s.now+1, history.Event{
		Process: history.Resource, Client: e.Process, F: history.Write, Type: history.OK, Key: e.Key,
		Grant: e.Grant, Seq: s.seq, Element: s.update, Base: s.data - 1, Version: s.data,
	})
}

func (s *sim) release(e history.Event, then func()) {
	e.F = history.Release
	s.ask(e, func() history.Event {
		held := s.holder == e.Grant
		if s.chance(s.blind) {
			s.holder, held = "", true
		}
		if held && !s.chance(s.sticky) {
			s.holder = ""
		}
		if !held || s.chance(s.neverOK) {
			return history.Event{Type: history.Fail, Error: "not held"}
		}
		return history.Event{Type: history.OK}
	}, func(history.Type) { then() })
}

// randomWorld draws how rough the world is; correct leaves out all bugs.
func randomWorld(rng *rand.Rand, correct bool) world {
	w := world{
		workers: 2 + rng.IntN(3), attempts: 1 + rng.IntN(5),
		loss: float64(rng.IntN(4)) * 0.1, stop: float64(rng.IntN(4)) * 0.2,
		noLease: rng.IntN(6) == 0, tokens: rng.IntN(2) == 0, retries: rng.IntN(2) == 0,
	}
	if correct {
		return w
	}
	for _, p := range []*float64{&w.double, &w.early, &w.forget, &w.blind, &w.lies, &w.bugs.token, &w.back, &w.sticky, &w.neverOK} {
		if rng.IntN(3) == 0 {
			*p = 0.05 + rng.Float64()*0.4
		}
	}
	return w
}
