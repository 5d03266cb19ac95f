package nemesis

import (
	"context"
	"slices"
	"sync"
	"time"

	"lockcheck/clusters"
	"lockcheck/history"
)

// Watch follows the events of a run and tracks which workers are inside their section: from their first read
// under the lock until they give it up. It reports moments of workers to waiting steps.
type Watch struct {
	mu      sync.Mutex
	inside  []section            // in the order of entry
	asking  map[string]string    // by worker: the key that it is acquiring
	entered map[string]int64     // by worker: when it entered its current section, ns
	until   map[string]ending    // by grant: the end of its validity
	granted map[string]grantEnds // by key: the last grant that is not on record as released
	gone    map[string]bool      // killed workers
	waiting map[*wait]bool
	held    map[heldBy]*heldWrite // delayed writes
	lasting bool                  // sections belong to replicas of an application, and may last for the whole run
	// stray is called for a worker that was caught for a fault for which no step waits; nil for nothing.
	stray func(worker, fault string)
	// following tracks the goroutines that handle caught workers. After closed no more are started.
	following sync.WaitGroup
	closed    bool
}

// ending is the end of a validity, in ns, and the timer that reports it.
type ending struct {
	at    int64
	timer *time.Timer
}

// grantEnds is a grant and the end of its validity, ns; 0 if the validity has no end.
type grantEnds struct {
	grant string
	until int64
}

// section is a worker's current section and its grant.
type section struct{ worker, grant, key string }

// heldBy is a fault that delays a write of a worker.
type heldBy struct{ fault, worker string }

// heldWrite is a delayed write and its outcome; "" if not delivered yet.
type heldWrite struct {
	client  string
	op      int64
	outcome history.Type
}

// wait waits for a moment of the named worker or of any, or for a worker to be caught for a fault.
type wait struct {
	moment, of string
	fault      string
	came       chan entry
	// contended is called for a worker that was caught for the fault while the key that it acquires was held.
	// The wait then continues. nil accepts such a worker.
	contended func(worker, key string)
}

// entry is a moment of a worker, or of the servers.
type entry struct {
	worker string // "" for the servers
	at     int64  // ns
	what   string // description of the event
	// caught: the worker has stopped at a call and must be released. mine: the fault that caught it also has it
	// as a target.
	caught, mine bool
	// holds: a message of the worker is held back and must be released.
	holds bool
	// leader is who led by then; nil if nobody did, or nobody asked.
	leader *clusters.Node
}

// NewWatch returns a Watch without events.
func NewWatch() *Watch {
	return &Watch{
		asking: make(map[string]string), entered: make(map[string]int64), until: make(map[string]ending),
		granted: make(map[string]grantEnds), gone: make(map[string]bool), waiting: make(map[*wait]bool), held: make(map[heldBy]*heldWrite),
	}
}

// Observe processes an event.
func (w *Watch) Observe(e history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Process {
	case history.Resource:
		w.store(e)
	case history.Nemesis, history.Harness, history.Service:
	default:
		if e.F == history.Started { // a killed replica is back
			delete(w.gone, e.Process)
		}
		if !w.gone[e.Process] { // else it is a late event of a killed worker
			w.worker(e)
		}
	}
}

// worker processes an event of a worker.
func (w *Watch) worker(e history.Event) {
	w.grants(e)
	switch {
	case e.F == history.Caught:
		w.caught(e)
	case e.F == history.Acquire && e.Type == history.Invoke:
		w.asking[e.Process] = e.Key
		w.queue(e.Time)
	case e.F == history.Acquire:
		delete(w.asking, e.Process)
		if e.Type == history.OK {
			w.vouch(e)
		}
	case e.F == history.Renew && e.Type == history.OK:
		w.vouch(e)
	case e.F == history.Read && e.Type == history.OK:
		w.enter(e)
		w.queue(e.Time)
	case e.F == history.Holding:
		w.lasting = true
		w.enter(e)
	case e.F == history.Release && e.Type == history.Invoke, history.EndsHold(e.F):
		w.leave(e)
	case e.F == history.Lost:
		w.leave(e)
		w.moment(history.MomentLost, e.Process, e.Time, "was notified that its lock is lost")
	case e.F == history.Renew && e.Type == history.Fail && !w.mayLose(e): // of a session
	case e.Type == history.Fail && (e.F == history.Renew || e.F == history.Release):
		w.moment(history.MomentLost, e.Process, e.Time, "was refused its "+string(e.F))
	}
}

