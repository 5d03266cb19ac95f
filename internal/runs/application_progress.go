package runs

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"lockcheck/history"
	"lockcheck/internal/application/ask"
)

// settled reports when the recovery period may end: a minimum time has passed, and every invariant of the kind eventually
// holds.
type settled struct {
	mu      sync.Mutex
	open    map[string]bool // invariants that do not hold yet
	since   int64           // the recovery began, ns; 0 before
	elapsed bool
	closed  chan struct{}
}

func newSettled(questions []ask.Question) *settled {
	s := &settled{open: make(map[string]bool), closed: make(chan struct{})}
	for _, q := range questions {
		if q.Invariant.Kind == history.InvariantEventually {
			s.open[q.Invariant.Name] = true
		}
	}
	return s
}

// Observe sees an event.
func (s *settled) Observe(e history.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.F == history.Phase && e.Note == history.PhaseRecovery:
		s.since = e.Time
	case e.F == history.Asked && e.Type == history.OK && s.since != 0 && e.From > s.since && s.open[e.Key]:
		delete(s.open, e.Key)
		s.check()
	}
}

// check closes the channel when there is nothing more to wait for.
func (s *settled) check() {
	if s.elapsed && len(s.open) == 0 && !Closed(s.closed) {
		close(s.closed)
	}
}

// done is closed when the recovery period may end: after some time at the earliest.
func (s *settled) done(earliest time.Duration) <-chan struct{} {
	time.AfterFunc(earliest, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.elapsed = true
		s.check()
	})
	return s.closed
}

// appTally counts what is worth showing while a run lasts.
type appTally struct {
	mu                              sync.Mutex
	holds, effects, accepted, asked int64
	written                         int64           // to the resource
	violated                        map[string]bool // invariants
	faults                          int64
}

// Observe sees an event.
func (t *appTally) Observe(e history.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case e.F == history.Holding:
		t.holds++
	case e.F == history.Did:
		t.effects++
	case e.F == history.Write && e.Type == history.OK:
		t.written++
	case e.F == history.Accepted:
		t.accepted++
	case e.F == history.Asked:
		t.asked++
		if e.Type == history.Fail {
			if t.violated == nil {
				t.violated = make(map[string]bool)
			}
			t.violated[e.Key] = true
		}
	case e.Fault != nil && e.Fault.Stage == history.Proven:
		t.faults++
	}
}

func (t *appTally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{{t.holds, "holds"}, {t.effects, "pieces of work done"}, {t.written, "writes"}, {t.accepted, "accepted"}, {t.asked, "answers"}, {t.faults, "faults"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}
