package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters"
	"lockcheck/clusters/engine"
	"lockcheck/history"
	"lockcheck/internal/cleanup"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// Progress is told how a run is going.
type Progress interface {
	Step(format string, args ...any)   // something worth a line
	Status(format string, args ...any) // how things stand at the moment
}

// Silent drops all progress, for one run of many.
type Silent struct{}

// Step implements Progress.
func (Silent) Step(string, ...any) {}

// Status implements Progress.
func (Silent) Status(string, ...any) {}

// Outcome of a test.
type Outcome struct {
	Judgement
	// Interrupted: the run was ended early from outside.
	Interrupted bool
	// Delay is the longest time by which this process was woken up late while the workers
	// worked. The workers may have been woken up as late. A violation stands all the same,
	// because workers stamp their own events; a fault may have hit another moment than the one
	// that it was aimed at.
	Delay time.Duration
}

// Test runs one test and judges it. The error is a *UsageError, or says that
// not even a broken run could be recorded; that a run failed is in its results.
// With a History in the outcome the run was judged, and the error says what
// could not be written or removed afterwards.
// When interrupt is closed, the run heals its faults, collects its logs and judges what was recorded.
// When ctx is done, it neither heals nor collects.
func Test(ctx context.Context, o Options, interrupt <-chan struct{}, progress Progress) (Outcome, error) {
	t, err := prepare(o)
	if err == nil {
		err = t.linked()
	}
	if err == nil {
		err = t.ensureWorkerProgram(ctx, progress)
	}
	if err != nil {
		return Outcome{}, err
	}
	used, left := o.Pool.take(ctx, t)
	if used == nil && t.spec.OnDocker() {
		err = ReadyForDocker(ctx, o.Binary)
	}
	if err != nil {
		return Outcome{}, errors.Join(err, left)
	}
	r, err := newRun(t, used, progress)
	if err != nil {
		return Outcome{}, errors.Join(err, left, used.close(ctx))
	}
	interrupted, unsaved, err := r.conduct(ctx, interrupt)
	left = errors.Join(left, unsaved)
	if err != nil {
		return Outcome{}, errors.Join(err, left)
	}
	progress.Step("judging the history")
	judgement, err := Judge(r.folder)
	if err != nil {
		return Outcome{}, errors.Join(err, left)
	}
	write := judgement.WriteReports
	if o.ResultsOnly {
		write = judgement.writeResults
	}
	return Outcome{Judgement: judgement, Interrupted: interrupted, Delay: r.delay}, errors.Join(write(), left)
}

// run is one test in progress.
type run struct {
	*test
	id       string
	folder   string
	progress Progress

	site     *site
	cluster  clusters.Cluster // that of the site, once it has started
	recorder *recorder
	tally    *tally
	overlap  *overlapWatch
	violated *violationWatch
	canary   *canary
	traces   *traces
	nemesis  *nemesis.Nemesis
	resource *clusters.Node
	workers  []*clusters.Node
	observer *clusters.Node // of the lock service; nil if it cannot be observed

	// sound: the run did not fail.
	sound bool
	delay time.Duration // as in Outcome
	// failed carries the first reason for which the run cannot go on.
	failed   chan error
	stopping chan struct{} // closed when programs are expected to end
	stop     func()
	over     chan struct{} // closed when the ends of servers no longer matter
	follow   sync.WaitGroup
	exits    map[*clusters.Node]<-chan clusters.Exit
}

// newRun makes a run on the site of others before it, or on one of its own if that is nil.
func newRun(t *test, used *site, progress Progress) (*run, error) {
	id, err := cleanup.NewID(time.Now())
	if err != nil {
		return nil, err
	}
	stopping := make(chan struct{})
	r := &run{
		test: t, id: id, site: used, progress: progress,
		tally:    newTally(),
		overlap:  newOverlapWatch(t.permits()),
		violated: newViolationWatch(t.requires(checker.MutualExclusion)),
		canary:   newCanary(t.workerNames(), t.effective),
		traces:   newTraces(t),
		failed:   make(chan error, 1), stopping: stopping, over: make(chan struct{}),
		exits: make(map[*clusters.Node]<-chan clusters.Exit),
		stop:  sync.OnceFunc(func() { close(stopping) }),
	}
	if r.folder, err = newRunFolder(t.Store, t.folderName()); err != nil {
		return nil, err
	}
	return r, nil
}

