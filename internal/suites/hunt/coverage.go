package hunt

import (
	"cmp"
	"math"
	"slices"
	"time"

	"lockcheck/history"
)

// noFault is the role under which the time before the first fault is counted.
const noFault = "no fault"

// States of the lock according to the history, moments of a worker's calls, and phases of a fault.
const (
	free    = "free"
	held    = "held"
	expired = "expired" // the lease may have ended, and the holder has not released the lock
	queued  = "queued"  // held, and another worker waits for it
	unknown = "unknown" // a call on this key had an unknown outcome

	outside   = "outside"
	acquiring = "acquiring"
	holding   = "holding"
	renewing  = "renewing"
	releasing = "releasing"

	beginning = "before"
	inForce   = "in force"
	after     = "after"
)

func lockStates() []string  { return []string{free, held, queued, expired, unknown} }
func callMoments() []string { return []string{outside, acquiring, holding, renewing, releasing} }
func faultPhases() []string { return []string{beginning, inForce, after} }

// Cell is one combination that a trial can cover: a fault of a role, the fault's phase, the state of the lock
// according to the history, and the moment of a worker's calls.
type Cell struct {
	Role   string `json:"role"`
	Phase  string `json:"phase"`
	State  string `json:"state"`
	Moment string `json:"moment"`
}

type worker struct {
	key      string
	call     string // its present moment, such as acquiring
	renews   int    // renewals of its session without an answer
	acquired bool
	leaseEnd int64 // in ns of the history; 0 for a lock without a lease
}

// renewSession counts the unanswered renewals of a session. Those of the session before may never get an answer.
func (w *worker) renewSession(e history.Event) {
	switch {
	case e.Note == history.Opens:
		w.renews = 0
	case e.Type == history.Invoke:
		w.renews++
	default:
		w.renews = max(0, w.renews-1)
	}
}

// moment is its present call; a session that is being renewed shows only while its worker makes no other call.
func (w *worker) moment() string {
	if w.renews > 0 && w.call == holding {
		return renewing
	}
	return w.call
}

// replay keeps the state of a history, event by event, as far as coverage needs it.
type replay struct {
	lease       time.Duration
	session     bool // the client renews the lease on its own
	renewals    bool // and that is on record
	workers     map[string]*worker
	holders     map[string]*worker // the last worker that each key was granted to
	uncertain   map[string]bool    // keys with a call of unknown outcome since their last grant
	proven      map[string]bool    // IDs of the faults that were proven at any time
	faults      map[string]*inflicted
	covered     map[Cell]bool
	faultsBegan bool // the first fault was at least requested
}

// inflicted is a proven fault and its present phase.
type inflicted struct {
	role    string
	targets []string
	phase   string
	healed  int64
}

// cover lists the cells that a run covered. It reads nothing but the history.
func cover(h *history.History) []Cell {
	r := replay{
		lease: h.Header.Lease, session: h.Header.Session, renewals: h.Header.Renewals, workers: make(map[string]*worker), holders: make(map[string]*worker),
		uncertain: make(map[string]bool), proven: make(map[string]bool), faults: make(map[string]*inflicted), covered: make(map[Cell]bool),
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
			r.applyFault(e)
		case r.workers[e.Process] != nil:
			r.applyCall(e)
			r.coverEvent(e)
		}
	}
	var all []Cell
	for c := range r.covered {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.State, b.State), cmp.Compare(a.Moment, b.Moment))
	})
	return all
}

func (r *replay) applyCall(e history.Event) {
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
			w.call, w.acquired, w.leaseEnd = holding, true, r.leaseEnd(e)
			r.holders[e.Key] = w
			delete(r.uncertain, e.Key)
		}
		r.uncertain[e.Key] = r.uncertain[e.Key] || e.Type == history.Info
	case history.Renew:
		if r.renewals {
			w.renewSession(e)
			return
		}
		w.call = renewing
		if done && w.acquired {
			w.call = holding
		}
		if e.Type == history.OK {
			w.leaseEnd = r.leaseEnd(e)
		}
		r.uncertain[w.key] = r.uncertain[w.key] || e.Type == history.Info
	case history.Release:
		w.call = releasing
		if done {
			w.call, w.acquired = outside, false
			r.uncertain[w.key] = r.uncertain[w.key] || e.Type == history.Info
		}
	case history.Lost:
		w.call, w.acquired = outside, false
	}
}

func (r *replay) leaseEnd(e history.Event) int64 {
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
	case r.uncertain[key]:
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

// applyFault moves a fault to its next phase. A fault that was never proven covers nothing.
func (r *replay) applyFault(e history.Event) {
	r.faultsBegan = true
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
		r.coverTargets(f, e.Time)
	case history.Applied:
		f.phase = inForce
		r.endSessions(f, e.Time+r.lease.Nanoseconds())
		r.coverTargets(f, e.Time)
	case history.Healed:
		f.phase, f.healed = after, e.Time
		r.endSessions(f, math.MaxInt64)
		r.coverTargets(f, e.Time)
	}
}

// endSessions sets the end of the sessions that a fault may keep from being renewed.
func (r *replay) endSessions(f *inflicted, end int64) {
	for _, target := range f.targets {
		if w := r.workers[target]; w != nil && r.session {
			w.leaseEnd = end
		}
	}
}

// coverEvent marks an event of a worker as covered under every fault that is in force or was healed less than a
// lease ago.
func (r *replay) coverEvent(e history.Event) {
	if !r.faultsBegan {
		w := r.workers[e.Process]
		r.covered[Cell{Role: noFault, Phase: beginning, State: r.state(w.key, e.Time), Moment: w.moment()}] = true
	}
	for _, f := range r.faults {
		recent := f.phase == after && e.Time-f.healed < max(r.lease, time.Second).Nanoseconds()
		if f.phase == inForce || recent {
			r.coverTargets(f, e.Time)
		}
	}
}

// coverTargets marks the cells of a fault's target workers as covered. A fault of servers affects all workers.
func (r *replay) coverTargets(f *inflicted, now int64) {
	affected := make(map[string]*worker)
	for _, target := range f.targets {
		if w := r.workers[target]; w != nil {
			affected[target] = w
		}
	}
	if len(affected) == 0 {
		affected = r.workers
	}
	for _, w := range affected {
		if w.key != "" {
			r.covered[Cell{Role: f.role, Phase: f.phase, State: r.state(w.key, now), Moment: w.moment()}] = true
		}
	}
}
