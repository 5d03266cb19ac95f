package workloads

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"lockcheck/clients"
	"lockcheck/clients/unixrpc"
	"lockcheck/clusters/vdso"
	"lockcheck/history"
)

// WorkerConfig is the configuration of a worker process. Durations are in ns.
type WorkerConfig struct {
	Name  string `json:"name"`  // "w1"…
	Index int    `json:"index"` // from 1; makes the elements of workers distinct
	Lock  string `json:"lock"`
	// Definition is the definition of a user's own lock; nil for one of lockcheck's locks.
	Definition *clients.Definition `json:"definition,omitempty"`
	Nodes      []string            `json:"nodes"`  // addresses of the lock's servers
	Folder     string              `json:"folder"` // shared by all workers
	Socket     string              `json:"socket"` // of the resource
	Workload   string              `json:"workload"`
	Seed       uint64              `json:"seed"`
	// Prefix is the resource's Prefix, for workers that do not use the resource.
	Prefix string `json:"prefix,omitempty"`
	// ClockSocket is where the worker tells its wall clock; "" if that cannot be moved.
	ClockSocket string `json:"clock_socket,omitempty"`
	// InDatabase: the lock's database stores the data, not the resource.
	InDatabase bool `json:"in_database,omitempty"`

	Use
	// Idle is the pause between two holds, and Retry that between a failed attempt and the next. There is no
	// pause after a hold whose write was refused because its version was stale.
	Idle  Range `json:"idle"`
	Retry Range `json:"retry"`
	// Timeout bounds each call to the lock service. If Wait is not 0, Wait bounds attempts instead.
	Timeout time.Duration `json:"timeout_ns"`
}

// tellTime is the method by which a worker tells the wall clock of its client.
func tellTime() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{vdso.TimeMethod: vdso.TellTime(vdso.TrueTimeBelow)}
}

// Commands to a worker, one per line on its standard input, in this order. The commands of Catcher may follow.
// The end of the input tells the worker to finish its section and exit.
const (
	CommandOpen = "open" // the servers are ready: connect, start the client
	CommandGo   = "go"   // begin to work
)

// resourceTimeout bounds a call to the resource. Only one fault delays such calls, and its delay may exceed the
// lease.
const resourceTimeout = 5 * time.Minute

// refusedError says that the resource's guard, or the lock's database, refused an access.
type refusedError struct{ guard Guard }

func (e *refusedError) Error() string { return "refused by the guard " + string(e.guard) }

// worker is the state of a worker process.
type worker struct {
	config   WorkerConfig
	workload Workload
	lock     clients.Lock
	store    clients.DataStore // nil if the resource stores the data
	resource *unixrpc.Client
	record   *Emitter
	rng      *rand.Rand
	stop     <-chan struct{}
	// patience is closed when the worker stops waiting for calls that outlast their deadlines.
	patience <-chan struct{}
	catches  *catches
	ops      opCounter
	attempts int
	held     int
	updates  atomic.Int64
	holding  atomic.Pointer[string] // the grant of its section; nil outside
	// reads: in its next hold the worker shares the lock with other readers.
	reads bool
	// complained: the client's mistake is recorded.
	complained sync.Once
	// exiting is locked for good when the process is about to end. restart starts it again.
	exiting sync.Mutex
	restart func(WorkerConfig, progress) error
}

// RunWorker works until its input ends. It returns an error only if it could not do its work; failures of the
// lock are events.
func RunWorker(ctx context.Context, config WorkerConfig, input io.Reader, output io.Writer) error {
	info, known := clients.Find(config.Lock, config.Definition)
	if !known {
		return fmt.Errorf("worker: unknown lock %q", config.Lock)
	}
	workload, known := ByName(config.Workload)
	if !known {
		return fmt.Errorf("worker: unknown workload %q", config.Workload)
	}
	before, again, err := startedAgain()
	if err != nil {
		return fmt.Errorf("worker: %s: %w", progressVariable, err)
	}
	if config.ClockSocket != "" {
		go func() {
			if err := unixrpc.Serve(ctx, config.ClockSocket, tellTime()); err != nil { // then a moved clock is not proven
				fmt.Fprintf(os.Stderr, "worker %s: its clock: %v\n", config.Name, err)
			}
		}()
	}
	catches := newCatches(config.Seed + uint64(config.Index))
	opened, started, stop := commands(input, catches.obey)
	if again {
		opened, started, config.After = alreadyClosed, alreadyClosed, 0
	}
	select {
	case <-opened:
	case <-stop:
		return nil
	}
	w := &worker{
		config: config, workload: workload,
		resource: unixrpc.NewClient(config.Socket),
		record:   NewEmitter(config.Name, output),
		catches:  catches,
		rng:      rand.New(rand.NewPCG(config.Seed, uint64(config.Index)+uint64(before.Attempts)<<32)),
		stop:     stop, patience: stop, restart: startAgain,
		attempts: before.Attempts, held: before.Held,
	}
	w.ops.last.Store(before.Ops)
	w.updates.Store(before.Updates)
	defer w.resource.Close()
	settings := clients.Config{
		Worker: config.Name, Nodes: config.Nodes, Folder: config.Folder,
		TTL: config.TTL, Permits: config.Permits, LockDelay: config.LockDelay, NoKeepAlive: config.NoKeepAlive,
		Timeout: config.Timeout, Stop: stop, Renewing: w.renewing,
	}
	w.lock, err = info.Open(settings)
	if again && err != nil {
		if w.lock, err = reopen(info, settings); err != nil {
			return nil // the run is over
		}
	}
	switch {
	case err != nil && config.Definition != nil:
		return clientFailed(w.record, err, stop)
	case err != nil:
		return fmt.Errorf("worker: %w", err)
	}
	if info.Uses(clients.Watchdog) {
		w.patience = alreadyClosed
	}
	defer w.closeLock(ctx)
	return w.begun(ctx, info, started)
}

