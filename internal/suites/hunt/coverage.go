package hunt

import (
	"cmp"
	"math"
	"slices"
	"time"

	"lockcheck/history"
)

// noFault is the role of the time before the first fault.
const noFault = "no fault"

// States of a lock by the record, moments of a worker's call, and phases of a fault.
const (
	free    = "free"
	held    = "held"
	expired = "expired" // the lease can have ended and the holder has not released it
	queued  = "queued"  // held, and another worker asks for it
	unknown = "unknown" // since a call with an unknown outcome

	outside   = "outside"
	acquiring = "acquiring"
	holding   = "holding"
	renewing  = "renewing"
	releasing = "releasing"

	beginning = "before"
	inForce   = "in force"
	after     = "after"
)

func states() []string { return []string{free, held, queued, expired, unknown} }
func calls() []string  { return []string{outside, acquiring, holding, renewing, releasing} }
func phases() []string { return []string{beginning, inForce, after} }

// Cell is something that a trial can cover: a fault of a role that is about to begin, in force or healed, in a state
// of the lock by the record, at a moment of a worker's calls.
type Cell struct {
	Role   string `json:"role"`
	Phase  string `json:"phase"`
	State  string `json:"state"`
	Moment string `json:"moment"`
}

type worker struct {
	key      string
	call     string // moment of its call
	acquired bool
	leaseEnd int64 // 0 for a lock without one
}

// replay follows a history as far as coverage needs it.
type replay struct {
	lease   time.Duration
	session bool // the client renews the lease by itself
	workers map[string]*worker
	holders map[string]*worker // the last worker that was granted each key
	doubt   map[string]bool    // keys with a call of unknown outcome since their last grant
	proven  map[string]bool    // faults that were in force at some time
	faults  map[string]*inflicted
	met     map[Cell]bool
	begun   bool // the first fault has, if only as a request
}

// inflicted is a proven fault in its present phase.
type inflicted struct {
	role    string
	targets []string
	phase   string
	healed  int64
}

// cover lists the cells that a run covered, by its history alone.
func cover(h *history.History) []Cell {
	r := replay{
		lease: h.Header.Lease, session: h.Header.Session, workers: make(map[string]*worker), holders: make(map[string]*worker),
		doubt: make(map[string]bool), proven: make(map[string]bool), faults: make(map[string]*inflicted), met: make(map[Cell]bool),
	}
	for _, w := range h.Header.Workers {
		r.workers[w] = &worker{call: outside}
	}
	events := slices.Clone(h.Events)
	slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.Time, b.Time) })
	for _, e := range events {
		if e.Fault != nil && e.Fault.Stage == history.Proven {
			r.proven[e.Fault.ID] = true
		}
	}
	for _, e := range events {
		switch {
		case e.Fault != nil:
			r.fault(e)
		case r.workers[e.Process] != nil:
			r.work(e)
			r.note(e)
		}
	}
	var all []Cell
	for c := range r.met {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.State, b.State), cmp.Compare(a.Moment, b.Moment))
	})
	return all
}

func (r *replay) work(e history.Event) {
	w := r.workers[e.Process]
	done := e.Type != history.Invoke
	switch e.F {
	case history.Acquire:
		w.key, w.call = e.Key, acquiring
		if !done {
			return
		}
		w.call = outside
		if e.Type == history.OK {
			w.call, w.acquired, w.leaseEnd = holding, true, r.end(e)
			r.holders[e.Key] = w
			delete(r.doubt, e.Key)
		}
		r.doubt[e.Key] = r.doubt[e.Key] || e.Type == history.Info
	case history.Renew:
		w.call = renewing
		if done && w.acquired {
			w.call = holding
		}
		if e.Type == history.OK {
			w.leaseEnd = r.end(e)
		}
		r.doubt[w.key] = r.doubt[w.key] || e.Type == history.Info
	case history.Release:
		w.call = releasing
		if done {
			w.call, w.acquired = outside, false
			r.doubt[w.key] = r.doubt[w.key] || e.Type == history.Info
		}
	case history.Lost:
		w.call, w.acquired = outside, false
	}
}

func (r *replay) end(e history.Event) int64 {
	switch {
	case e.Until != 0:
		return e.Until
	case r.lease > 0 && !r.session:
		return e.Time + r.lease.Nanoseconds()
	}
	return math.MaxInt64
}

func (r *replay) state(key string, now int64) string {
	asked := false
	for _, w := range r.workers {
		asked = asked || w.key == key && w.call == acquiring
	}
	holder := r.holders[key]
	switch {
	case r.doubt[key]:
		return unknown
	case holder == nil || !holder.acquired:
		return free
	case now > holder.leaseEnd:
		return expired
	case asked:
		return queued
	}
	return held
}

// fault follows a fault through its stages. A fault that was not proven covers nothing.
func (r *replay) fault(e history.Event) {
	r.begun = true
	if !r.proven[e.Fault.ID] {
		return
	}
	f := r.faults[e.Fault.ID]
	if f == nil {
		f = &inflicted{role: e.Fault.Kind + " of " + e.Fault.Role, phase: beginning}
		r.faults[e.Fault.ID] = f
	}
	f.targets = e.Fault.Targets
	switch e.Fault.Stage {
	case history.Requested:
		r.meet(f, e.Time)
	case history.Applied:
		f.phase = inForce
		r.silence(f, e.Time+r.lease.Nanoseconds())
		r.meet(f, e.Time)
	case history.Healed:
		f.phase, f.healed = after, e.Time
		r.silence(f, math.MaxInt64)
		r.meet(f, e.Time)
	}
}

// silence sets when sessions end that a fault may keep from being renewed.
func (r *replay) silence(f *inflicted, end int64) {
	for _, target := range f.targets {
		if w := r.workers[target]; w != nil && r.session {
			w.leaseEnd = end
		}
	}
}

// note covers an event of a worker by every fault that is in force or was healed within a lease.
func (r *replay) note(e history.Event) {
	if !r.begun {
		w := r.workers[e.Process]
		r.met[Cell{Role: noFault, Phase: beginning, State: r.state(w.key, e.Time), Moment: w.call}] = true
	}
	for _, f := range r.faults {
		recent := f.phase == after && e.Time-f.healed < max(r.lease, time.Second).Nanoseconds()
		if f.phase == inForce || recent {
			r.meet(f, e.Time)
		}
	}
}

// meet covers the calls of the targets of a fault; for a fault of servers, those of all workers.
func (r *replay) meet(f *inflicted, now int64) {
	whom := make(map[string]*worker)
	for _, target := range f.targets {
		if w := r.workers[target]; w != nil {
			whom[target] = w
		}
	}
	if len(whom) == 0 {
		whom = r.workers
	}
	for _, w := range whom {
		if w.key != "" {
			r.met[Cell{Role: f.role, Phase: f.phase, State: r.state(w.key, now), Moment: w.call}] = true
		}
	}
}