// sweepLeftovers removes what dead runs have left. Its failure is not fatal.
func (r *run) sweepLeftovers(ctx context.Context) {
	left, _, err := cleanup.Clean(ctx, r.spec.OnDocker()) // without an engine the cluster will not start
	if err != nil {
		r.progress.Step("leftovers of earlier runs could not be removed: %v", err)
	}
	for _, l := range left {
		r.progress.Step("removed what run %s had left: %d processes, %d Docker objects", l.Run, l.Processes, l.Objects)
	}
}

// conduct does everything that must be undone, and undoes it, except for a cluster that later runs can
// use. left says what could not be undone or stored; the record of the run is valid all the same.
func (r *run) conduct(ctx context.Context, interrupt <-chan struct{}) (interrupted bool, left, err error) {
	if r.site == nil {
		r.sweepLeftovers(ctx)
		if r.site, err = openSite(r.id, r.test); err != nil {
			return false, nil, err
		}
	}
	interrupted, unsaved, err := r.record(ctx, interrupt)
	close(r.over)
	if err == nil && r.sound && !interrupted && ctx.Err() == nil && r.traces.none() {
		return false, errors.Join(unsaved, r.Pool.give(ctx, r.site)), nil
	}
	return interrupted, errors.Join(unsaved, r.site.close(ctx)), err
}