// begun does the worker's work once its client has started.
func (w *worker) begun(ctx context.Context, info clients.Info, started <-chan struct{}) error {
	if w.config.Definition != nil {
		introduce(w.record, *w.config.Definition, w.lock)
	}
	if w.config.InDatabase {
		var can bool
		if w.store, can = w.lock.(clients.DataStore); !can {
			return fmt.Errorf("worker: lock %s %s", w.config.Lock, Database.Lacks(info))
		}
	}
	if w.config.Bare {
		// A bare worker never uses the resource.
	} else if err := w.awaitResource(ctx); err != nil && !w.stopped() {
		return fmt.Errorf("worker %s: %w", w.config.Name, err)
	}
	select {
	case <-started:
		return w.run(ctx)
	case <-w.stop:
		return nil
	}
}

// awaitResource waits until the resource serves, or until the run ends. The resource is started at the same
// time as the worker.
func (w *worker) awaitResource(ctx context.Context) error {
	ctx, release := w.untilStopped(ctx)
	defer release()
	ctx, cancel := context.WithTimeout(ctx, resourceTimeout)
	defer cancel()
	for {
		_, err := w.currentKey(ctx)
		if err == nil || !unixrpc.NeverSent(err) || ctx.Err() != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// commands turns the input into the signals that it carries, and passes other commands to others.
func commands(input io.Reader, others func(command string) bool) (opened, started, stop <-chan struct{}) {
	open, begin, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	commands := map[string]func(){
		CommandOpen: sync.OnceFunc(func() { close(open) }),
		CommandGo:   sync.OnceFunc(func() { close(begin) }),
	}
	go func() {
		defer close(end)
		for lines := bufio.NewScanner(input); lines.Scan(); {
			if command, known := commands[lines.Text()]; known {
				command()
			} else {
				others(lines.Text())
			}
		}
	}()
	return open, begin, end
}

func (w *worker) run(ctx context.Context) error {
	untilStopped, release := w.untilStopped(ctx)
	defer release()
	w.drawReads()
	w.sleep(w.config.After)
	for !w.stopped() {
		if w.config.Holds > 0 && w.held == w.config.Holds {
			<-w.stop
			return nil
		}
		again, err := w.attempt(ctx, untilStopped)
		if err != nil {
			return fmt.Errorf("worker %s: %w", w.config.Name, err)
		}
		if err := w.record.Err(); err != nil {
			return fmt.Errorf("worker %s: %w", w.config.Name, err)
		}
		if w.failed() {
			<-w.stop // the failure ends the run
			return nil
		}
		w.sleep(again.draw(w.rng))
	}
	return nil
}

func (w *worker) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// sleep waits, at most until the end of the run.
func (w *worker) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.stop:
	}
}

// attempt tries once to get the lock, at most until the run ends, and works under the lock if it was granted.
// It returns how long to wait before the next attempt.
func (w *worker) attempt(ctx, untilStopped context.Context) (again Range, err error) {
	key, err := w.key(ctx)
	if err != nil {
		return again, err
	}
	w.attempts++
	asked := clients.Attempt{
		Key: key, ID: fmt.Sprintf("%s-%d", w.config.Name, w.attempts), TTL: w.config.TTL,
		Shared: w.reads,
	}
	grant, outcome := w.acquire(untilStopped, asked)
	grant.Shared = asked.Shared
	if outcome == clients.Done {
		w.held++
		w.drawReads()
		return w.hold(ctx, grant)
	}
	grant = clients.Grant{Key: key, ID: asked.ID, Shared: asked.Shared}
	again = w.config.Retry
	if outcome != clients.Busy && w.config.IgnoreFailedAcquire && !w.stopped() {
		again, err = w.nextPause(w.section(ctx, grant, new(lease)))
	}
	if outcome == clients.Unknown {
		// The service may have granted the lock. An abandoned attempt must not stay behind as a holder.
		w.release(ctx, grant)
	}
	return again, err
}