// mayLose says whether a refused renewal may cost a worker its lock: not while it waits for one, nor in a section under
// another session.
func (w *Watch) mayLose(e history.Event) bool {
	i := slices.IndexFunc(w.inside, func(s section) bool { return s.worker == e.Process })
	_, asks := w.asking[e.Process]
	if i < 0 {
		return e.Grant != "" && !asks
	}
	return e.Grant == "" || e.Grant == w.inside[i].grant || e.Key != w.inside[i].key
}

// grants tracks who has a key. Only the last grant counts, because an earlier one that the service revoked need
// not have any further event.
func (w *Watch) grants(e history.Event) {
	if e.Grant == "" { // the renewal of a session
		return
	}
	mine := w.granted[e.Key].grant == e.Grant
	switch {
	case e.Type == history.OK && (e.F == history.Acquire || e.F == history.Renew && mine):
		w.granted[e.Key] = grantEnds{e.Grant, e.Until}
	case mine && (e.F == history.Lost || e.F == history.Release && (e.Type == history.OK || e.Type == history.Fail)):
		delete(w.granted, e.Key)
	}
}

// free says whether a key is free at a time, ns, as far as is on record.
func (w *Watch) free(key string, at int64) bool {
	last, held := w.granted[key]
	return !held || last.until != 0 && last.until <= at
}

// awaitFree waits until a key is free as far as is on record; it returns false if ctx is done first.
func (w *Watch) awaitFree(ctx context.Context, key string) bool {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		w.mu.Lock()
		free := w.free(key, history.Now())
		w.mu.Unlock()
		select {
		case <-ctx.Done():
			return false
		default:
		}
		if free {
			return true
		}
		<-ticker.C
	}
}

// caught handles a worker that has stopped at a call.
func (w *Watch) caught(e history.Event) {
	for waiting := range w.waiting {
		switch {
		case waiting.fault != e.Note:
		case waiting.contended != nil && !w.free(e.Key, e.Time):
			w.follow(func() { waiting.contended(e.Process, e.Key) })
			return
		default:
			delete(w.waiting, waiting)
			waiting.came <- entry{worker: e.Process, at: e.Time, caught: true}
			return
		}
	}
	if w.stray != nil {
		stray := w.stray
		w.follow(func() { stray(e.Process, e.Note) })
	}
}

// follow handles a caught worker in the background, while further events are observed.
func (w *Watch) follow(deal func()) {
	if !w.closed {
		w.following.Go(deal)
	}
}

// Close waits until every caught worker has been handled. Workers that are caught later stay stopped, so call
// it when they are about to be removed.
func (w *Watch) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.following.Wait()
}