// record starts the cluster and records the run; a failed run is recorded as broken. unsaved says
// which files next to the history could not be stored.
func (r *run) record(ctx context.Context, interrupt <-chan struct{}) (interrupted bool, unsaved, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	interruptedEarly := cancelOn(ctx, cancel, interrupt)
	startErr := r.start(ctx)
	var unavailable *engine.UnavailableError
	r.site.nothingStarted = errors.As(startErr, &unavailable)
	interruptedEarly()
	if err := r.open(ctx, startErr); err != nil {
		return false, nil, err
	}
	failure := startErr
	if failure == nil {
		interrupted, failure = r.work(ctx, interrupt)
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
	return interrupted, r.save(), nil
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

// cancelOn cancels while the cluster starts: there is nothing yet to collect.
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

// Closed says whether a channel is, without waiting.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// start brings up servers, resource and workers.
func (r *run) start(ctx context.Context) error {
	if err := r.startCluster(ctx); err != nil {
		return err
	}
	env := r.environment(r.cluster.Servers(), r.workers)
	env.Writes, env.Watch = workloads.WriteDelayer{Resource: r.resource.Input}, nemesis.NewWatch()
	env.Calls = workloads.Catcher{Workers: inputs(r.workers)}
	if err := r.settleOn(env); err != nil { // now that their machines can tell
		return err
	}
	r.nemesis = &nemesis.Nemesis{Environment: env, Schedule: r.schedule, Journal: r.site.journal}
	return nil
}

// startCluster starts what is not there from runs before.
func (r *run) startCluster(ctx context.Context) error {
	if r.site.cluster != nil {
		return r.startPrograms(ctx, r.site.cluster)
	}
	var logs map[string]string
	_, err := clusters.Start(ctx, clusters.Request{
		Run: r.id, Spec: r.spec, Nodes: r.Nodes, Version: r.ServerVersion, Binary: r.Binary, Image: r.serverImage(),
		Labels:   map[string]string{engine.RunLabel: r.id, engine.OwnerLabel: r.site.owner.String()},
		Progress: r.progress.Step, Status: r.progress.Status, Launch: r.site.journal.Start, RegisterFolder: r.site.journal.Folder,
		Meanwhile: r.startPrograms, Lasting: r.lasting(),
		Failed: func(c clusters.Cluster) { logs = serverLogs(c, time.Time{}) },
	})
	if err != nil {
		r.cluster, r.site.cluster = nil, nil // it is gone
		return r.keepLogs(logs, err)
	}
	return nil
}

// serverImage replaces the image of the servers; "" for the recipe.
func (t *test) serverImage() string { return cmp.Or(t.Images[t.spec.Image], t.spec.Replacement()) }

// open begins the history. What the header says of the cluster is known only
// once that has started, or failed to.
func (r *run) open(ctx context.Context, startErr error) error {
	header := r.header(ctx, startErr == nil)
	header.Format, header.Schema = history.Format, history.SchemaVersion
	writer, err := history.Create(filepath.Join(r.folder, HistoryFile), header)
	if err != nil {
		return err
	}
	r.recorder = &recorder{writer: writer, failed: r.unrecorded, observe: []func(history.Event){
		r.countFromFirst(), r.tally.Observe, r.canary.Observe, r.traces.Observe, r.announce, r.endWithClient,
	}}
	// Neither distinguishes readers, who may hold a lock next to each other.
	if r.UntilOverlap && !r.workload.Readers {
		r.recorder.observe = append(r.recorder.observe, r.overlap.Observe)
	}
	if r.UntilViolation && !r.workload.Readers && r.permits() <= 1 { // it compares pairs of holders
		r.recorder.observe = append(r.recorder.observe, r.violated.Observe)
	}
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

func (r *run) header(ctx context.Context, started bool) history.Header {
	h := history.Header{
		Run: r.id, Started: time.Now().UTC().Format(time.RFC3339), Version: r.Version,
		Lock: r.info.Name, Workload: r.Workload, Guard: r.Guard, Workers: r.workerNames(),
		Lease: r.lease, Grace: r.grace(), Tokens: r.info.Token != "", Session: r.info.Session, Supports: r.info.Supports(), Wakes: r.info.CountsWakes,
		Renewed: r.allUse(func(u workloads.Use) bool { return u.Renew }),
		Checked: r.allUse(func(u workloads.Use) bool { return u.CheckBeforeWrite }),
		Permits: r.permits(), Faults: r.schedule.Faults(), Unavailable: r.leftOut, MinOps: r.MinOps, Require: r.Require, Seed: r.Seed,
		Parameters: r.Parameters, Command: r.Command,
	}
	if !started {
		return h
	}
	if r.site.id != r.id {
		h.Cluster, h.Earlier = r.site.id, r.site.runs
	}
	h.Reaches = r.reaches()
	h.Images, h.Source = r.cluster.Images(), r.cluster.Source()
	h.Versions = r.moduleVersions()
	for _, server := range r.cluster.Servers() {
		h.Servers = append(h.Servers, server.Name)
		if version, err := server.Host.Version(ctx); err == nil && version != "" {
			h.Versions[server.Server.Program] = version
		}
	}
	return h
}

// reaches says which server each worker is tied to; nil if none is.
func (r *run) reaches() map[string][]string {
	if !r.Pin {
		return nil
	}
	reaches := make(map[string][]string)
	for i := range r.Concurrency {
		for _, server := range r.servers(i + 1) {
			name := workerName(i + 1)
			reaches[name] = append(reaches[name], server.Name)
		}
	}
	return reaches
}

// countFromFirst lets the progress count time from the first event, as all reports do: a fault has the
// same time in both.
func (r *run) countFromFirst() func(history.Event) {
	counter, can := r.progress.(interface{ StartCount() })
	if !can {
		return func(history.Event) {}
	}
	start := sync.OnceFunc(counter.StartCount)
	return func(history.Event) { start() }
}

// announce shows the stages of faults.
func (r *run) announce(e history.Event) {
	if e.Fault == nil {
		return
	}
	f := e.Fault
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

// endWithClient ends the run when a client of the user's own can do nothing more.
func (r *run) endWithClient(e history.Event) {
	if e.F == history.Client && e.Error != "" {
		r.fail(fmt.Errorf("%s: %s", e.Process, e.Error))
	}
}

// work lets the workers work and the nemesis inject faults until the time is over. Its error says why
// the run failed.
func (r *run) work(hard context.Context, interrupt <-chan struct{}) (interrupted bool, err error) {
	ctx, cancel := context.WithCancel(hard)
	defer cancel()
	if interrupted, err := r.begin(ctx, interrupt); interrupted || err != nil {
		return interrupted, errors.Join(err, r.collect(hard, interrupt), r.lateFailure(), r.recorder.failure())
	}
	r.recorder.Phase(history.PhaseReady, "")
	atMost := ""
	if r.EndEarly && len(r.schedule.Steps) > 0 {
		atMost = " at most"
	}
	r.progress.Step("running %s for %s%s, then %s without faults; times count from the start of the workers", r.describe(), r.active(), atMost, r.recovery)
	if longest := r.LongestSection(); longest > r.TimeLimit {
		r.progress.Step("a critical section lasts up to %s, longer than the run: after its time limit the run waits for sections that have begun", longest)
	}
	began, delay := readHostClock(), watchDelay(r.recorder.Stalled)
	defer func() { r.delay = delay() }()
	nemesisDone := make(chan struct{})
	go func() {
		defer close(nemesisDone)
		r.nemesis.Run(ctx, r.active())
	}()
	interrupted, err = r.wait(ctx, interrupt, nemesisDone)
	cancel()
	select {
	case <-nemesisDone:
	case <-hard.Done(): // everything is removed, with whatever is in force
	}
	if err == nil && !interrupted {
		r.recorder.Phase(history.PhaseRecovery, "")
		interrupted, err = r.rest(interrupt)
	}
	if err == nil && !interrupted && !Closed(r.violated.seen) {
		r.recover(hard, interrupt)
	}
	return interrupted, errors.Join(err, r.collect(hard, interrupt), r.lateFailure(), r.recorder.failure(), readHostClock().check(began))
}

func (r *run) describe() string {
	return fmt.Sprintf("%d workers, %s under lock %s, guard %s", r.Concurrency, r.Workload, r.info.Name, r.Guard)
}

// statusInterval is how often the status line is renewed.
const statusInterval = 200 * time.Millisecond

// wait returns when the time for faults is over, when the schedule is done (EndEarly), or when the
// overlap that is searched for was seen (UntilOverlap).
func (r *run) wait(ctx context.Context, interrupt <-chan struct{}, done <-chan struct{}) (interrupted bool, err error) {
	switch {
	case r.UntilOverlap:
		done = r.overlap.seen
	case !r.EndEarly, len(r.schedule.Steps) == 0:
		done = nil // also for a run that is to have no faults
	}
	return r.awaitEnd(time.Now().Add(r.active()), r.recovery, interrupt, done, ctx.Done())
}

// rest waits through the recovery period at the end.
func (r *run) rest(interrupt <-chan struct{}) (interrupted bool, err error) {
	var recovered <-chan struct{}
	if r.EndRecovered {
		recovered = r.canary.everyone
	}
	return r.awaitEnd(time.Now().Add(r.recovery), 0, interrupt, recovered, nil)
}

// awaitEnd waits until a part of the run ends. The status line adds the time that follows.
func (r *run) awaitEnd(end time.Time, after time.Duration, interrupt, done, cancelled <-chan struct{}) (interrupted bool, err error) {
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
		case <-r.violated.seen:
			return false, nil
		case <-interrupt:
			return true, nil
		case <-cancelled:
			return true, nil
		case err := <-r.failed:
			return false, err
		case <-ticker.C:
			r.progress.Status("%s left: %s", (time.Until(end) + after).Round(time.Second), r.tally)
		}
	}
}

// unrecorded ends a run whose record cannot be written any more.
func (r *run) unrecorded(err error) {
	r.progress.Step("the run ends here because it can no longer be recorded: %v", err)
	r.fail(err)
}

// fail ends the run; only the first reason is kept.
func (r *run) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}

// lateFailure returns the failure that ended no wait, nil for none.
func (r *run) lateFailure() error {
	select {
	case err := <-r.failed:
		return err
	default:
		return nil
	}
}

// observers lists the observer of the lock service, if there is one.
func (r *run) observers() []*clusters.Node {
	if r.observer == nil {
		return nil
	}
	return []*clusters.Node{r.observer}
}

// followAll records what the programs say and watches over all processes.
func (r *run) followAll() {
	for _, program := range slices.Concat([]*clusters.Node{r.resource}, r.observers(), r.workers) {
		r.follow.Go(func() {
			if err := r.recorder.Follow(program.Name, program.Output); err != nil {
				r.fail(err)
			}
		})
		r.watch(program)
	}
	for _, server := range r.cluster.Servers() {
		r.watch(server)
	}
}
