package nemesis

import (
	"context"
	"slices"
	"sync"

	"lockcheck/history"
)

// Watch follows the events of a run and knows which workers are inside their
// section: from their first read under the lock until they give it up.
type Watch struct {
	mu      sync.Mutex
	inside  []section       // in the order in which they were entered
	gone    map[string]bool // workers that were killed
	waiting map[*wait]bool
	held    map[heldBy]*heldWrite // writes held back
}

// section is one that a worker is inside of, and the grant under which it is.
type section struct{ worker, grant string }

// heldBy is a fault that holds back a write of a worker.
type heldBy struct{ fault, worker string }

// heldWrite is a write that was held back, and what became of it, "" if nothing yet.
type heldWrite struct {
	client  string
	op      int64
	outcome history.Type
}

type wait struct {
	of      string
	entered chan entry
}

// entry is a worker's entering of its section.
type entry struct {
	worker string
	at     int64 // ns
}

// NewWatch returns a Watch that has seen nothing.
func NewWatch() *Watch {
	return &Watch{gone: make(map[string]bool), waiting: make(map[*wait]bool), held: make(map[heldBy]*heldWrite)}
}

// Observe sees an event.
func (w *Watch) Observe(e history.Event) {
	switch {
	case e.Process == history.Resource:
		w.store(e)
	case e.Process == history.Nemesis:
	case e.F == history.Read && e.Type == history.OK:
		w.enter(e)
	case e.F == history.Release && e.Type == history.Invoke, e.F == history.Lost:
		w.leave(e.Process)
	}
}

// store sees what the resource does with writes that are held back.
func (w *Watch) store(e history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.F == history.Deferred {
		w.held[heldBy{e.Note, e.Client}] = &heldWrite{client: e.Client, op: e.Op}
		return
	}
	for _, held := range w.held {
		if e.F == history.Write && held.client == e.Client && held.op == e.Op {
			held.outcome = e.Type
		}
	}
}

// deferred says whether a fault held back a write of a worker, and what became of it.
func (w *Watch) deferred(fault, worker string) (arrived bool, outcome history.Type) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.held[heldBy{fault, worker}]
	if held == nil {
		return false, ""
	}
	return true, held.outcome
}

func (w *Watch) enter(e history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entered := section{e.Process, e.Grant}
	if w.gone[e.Process] || slices.Contains(w.inside, entered) {
		return // a last word, or a second read in the same section
	}
	w.remove(e.Process)
	w.inside = append(w.inside, entered)
	for waiting := range w.waiting {
		if waiting.of == "" || waiting.of == e.Process {
			delete(w.waiting, waiting)
			waiting.entered <- entry{worker: e.Process, at: e.Time}
		}
	}
}

func (w *Watch) leave(worker string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(worker)
}

func (w *Watch) remove(worker string) {
	w.inside = slices.DeleteFunc(w.inside, func(s section) bool { return s.worker == worker })
}

// Forget ignores a worker from now on: it was killed.
func (w *Watch) Forget(worker string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone[worker] = true
	w.remove(worker)
}

// killed says whether a worker is to be ignored.
func (w *Watch) killed(worker string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone[worker]
}

// await waits until a worker enters its section, the named one or any.
func (w *Watch) await(ctx context.Context, of string) (entry, error) {
	waiting := &wait{of: of, entered: make(chan entry, 1)}
	w.mu.Lock()
	w.waiting[waiting] = true
	w.mu.Unlock()
	select {
	case e := <-waiting.entered:
		return e, nil
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiting, waiting)
		return entry{}, ctx.Err()
	}
}

// insiders returns the workers that are inside their section, in the order in which
// they entered.
func (w *Watch) insiders() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var workers []string
	for _, s := range w.inside {
		workers = append(workers, s.worker)
	}
	return workers
}
