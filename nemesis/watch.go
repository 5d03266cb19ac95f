package nemesis

import (
	"context"
	"slices"
	"sync"
	"time"

	"lockcheck/history"
)

// Watch follows the events of a run and knows which workers are inside their section: from
// their first read under the lock until they give it up. It tells who waits for that of the
// moments of the workers.
type Watch struct {
	mu      sync.Mutex
	inside  []section            // in the order in which they were entered
	asking  map[string]string    // the key that a worker asks for at the moment
	entered map[string]int64     // when a worker entered the section that it is inside of, ns
	until   map[string]ending    // of the validity of a grant that may be held
	granted map[string]grantEnds // the last grant of a key that was not given back, as far as is on record
	gone    map[string]bool      // workers that were killed
	waiting map[*wait]bool
	held    map[heldBy]*heldWrite // writes held back
	lasting bool                  // sections of replicas of an application: one may last for the whole run
	// stray is told of a worker that was caught for a fault for which nobody waits; nil to tell nobody.
	stray func(worker, fault string)
	// following has what deals with workers that were caught, and closed says that no more does.
	following sync.WaitGroup
	closed    bool
}

// ending is that of a validity, in ns, and the timer that tells of it.
type ending struct {
	at    int64
	timer *time.Timer
}

// grantEnds is a grant and the end of its validity, ns; 0 if it ends by no clock.
type grantEnds struct {
	grant string
	until int64
}

// section is one that a worker is inside of, and the grant under which it is.
type section struct{ worker, grant, key string }

// heldBy is a fault that holds back a write of a worker.
type heldBy struct{ fault, worker string }

// heldWrite is a write that was held back, and what became of it, "" if nothing yet.
type heldWrite struct {
	client  string
	op      int64
	outcome history.Type
}

// wait is for a moment of a worker, the named one or any; or for one to be caught for a fault.
type wait struct {
	moment, of string
	fault      string
	came       chan entry
	// contended is told of a worker that was caught for the fault in an acquire of a key that somebody
	// has, and the wait goes on; nil if that is as good.
	contended func(worker, key string)
}

// entry is the moment of a worker, or of the servers.
type entry struct {
	worker string // "" for the servers
	at     int64  // ns
	what   string // happened then
	// caught: it has stopped at a call, and must be let go. mine: by a fault that has that
	// worker for a target.
	caught, mine bool
}

// NewWatch returns a Watch that has seen nothing.
func NewWatch() *Watch {
	return &Watch{
		asking: make(map[string]string), entered: make(map[string]int64), until: make(map[string]ending),
		granted: make(map[string]grantEnds), gone: make(map[string]bool), waiting: make(map[*wait]bool), held: make(map[heldBy]*heldWrite),
	}
}

// Observe sees an event.
func (w *Watch) Observe(e history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Process {
	case history.Resource:
		w.store(e)
	case history.Nemesis, history.Harness, history.Service:
	default:
		if e.F == history.Started { // a replica that was killed is back
			delete(w.gone, e.Process)
		}
		if !w.gone[e.Process] { // a last word
			w.worker(e)
		}
	}
}

// worker sees what a worker does.
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
	case e.Type == history.Fail && (e.F == history.Renew || e.F == history.Release):
		w.moment(history.MomentLost, e.Process, e.Time, "was refused its "+string(e.F))
	}
}

// grants sees who has a key. Only the last grant counts: of a grant before it nothing needs to be on
// record where the service took it away.
func (w *Watch) grants(e history.Event) {
	mine := w.granted[e.Key].grant == e.Grant
	switch {
	case e.Type == history.OK && (e.F == history.Acquire || e.F == history.Renew && mine):
		w.granted[e.Key] = grantEnds{e.Grant, e.Until}
	case mine && (e.F == history.Lost || e.F == history.Release && (e.Type == history.OK || e.Type == history.Fail)):
		delete(w.granted, e.Key)
	}
}

// free says whether nobody has a key at a time, ns, by what is on record.
func (w *Watch) free(key string, at int64) bool {
	last, held := w.granted[key]
	return !held || last.until != 0 && last.until <= at
}

// awaitFree waits until nobody has a key by what is on record; it is false if ctx is done first.
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

// caught sees that a worker has stopped at a call.
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

// follow deals with a worker that was caught while further events are observed.
func (w *Watch) follow(deal func()) {
	if !w.closed {
		w.following.Go(deal)
	}
}

// Close waits until every worker that was caught has been dealt with. Workers that are caught later
// stay stopped: call it when they are about to be removed.
func (w *Watch) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.following.Wait()
}

// onStray tells f of who was caught for a fault for which nobody waits.
func (w *Watch) onStray(f func(worker, fault string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stray = f
}

// moment tells those who wait for it.
func (w *Watch) moment(moment, worker string, at int64, what string) {
	for waiting := range w.waiting {
		if waiting.moment == moment && (waiting.of == "" || waiting.of == worker) {
			delete(w.waiting, waiting)
			waiting.came <- entry{worker: worker, at: at, what: worker + " " + what}
		}
	}
}

// queue tells of the workers that wait for what another one has.
func (w *Watch) queue(at int64) {
	for worker, key := range w.asking {
		if slices.ContainsFunc(w.inside, func(s section) bool { return s.key == key && s.worker != worker }) {
			w.moment(history.MomentQueued, worker, at, "had to wait in the queue")
		}
	}
}

// stillInside tells of the replica that holds its lock, the last one first. A leader takes its lock once, before the
// first fault, so whoever waited for it to do so again would wait until the end of the run. Workers come out
// of their sections soon, and faults meet them as they enter.
func (w *Watch) stillInside() {
	if !w.lasting {
		return
	}
	for _, s := range slices.Backward(w.inside) {
		w.moment(history.MomentHolding, s.worker, w.entered[s.worker], "held the lock")
	}
}

// vouch notes the end of the validity of a grant, and tells if it comes while the worker is
// still inside.
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
	if w.until[e.Grant].at != e.Until { // it was renewed, or given back
		return
	}
	delete(w.until, e.Grant)
	if slices.Contains(w.inside, section{e.Process, e.Grant, e.Key}) {
		w.moment(history.MomentLost, e.Process, e.Until, "was still inside when its lease ran out")
	}
}

// store sees what the resource does with writes that are held back.
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

// Forget ignores a worker from now on: it was killed.
func (w *Watch) Forget(worker string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone[worker] = true
	delete(w.asking, worker)
	w.remove(worker)
}

// killed says whether a worker is to be ignored.
func (w *Watch) killed(worker string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone[worker]
}

// await waits for a moment of a worker, the named one or any. Who waits in a queue by then
// need not begin to, nor must a replica that holds its lock take it anew.
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

// wait waits for a moment, or for a worker that has stopped at a call, which prepare asks for.
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
	case e := <-waiting.came: // at the last moment: whom it names has stopped for it
		return e, nil
	default:
		return entry{}, err
	}
}

// asks says whether a worker asks for a lock at the moment.
func (w *Watch) asks(worker string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, asks := w.asking[worker]
	return asks
}

// isInside says whether a worker is still inside the section that it entered at a time, ns.
func (w *Watch) isInside(worker string, entered int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.entered[worker] == entered
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
