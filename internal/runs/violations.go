package runs

import (
	"slices"
	"sync"

	"lockcheck/history"
)

// violationWatch detects violations of the lock service that no client can be blamed for. The service granted
// the lock during another holder's validity, out of order, or when it no longer had the grant. Or it took the
// lock from its holder because of another worker's release. The watch only decides when a run may end. The
// checkers judge what happened.
type violationWatch struct {
	seen chan struct{} // closed at the first violation
	// overlaps: two holders of the lock at once count as a violation.
	overlaps bool

	mu     sync.Mutex
	asked  map[string]int64 // when each grant was asked for
	recent []*watchedHold
	// disturbed has the workers that a fault has hit, and gone the workers that were killed.
	disturbed, gone map[string]bool
	done            bool
}

// watchedHold is a hold. Its times are the times of events, 0 for events that have not happened.
type watchedHold struct {
	process, key, grant     string
	token                   uint64
	asked, from, until      int64
	end, released           int64
	foundAlone, foundItsOwn bool // whether double grants and its release were checked
	disturbed               bool // a fault had hit its worker when the lock was granted, or before the hold ended
}

// recentMost is how many of the latest holds are compared with each other.
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

// update says whether the event is a violation by itself or together with earlier events.
func (w *violationWatch) update(e history.Event) bool {
	switch {
	case e.Fault != nil:
		w.meet(*e.Fault)
	case w.gone[e.Process]: // an event from before the kill
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

// outOfOrder says whether the second hold was asked for after the first was granted, and yet has no higher
// token.
func outOfOrder(first, second *watchedHold) bool {
	return first.key == second.key && first.from < second.asked && second.token != 0 && first.token >= second.token
}

// changed notes a renewal, a loss or a release of a hold.
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

// meet notes which workers a fault hits. A disturbed worker may not know that its hold has ended, so its hold
// without a validity is no evidence.
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

// confirmed checks events that are so old that all earlier events have arrived.
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

// doubleGrant says whether the second hold began during the first worker's hold. The first hold must still
// have been valid. If it has no validity, its worker must be undisturbed.
func doubleGrant(first, second *watchedHold) bool {
	vouched := first.until > second.from || first.until == 0 && !first.disturbed
	return first.key == second.key && first.process != second.process && first.from < second.from &&
		(first.end == 0 || first.end > second.from) && vouched
}

// wrongRelease says whether a release succeeded while another worker held the lock.
func wrongRelease(of, other *watchedHold) bool {
	return of.key == other.key && of.process != other.process &&
		of.end != 0 && other.from < of.end && (other.end == 0 || other.end > of.released)
}
