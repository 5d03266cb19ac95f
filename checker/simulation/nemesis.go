package simulation

import (
	"fmt"
	"slices"

	"lockcheck/history"
)

// moment may inflict a fault on a worker shortly after it begins a call, when a fault has the most effect.
func (s *sim) moment(w *worker, f history.Function) {
	if s.chance(0.25) {
		role := ""
		if f == history.Acquire {
			role = "waiter"
		}
		s.after(s.upTo(3), func() { s.strike(w, role) })
	}
}

// strike inflicts a random fault. A fault of workers hits w, or a random worker if w is nil.
func (s *sim) strike(w *worker, role string) {
	if s.faults >= s.Most || len(s.Faults) == 0 {
		return
	}
	if w == nil {
		w = s.workers[s.rng.IntN(len(s.workers))]
	}
	kind := s.Faults[s.rng.IntN(len(s.Faults))]
	length := 15 + s.upTo(60)
	if s.chance(0.6) {
		length += s.upTo(200)
	}
	switch kind {
	case history.Pause:
		s.pause(w, role, length)
	case history.Kill:
		s.kill(w)
	case history.Partition:
		s.separate(w, length)
	case history.DelayWrite:
		s.deferWrite(w, length)
	case serverPause:
		s.stopServer(length)
	case serverKill:
		s.killServer(min(length, 120))
	case history.Clock:
		s.stepClock(length)
	}
}

// inflict takes a fault through its stages: begin applies it, end heals it after length. It is in force from
// at most 1 ms after now. Some faults are never proven.
func (s *sim) inflict(f history.Fault, length int64, begin, end func()) {
	s.faults++
	f.ID = fmt.Sprintf("f%d", s.faults)
	tell := func(stage history.Stage, from, to int64) {
		f.Stage, f.From, f.To = stage, ns(from), ns(to)
		told := f
		s.emit(history.Event{Process: history.Nemesis, Type: history.Info, F: history.FaultPhase, Fault: &told})
	}
	asked := s.now
	tell(history.Requested, asked, asked)
	s.after(s.upTo(1), func() {
		begin()
		s.after(s.upTo(1), func() { tell(history.Applied, asked, s.now) })
		s.after(2, func() {
			stage := history.Proven
			if s.rng.IntN(20) == 0 {
				stage = history.Unproven
			}
			tell(stage, s.now, s.now)
		})
		if end == nil {
			return
		}
		s.after(length, func() {
			from := s.now
			end()
			f.Dropped = nil
			if f.Kind == history.Partition {
				f.Dropped = s.dropped(f.Targets[0])
			}
			s.after(s.upTo(1), func() {
				tell(history.Healed, from, s.now)
				tell(history.ProvenHealed, s.now, s.now)
			})
		})
	})
}

func (s *sim) dropped(name string) *int64 {
	for _, w := range s.workers {
		if w.name == name {
			n := *w.dropped
			return &n
		}
	}
	return nil
}

// calm is the minimal time in ms between two faults of a worker that do not touch. In a shorter time a client
// may or may not renew its session.
const calm = 40

// beginTrouble says whether a fault may begin for some workers now, and if so, records that it does.
func (s *sim) beginTrouble(workers []*worker, length int64) bool {
	for _, w := range workers {
		if w.dead || w.troubledUntil > 0 && s.now+2 > w.troubledUntil && s.now < w.troubledUntil+calm {
			return false
		}
	}
	for _, w := range workers {
		w.troubledUntil = max(w.troubledUntil, s.now+length+2)
	}
	return true
}

func (s *sim) pause(w *worker, role string, length int64) {
	if w.resumesAt > s.now || !s.beginTrouble([]*worker{w}, length) {
		return
	}
	w.resumesAt = s.now + 1 // no other fault stops it meanwhile
	s.inflict(history.Fault{Kind: history.Pause, Targets: []string{w.name}, Role: role}, length, func() {
		s.truth.Stopped[w.name] = append(s.truth.Stopped[w.name], Interval{ns(s.now), ns(s.now + length)})
		w.resumesAt = s.now + length + s.upTo(4) // it takes some time until the worker gets the processor again
	}, func() {})
}

