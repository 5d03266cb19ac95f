package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/engine"
	"lockcheck/history"
	"lockcheck/internal/cleanup"
	"lockcheck/nemesis"
)

// session is what tests of locks and of applications have in common while they run: where they run, what they
// record, and how they end.
type session struct {
	id       string
	folder   string
	progress Progress
	// interrupted: the user ended the run. It then does not report the faults that it skips.
	interrupted *atomic.Bool

	site     *site
	cluster  clusters.Cluster // the cluster of the site, once it has started
	recorder *recorder
	nemesis  *nemesis.Nemesis

	// section is how long a program may still work after it is told to end.
	section time.Duration
	// ended is closed when there is nothing more to observe; nil for never.
	ended <-chan struct{}
	// status describes the current state for the status line.
	status func() string

	// sound: the run did not fail.
	sound bool
	delay time.Duration // as in Outcome
	// failed carries the first reason why the run cannot continue.
	failed   chan error
	stopping chan struct{} // closed when programs are expected to end
	stop     func()
	over     chan struct{} // closed when the ends of servers no longer matter
	follow   *sync.WaitGroup
	exits    map[*clusters.Node]<-chan clusters.Exit
}

// newSession makes a session that has neither a site nor a folder.
func newSession(progress Progress) (session, error) {
	id, err := cleanup.NewID(time.Now())
	stopping := make(chan struct{})
	return session{
		interrupted: new(atomic.Bool),
		id:          id, progress: progress, failed: make(chan error, 1), stopping: stopping, over: make(chan struct{}),
		exits: make(map[*clusters.Node]<-chan clusters.Exit), follow: new(sync.WaitGroup),
		stop: sync.OnceFunc(func() { close(stopping) }),
	}, err
}

// subject is what a session tests.
type subject interface {
	start(context.Context) error
	// header is what is known before the first event. With started, its servers and programs run.
	header(ctx context.Context, started bool) history.Header
	observers() []func(history.Event)
	// work returns when everything is recorded. Its error says why the run failed.
	work(ctx context.Context, interrupt <-chan struct{}) (interrupted bool, err error)
	planned() nemesis.Schedule
}

// sweepLeftovers removes what dead runs have left. A failure to do so is not fatal.
func (r *session) sweepLeftovers(ctx context.Context, onDocker bool) {
	left, _, err := cleanup.Clean(ctx, onDocker) // without an engine the cluster will not start
	if err != nil {
		r.progress.Step("leftovers of earlier runs could not be removed: %v", err)
	}
	for _, l := range left {
		r.progress.Step("removed what run %s had left: %d processes, %d Docker objects", l.Run, l.Processes, l.Objects)
	}
}

// record starts the cluster and records the run. A failed run is recorded as broken. unsaved says which files
// besides the history could not be stored.
func (r *session) record(ctx context.Context, interrupt <-chan struct{}, of subject) (interrupted bool, unsaved, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	interruptedEarly := cancelOn(ctx, cancel, interrupt)
	startErr := of.start(ctx)
	var unavailable *engine.UnavailableError
	r.site.nothingStarted = errors.As(startErr, &unavailable)
	interruptedEarly()
	if err := r.open(of.header(ctx, startErr == nil), of.observers()); err != nil {
		return false, nil, err
	}
	failure := startErr
	if failure == nil {
		interrupted, failure = of.work(ctx, interrupt)
	}
	interrupted = interrupted || Closed(interrupt)
	if interrupted && (ctx.Err() != nil || errors.Is(failure, context.Canceled)) {
		failure = nil // the interruption caused it
	}
	r.sound = failure == nil
	if r.nemesis != nil {
		closeWatch(ctx, r.nemesis.Environment.Watch)
	}
	r.finish(failure, interrupted)
	return interrupted, r.save(of.planned()), nil
}

// closeWatch waits until every worker that a fault stopped in flight goes on. It does not outlast the run's
// context: a second interrupt removes the containers at once.
func closeWatch(ctx context.Context, w *nemesis.Watch) {
	closed := make(chan struct{})
	go func() {
		w.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

// cancelOn cancels the start of the cluster on an interruption: there is nothing to collect yet.
func cancelOn(ctx context.Context, cancel func(), interrupt <-chan struct{}) (release func()) {
	done := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-interrupt:
			cancel()
		case <-done:
		case <-ctx.Done():
		}
	})
	return func() { close(done); waiting.Wait() }
}

