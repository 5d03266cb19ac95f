package runs

import (
	"slices"
	"sync"

	"lockcheck/history"
)

// violationWatch tells when the lock service has done what no client can be blamed for: it gave
// the lock away during a validity, out of order, or when it had it no longer, or took it from who
// held it for a release of somebody else. It only decides when a run may end; what happened is
// for the checkers to judge.
type violationWatch struct {
	seen chan struct{} // closed then
	// overlaps: that two hold the lock counts.
	overlaps bool

	mu     sync.Mutex
	asked  map[string]int64 // by grant: when it was asked for
	recent []*watchedHold
	// disturbed are workers that a fault has met, and gone those that were killed.
	disturbed, gone map[string]bool
	done            bool
}

// watchedHold is a hold; its times are those of events, 0 for what has not happened.
type watchedHold struct {
	process, key, grant     string
	token                   uint64
	asked, from, until      int64
	end, released           int64
	foundAlone, foundItsOwn bool // looked at for who else held the lock, and what it released
	disturbed               bool // its worker, when it was granted or before its end
}

// recentMost is how many holds are compared with each other.
const recentMost = 32

func newViolationWatch(overlaps bool) *violationWatch {
	return &violationWatch{
		seen: make(chan struct{}), overlaps: overlaps,
		asked: make(map[string]int64), disturbed: make(map[string]bool), gone: make(map[string]bool),
	}
}

// Observe sees an event.
func (w *violationWatch) Observe(e history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return
	}
	if w.update(e) || w.confirmed(e.Time) {
		w.done = true
		close(w.seen)
	}
}

// update says whether the event alone, next to those before it, is a violation.
func (w *violationWatch) update(e history.Event) bool {
	switch {
	case e.Fault != nil:
		w.meet(*e.Fault)
	case w.gone[e.Process]: // a last word
	case e.F == history.Acquire && e.Type == history.Invoke:
		w.asked[e.Grant] = e.Time
	case e.F == history.Acquire && e.Type == history.OK:
		return w.granted(e)
	case e.Process == history.Resource:
	case e.F == history.Renew, e.F == history.Release, e.F == history.Lost:
		w.changed(e)
	}
	return false
}

// granted adds a hold.
func (w *violationWatch) granted(e history.Event) bool {
	h := &watchedHold{
		process: e.Process, key: e.Key, grant: e.Grant, token: e.Token, asked: w.asked[e.Grant], from: e.Time, until: e.Until,
		disturbed: w.disturbed[e.Process],
	}
	delete(w.asked, e.Grant)
	disorder := slices.ContainsFunc(w.recent, func(o *watchedHold) bool { return outOfOrder(o, h) || outOfOrder(h, o) })
	w.recent = append(w.recent, h)
	if len(w.recent) > recentMost {
		w.recent = slices.Delete(w.recent, 0, 1)
	}
	return e.Expired || disorder
}

// outOfOrder says that a hold was asked for after another one was granted, and has no higher
// token.
func outOfOrder(first, second *watchedHold) bool {
	return first.key == second.key && first.from < second.asked && second.token != 0 && first.token >= second.token
}

// changed notes what became of a hold.
func (w *violationWatch) changed(e history.Event) {
	for _, h := range w.recent {
		switch {
		case h.grant != e.Grant || h.process != e.Process:
		case e.F == history.Renew:
			if e.Type == history.OK {
				h.until = max(h.until, e.Until)
			}
		case e.F == history.Release && e.Type == history.OK:
			h.released = e.Time
		case h.end == 0 && (e.F == history.Lost || e.Type == history.Invoke):
			h.end = e.Time
		}
	}
}

// meet notes whom a fault meets. One that keeps a worker from its servers makes it a bad witness
// of a hold without an end.
func (w *violationWatch) meet(f history.Fault) {
	if f.Stage != history.Applied {
		return
	}
	ends := history.Does(f.Kind, history.Ends)
	for _, name := range slices.Concat(f.Targets, f.Peers) {
		w.disturbed[name] = true
		if ends && slices.Contains(f.Targets, name) {
			w.gone[name] = true
		}
	}
	for _, h := range w.recent {
		h.disturbed = h.disturbed || w.disturbed[h.process]
		if h.end == 0 && w.gone[h.process] {
			h.end = f.From
		}
	}
}

// confirmed looks at what happened so long ago that all events before have arrived.
func (w *violationWatch) confirmed(now int64) bool {
	old := now - overlapConfirmed.Nanoseconds()
	for _, h := range w.recent {
		if !h.foundAlone && h.from < old {
			h.foundAlone = true
			if w.overlaps && slices.ContainsFunc(w.recent, func(o *watchedHold) bool { return doubleGrant(o, h) }) {
				return true
			}
		}
		if !h.foundItsOwn && h.released != 0 && h.released < old {
			h.foundItsOwn = true
			if slices.ContainsFunc(w.recent, func(o *watchedHold) bool { return wrongRelease(h, o) }) {
				return true
			}
		}
	}
	return false
}

// doubleGrant says that a hold began while the lock was somebody else's by its own validity, or
// where there is none by an undisturbed worker.
func doubleGrant(first, second *watchedHold) bool {
	vouched := first.until > second.from || first.until == 0 && !first.disturbed
	return first.key == second.key && first.process != second.process && first.from < second.from &&
		(first.end == 0 || first.end > second.from) && vouched
}

// wrongRelease says that a lock was released while somebody else held it.
func wrongRelease(of, other *watchedHold) bool {
	return of.key == other.key && of.process != other.process &&
		of.end != 0 && other.from < of.end && (other.end == 0 || other.end > of.released)
}