func (s *sim) kill(w *worker) {
	if w.dead || len(s.living()) < 2 || !s.beginTrouble([]*worker{w}, 0) {
		return
	}
	s.inflict(history.Fault{Kind: history.Kill, Targets: []string{w.name}}, 0, func() {
		if w.dead {
			return
		}
		w.dead = true
		s.truth.Killed[w.name] = ns(s.now)
		if s.Lease == 0 {
			w.hang()
		}
	}, nil)
}

func (s *sim) separate(w *worker, length int64) {
	if w.cutUntil > s.now || !s.beginTrouble([]*worker{w}, length) {
		return
	}
	w.cutUntil = s.now + 1
	s.inflict(history.Fault{Kind: history.Partition, Targets: []string{w.name}, Peers: []string{serverName}}, length, func() {
		w.cutUntil, w.dropped = s.now+length, new(int64)
		s.truth.Cut[w.name] = append(s.truth.Cut[w.name], Interval{ns(s.now), ns(w.cutUntil)})
		if s.Lease == 0 && length > keepAlive {
			line := w.line
			s.after(keepAlive, func() {
				w.line = max(w.line, line+1) // the worker connects again
				s.server.receive(func() { s.server.disconnect(w, line) })
			})
		}
	}, func() {})
}

func (s *sim) deferWrite(w *worker, length int64) {
	if w.dead {
		return
	}
	f := history.Fault{Kind: history.DelayWrite, Targets: []string{w.name}}
	s.faults++
	f.ID = fmt.Sprintf("f%d", s.faults)
	tell := func(stage history.Stage) {
		f.Stage, f.From, f.To = stage, ns(s.now), ns(s.now)
		told := f
		s.emit(history.Event{Process: history.Nemesis, Type: history.Info, F: history.FaultPhase, Fault: &told})
	}
	tell(history.Requested)
	tell(history.Applied)
	met := false
	d := &deferral{fault: f.ID, worker: w, delay: length, met: func(length int64) {
		met = true
		tell(history.Proven)
		if s.Has(history.Kill) && s.chance(0.3) {
			s.after(s.upTo(3), func() { s.kill(w) })
		}
		s.after(length, func() { tell(history.Healed); tell(history.ProvenHealed) })
	}}
	s.resource.defers = append(s.resource.defers, d)
	s.after(300, func() {
		if met {
			return
		}
		s.resource.forget(d)
		tell(history.Unproven)
		tell(history.Healed)
		tell(history.ProvenHealed)
	})
}

func (r *resource) forget(d *deferral) {
	r.defers = slices.DeleteFunc(r.defers, func(other *deferral) bool { return other == d })
}

func (s *sim) living() []*worker {
	return slices.DeleteFunc(slices.Clone(s.workers), func(w *worker) bool { return w.dead })
}

func (s *sim) stopServer(length int64) {
	v := s.server
	if v.struck || !s.beginTrouble(s.living(), length) {
		return
	}
	v.struck = true
	s.inflict(history.Fault{Kind: history.Pause, Targets: []string{serverName}}, length, func() {
		v.stopped = true
		s.truth.Away = append(s.truth.Away, Interval{ns(s.now), ns(s.now + length)})
	}, func() {
		v.revive()
	})
}

func (s *sim) killServer(length int64) {
	v := s.server
	if v.struck || !s.beginTrouble(s.living(), length) {
		return
	}
	v.struck = true
	kind := history.Kill
	if s.Wipes {
		kind = history.Wipe
	}
	s.inflict(history.Fault{Kind: kind, Targets: []string{serverName}}, length, func() {
		v.die()
		s.truth.Away = append(s.truth.Away, Interval{ns(s.now), ns(s.now + length)})
	}, func() {
		v.revive()
	})
}

func (s *sim) stepClock(length int64) {
	by := 20 + s.upTo(100)
	if s.chance(0.3) {
		by = -by
	}
	s.inflict(history.Fault{Kind: history.Clock, Targets: []string{serverName}, Step: ns(by)}, length,
		func() { s.server.step(by) }, func() { s.server.step(-by) })
}