// Closed says whether a channel is closed, without waiting.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// open begins the history. The header describes the cluster, so the history begins only after the cluster has
// started or failed to start.
func (r *session) open(header history.Header, observers []func(history.Event)) error {
	header.Format, header.Schema = history.Format, history.SchemaVersion
	writer, err := history.Create(filepath.Join(r.folder, HistoryFile), header)
	if err != nil {
		return err
	}
	r.recorder = &recorder{writer: writer, failed: r.unrecorded, observe: append([]func(history.Event){r.countFromFirst(), r.announce}, observers...)}
	if r.nemesis != nil {
		r.nemesis.Record = r.recorder.Record
		r.recorder.observe = append(r.recorder.observe, r.nemesis.Environment.Watch.Observe)
	}
	return WriteFile(r.folder, TestFile, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(header)
	})
}

// countFromFirst lets the progress count time from the first event, as all reports do. A fault then has the
// same time in both.
func (r *session) countFromFirst() func(history.Event) {
	counter, can := r.progress.(interface{ StartCount() })
	if !can {
		return func(history.Event) {}
	}
	start := sync.OnceFunc(counter.StartCount)
	return func(history.Event) { start() }
}

// announce shows the stages of faults.
func (r *session) announce(e history.Event) {
	if e.Fault == nil {
		return
	}
	f := e.Fault
	if f.Stage == history.Skipped && r.interrupted.Load() {
		return // the run ends, so the skipped fault is no news
	}
	switch f.Stage {
	case history.Proven, history.Skipped, history.Unproven, history.Unhealed:
		whom := cmp.Or(strings.Join(f.Targets, " "), f.Role)
		if len(f.Peers) > 0 {
			whom += " from " + strings.Join(f.Peers, " ")
		}
		r.progress.Step("%s of %s %s: %s", f.Kind, whom, f.Stage, f.Evidence)
	case history.ProvenHealed:
		if history.Does(f.Kind, history.Ends) {
			r.progress.Step("%s", f.Evidence)
			return
		}
		r.progress.Step("%s of %s healed", f.Kind, strings.Join(f.Targets, " "))
	}
}

// inflict lets the nemesis execute its schedule for some time while wait runs. The channel done of wait is
// closed when the schedule is done. inflict returns when wait has returned and all faults are healed, or when
// hard is done.
func (r *session) inflict(hard context.Context, length time.Duration, wait func(ctx context.Context, done <-chan struct{}) (bool, error)) (interrupted bool, err error) {
	ctx, cancel := context.WithCancel(hard)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.nemesis.Run(ctx, length)
	}()
	interrupted, err = wait(ctx, done)
	cancel()
	select {
	case <-done:
	case <-hard.Done(): // active faults are removed with everything else
	}
	return interrupted, err
}

// statusInterval is how often the status line is updated.
const statusInterval = 200 * time.Millisecond

// awaitEnd waits until a part of the run ends. The status line adds the time that follows.
func (r *session) awaitEnd(end time.Time, after time.Duration, interrupt, done, cancelled <-chan struct{}) (interrupted bool, err error) {
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	ticker := time.NewTicker(statusInterval)
	defer ticker.Stop()
	for {
		select {
		case <-timer.C:
			return false, nil
		case <-done:
			return false, nil
		case <-r.ended:
			return false, nil
		case <-interrupt:
			r.interrupted.Store(true)
			r.progress.Step("interrupted: healing faults and stopping; Ctrl-C again ends at once")
			return true, nil
		case <-cancelled:
			return true, nil
		case err := <-r.failed:
			return false, err
		case <-ticker.C:
			r.progress.Status("%s left: %s", (time.Until(end) + after).Round(time.Second), r.status())
		}
	}
}

// unrecorded ends a run whose history can no longer be written.
func (r *session) unrecorded(err error) {
	r.progress.Step("the run ends here because it can no longer be recorded: %v", err)
	r.fail(err)
}

// fail ends the run. Only the first reason is kept.
func (r *session) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}

// lateFailure returns a failure that came too late to end a wait; nil for none.
func (r *session) lateFailure() error {
	select {
	case err := <-r.failed:
		return err
	default:
		return nil
	}
}
