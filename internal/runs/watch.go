package runs

import (
	"sync"
	"time"

	"lockcheck/history"
)

// overlapConfirmed is how long two workers must seem to hold a lock. Events of different workers arrive out
// of order by less than that.
const overlapConfirmed = 300 * time.Millisecond

// overlapWatch detects that too many workers seem to hold one lock at once. It only decides when a search may
// end. The checkers judge what happened.
type overlapWatch struct {
	seen    chan struct{} // closed at the first overlap
	permits int           // how many workers may hold a lock at once

	mu    sync.Mutex
	locks map[string]*watchedLock // by key
	gone  map[string]bool         // workers that were killed
	done  bool
}

// watchedLock is the state of one key: its holders with their grants, and since when there are too many, ns;
// 0 if there are not.
type watchedLock struct {
	holders map[string]string
	crowded int64
}

func newOverlapWatch(permits int) *overlapWatch {
	return &overlapWatch{seen: make(chan struct{}), permits: max(1, permits), locks: make(map[string]*watchedLock), gone: make(map[string]bool)}
}

// Observe sees an event.
func (w *overlapWatch) Observe(e history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return
	}
	// Check before the event, too: the event may end the overlap.
	seen := w.confirmed(e.Time)
	w.update(e)
	if seen || w.confirmed(e.Time) {
		w.done = true
		close(w.seen)
	}
}

// confirmed says whether too many have held a lock at once for long enough.
func (w *overlapWatch) confirmed(now int64) bool {
	for _, lock := range w.locks {
		if lock.crowded != 0 && now-lock.crowded > overlapConfirmed.Nanoseconds() {
			return true
		}
	}
	return false
}

func (w *overlapWatch) update(e history.Event) {
	lock := w.locks[e.Key]
	switch {
	case e.Fault != nil:
		w.markKilled(*e.Fault)
	case w.gone[e.Process]: // an event from before the kill
	case e.F == history.Acquire && e.Type == history.OK:
		if lock == nil {
			lock = &watchedLock{holders: make(map[string]string)}
			w.locks[e.Key] = lock
		}
		lock.holders[e.Process] = e.Grant
		if len(lock.holders) > w.permits && lock.crowded == 0 {
			lock.crowded = e.Time
		}
	case lock == nil:
	case e.F == history.Release && e.Type == history.Invoke, e.F == history.Lost:
		if lock.holders[e.Process] == e.Grant {
			delete(lock.holders, e.Process)
		}
		if len(lock.holders) <= w.permits {
			lock.crowded = 0
		}
	}
}

// markKilled ends the holds of killed workers.
func (w *overlapWatch) markKilled(f history.Fault) {
	if !history.Does(f.Kind, history.Ends) || f.Stage != history.Applied {
		return
	}
	for _, target := range f.Targets {
		w.gone[target] = true
		for _, lock := range w.locks {
			delete(lock.holders, target)
			if len(lock.holders) <= w.permits {
				lock.crowded = 0
			}
		}
	}
}