func (w *worker) acquire(ctx context.Context, attempt clients.Attempt) (clients.Grant, clients.Outcome) {
	op := w.begin(history.Event{F: history.Acquire, Key: attempt.Key, Grant: attempt.ID, Shared: attempt.Shared})
	op.Shared = false
	grant, err := atMoments(w, op, func() (clients.Grant, error) {
		return bounded(ctx, cmp.Or(w.config.Wait, w.config.Timeout), w.patience, func(ctx context.Context) (clients.Grant, error) {
			return w.lock.Acquire(ctx, attempt)
		})
	})
	op.Token, op.Until, op.Expired, op.Wakes = grant.Token, grant.Until, grant.Expired, grant.Wakes
	return grant, w.complete(op, err)
}

// drawReads decides whether the next hold is a reader's. A refused attempt does not draw again. Otherwise writers
// that readers keep out would turn into readers.
func (w *worker) drawReads() { w.reads = w.workload.Readers && w.rng.IntN(2) == 0 }

// untilStopped returns a context that also ends with the run, so that an attempt waiting in a queue does not
// delay the end.
func (w *worker) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-w.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func (w *worker) release(ctx context.Context, grant clients.Grant) {
	w.completeRelease(ctx, grant, w.beginRelease(grant))
}

func (w *worker) beginRelease(grant clients.Grant) history.Event {
	return w.begin(history.Event{F: history.Release, Key: grant.Key, Grant: grant.ID, Token: grant.Token})
}

func (w *worker) completeRelease(ctx context.Context, grant clients.Grant, op history.Event) {
	_, err := atMoments(w, op, func() (struct{}, error) {
		return bounded(ctx, w.config.Timeout, w.patience, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, w.lock.Release(ctx, grant)
		})
	})
	w.complete(op, err)
}

// hold works under the lock and releases it. It returns how long to wait before the next attempt.
func (w *worker) hold(ctx context.Context, grant clients.Grant) (again Range, err error) {
	w.holding.Store(&grant.ID)
	defer w.holding.Store(nil)
	lease := w.keep(ctx, grant)
	over := func() {}
	if w.config.ExitOnLoss {
		over = w.exitOnLoss(grant, lease)
	}
	err = w.section(ctx, grant, lease)
	over()
	lease.end()
	// The hold ends here. Waiting for a renewal first would lengthen the hold by a delay of lockcheck's own,
	// and could cause an overlap that no user would have.
	op := w.beginRelease(grant)
	lease.waitForRenewal()
	again, err = w.nextPause(err)
	w.completeRelease(ctx, grant, op)
	return again, err
}

// nextPause returns how long to wait after a section that ended with err. It returns err unless the worker can
// continue.
func (w *worker) nextPause(err error) (again Range, _ error) {
	var refused *refusedError
	switch {
	case !errors.As(err, &refused):
		return w.config.Idle, err
	// Optimistic concurrency retries a write on a stale version at once, with a fresh read. Another worker's
	// write was accepted, so the system makes progress.
	case refused.guard == CompareAndSet:
		return Range{}, nil
	}
	return w.config.Idle, nil // the refusal is on record, and the lock must be released all the same
}

// key returns the lock name for an attempt.
func (w *worker) key(ctx context.Context) (string, error) {
	switch {
	case w.config.Bare && w.config.OwnKey:
		return keyName(w.config.Prefix, w.config.Index), nil
	case w.config.Bare:
		return keyName(w.config.Prefix, 0), nil
	}
	return w.currentKey(ctx)
}

func (w *worker) currentKey(ctx context.Context) (string, error) {
	var answer KeyAnswer
	err := w.call(ctx, "key", KeyRequest{Client: w.config.Name}, &answer)
	return answer.Key, err
}

func (w *worker) call(ctx context.Context, method string, request, reply any) error {
	ctx, cancel := context.WithTimeout(ctx, resourceTimeout)
	defer cancel()
	return w.resource.Call(ctx, method, request, reply)
}

// begin records an invocation and returns the event for its completion.
func (w *worker) begin(event history.Event) history.Event {
	event.Type = history.Invoke
	event.Op = w.ops.next()
	w.record.Emit(event)
	return event
}

// complete records the outcome of a call to the lock service.
func (w *worker) complete(op history.Event, err error) clients.Outcome {
	outcome := clients.OutcomeOf(err)
	var busy *clients.BusyError
	switch {
	case err == nil:
		op.Type = history.OK
	case errors.As(err, &busy):
		op.Type, op.Error, op.Holder = history.Fail, history.Busy, busy.Holder
	// That a release had no effect does not mean that the lock was not held, which is what a failed release
	// means in the history.
	case outcome == clients.Unknown, outcome == clients.NoEffect && op.F != history.Acquire:
		op.Type, op.Error = history.Info, err.Error()
	default:
		op.Type, op.Error = history.Fail, err.Error()
	}
	w.record.Emit(op)
	return outcome
}