// onStray sets the function for workers that were caught for a fault for which no step waits.
func (w *Watch) onStray(f func(worker, fault string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stray = f
}

// moment passes a moment to the steps that wait for it.
func (w *Watch) moment(moment, worker string, at int64, what string) {
	for waiting := range w.waiting {
		if waiting.moment == moment && (waiting.of == "" || waiting.of == worker) {
			delete(w.waiting, waiting)
			waiting.came <- entry{worker: worker, at: at, what: worker + " " + what}
		}
	}
}

// queue reports workers that wait for a key that another worker holds.
func (w *Watch) queue(at int64) {
	for worker, key := range w.asking {
		if slices.ContainsFunc(w.inside, func(s section) bool { return s.key == key && s.worker != worker }) {
			w.moment(history.MomentQueued, worker, at, "had to wait in the queue")
		}
	}
}

// stillInside reports the replicas that hold their lock, the last one first. A leader takes its lock once,
// before the first fault, so a step that waited for a new hold would wait until the end of the run. Workers
// leave their sections soon, so faults hit them as they enter.
func (w *Watch) stillInside() {
	if !w.lasting {
		return
	}
	for _, s := range slices.Backward(w.inside) {
		w.moment(history.MomentHolding, s.worker, w.entered[s.worker], "held the lock")
	}
}

// vouch records the end of a grant's validity, and reports if the worker is still inside by then.
func (w *Watch) vouch(e history.Event) {
	if e.Until == 0 {
		return
	}
	w.forgetEnd(e.Grant)
	timer := time.AfterFunc(time.Duration(e.Until-history.Now()), func() { w.runOut(e) })
	w.until[e.Grant] = ending{e.Until, timer}
}

func (w *Watch) forgetEnd(grant string) {
	if end, known := w.until[grant]; known {
		end.timer.Stop()
		delete(w.until, grant)
	}
}

func (w *Watch) runOut(e history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.until[e.Grant].at != e.Until { // it was renewed or released
		return
	}
	delete(w.until, e.Grant)
	if slices.Contains(w.inside, section{e.Process, e.Grant, e.Key}) {
		w.moment(history.MomentLost, e.Process, e.Until, "was still inside when its lease ran out")
	}
}

// store processes the resource's events about delayed writes.
func (w *Watch) store(e history.Event) {
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

// deferred says whether a fault delayed a write of a worker, and the write's outcome.
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
	entered := section{e.Process, e.Grant, e.Key}
	if slices.Contains(w.inside, entered) {
		return // a second read in the same section
	}
	w.remove(e.Process)
	w.inside = append(w.inside, entered)
	w.entered[e.Process] = e.Time
	w.moment(history.MomentHolding, e.Process, e.Time, "had read")
}

func (w *Watch) leave(e history.Event) {
	w.forgetEnd(e.Grant)
	w.remove(e.Process)
}

func (w *Watch) remove(worker string) {
	w.inside = slices.DeleteFunc(w.inside, func(s section) bool { return s.worker == worker })
	delete(w.entered, worker)
}

// Forget ignores a worker from now on, because it was killed.
func (w *Watch) Forget(worker string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone[worker] = true
	delete(w.asking, worker)
	w.remove(worker)
}

// killed says whether a worker is ignored.
func (w *Watch) killed(worker string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone[worker]
}

// await waits for a moment of the named worker or of any. A worker that already waits in a queue counts, and so
// does a replica that already holds its lock.
func (w *Watch) await(ctx context.Context, moment, of string) (entry, error) {
	waiting := &wait{moment: moment, of: of}
	return w.wait(ctx, waiting, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue(history.Now())
		w.stillInside()
		return nil
	})
}

// wait waits for a moment, or for a worker to be caught at a call, which prepare requests.
func (w *Watch) wait(ctx context.Context, waiting *wait, prepare func() error) (entry, error) {
	waiting.came = make(chan entry, 1)
	w.mu.Lock()
	w.waiting[waiting] = true
	w.mu.Unlock()
	err := prepare()
	if err == nil {
		select {
		case e := <-waiting.came:
			return e, nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, waiting)
	select {
	case e := <-waiting.came: // it came at the last moment, and its worker has stopped for it
		return e, nil
	default:
		return entry{}, err
	}
}

// asks says whether a worker is waiting for an acquire.
func (w *Watch) asks(worker string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, asks := w.asking[worker]
	return asks
}

// isInside says whether a worker is still in the section that it entered at a time, ns.
func (w *Watch) isInside(worker string, entered int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.entered[worker] == entered
}

// insiders returns the workers inside their sections, in the order of entry.
func (w *Watch) insiders() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var workers []string
	for _, s := range w.inside {
		workers = append(workers, s.worker)
	}
	return workers
}
