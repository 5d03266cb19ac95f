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

// Silent keeps the progress of one run of many to itself.
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
}

// Test runs one test and judges it. The error is a *UsageError, or says that
// not even a broken run could be recorded; that a run failed is in its results.
// With a History in the outcome the run was judged, and the error says what
// could not be written or removed afterwards.
// When interrupt is closed the run heals, collects and judges what there is; when ctx
// is done it no longer heals or collects.
func Test(ctx context.Context, o Options, interrupt <-chan struct{}, progress Progress) (Outcome, error) {
	t, err := prepare(o)
	if err == nil {
		err = t.checkLibraryVersion()
	}
	if err == nil && t.spec.OnDocker() {
		err = ReadyForDocker(ctx, o.Binary)
	}
	if err != nil {
		return Outcome{}, err
	}
	r, err := newRun(t, progress)
	if err != nil {
		return Outcome{}, err
	}
	r.sweepLeftovers(ctx)
	interrupted, left, err := r.conduct(ctx, interrupt)
	if err != nil {
		return Outcome{}, errors.Join(err, left)
	}
	progress.Step("judging the history")
	judgement, err := Judge(r.folder)
	if err != nil {
		return Outcome{}, errors.Join(err, left)
	}
	return Outcome{Judgement: judgement, Interrupted: interrupted}, errors.Join(judgement.WriteReports(), left)
}

// run is one test in progress.
type run struct {
	*test
	id       string
	me       cleanup.Owner
	folder   string
	progress Progress

	journal *cleanup.Journal
	cluster clusters.Cluster
	// nothingStarted: there was no engine to start anything on.
	nothingStarted bool
	recorder       *recorder
	tally          *tally
	overlap        *overlapWatch
	canary         *canary
	nemesis        *nemesis.Nemesis
	resource       *clusters.Node
	workers        []*clusters.Node
	observer       *clusters.Node // of the lock service; nil if it cannot be observed

	// failed carries the first reason for which the run cannot go on.
	failed   chan error
	stopping chan struct{} // closed when programs are expected to end
	stop     func()
	follow   sync.WaitGroup
	exits    map[*clusters.Node]<-chan clusters.Exit
}

func newRun(t *test, progress Progress) (*run, error) {
	me, err := cleanup.Self()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	id, err := cleanup.NewID(now)
	if err != nil {
		return nil, err
	}
	stopping := make(chan struct{})
	r := &run{
		test: t, me: me, progress: progress, tally: newTally(), overlap: newOverlapWatch(), canary: newCanary(),
		id:     id,
		failed: make(chan error, 1), stopping: stopping,
		exits: make(map[*clusters.Node]<-chan clusters.Exit),
		stop:  sync.OnceFunc(func() { close(stopping) }),
	}
	name := strings.Join([]string{t.info.Name, t.Workload, t.nemesisName()}, "-")
	if r.folder, err = newRunFolder(t.Store, name, now); err != nil {
		return nil, err
	}
	return r, nil
}

// sweepLeftovers removes what dead runs have left. It is no reason not to run.
func (r *run) sweepLeftovers(ctx context.Context) {
	left, _, err := cleanup.Clean(ctx, r.spec.OnDocker()) // without an engine the cluster will not start
	if err != nil {
		r.progress.Step("leftovers of earlier runs could not be removed: %v", err)
	}
	for _, l := range left {
		r.progress.Step("removed what run %s had left: %d processes, %d Docker objects", l.Run, l.Processes, l.Objects)
	}
}

// conduct does all that needs undoing, and undoes it. left is what could not
// be undone or stored; the record of the run stands all the same.
func (r *run) conduct(ctx context.Context, interrupt <-chan struct{}) (interrupted bool, left, err error) {
	// The reaper first: the journal of a run that is killed in between would stay.
	reaper, err := cleanup.StartReaper(r.Binary, r.id, r.spec.OnDocker())
	if err != nil {
		return false, nil, err
	}
	if r.journal, err = cleanup.OpenJournal(r.id, r.me, r.spec.OnDocker()); err != nil {
		return false, reaper.Dismiss(), err
	}
	interrupted, unsaved, err := r.record(ctx, interrupt)
	return interrupted, errors.Join(unsaved, r.cleanUp(ctx, reaper)), err
}

// cleanUp removes what was started, whatever happened and even if the run is
// being cancelled: containers and stopped processes would stay.
func (r *run) cleanUp(ctx context.Context, reaper *cleanup.Reaper) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if r.nothingStarted {
		return errors.Join(r.journal.Remove(), reaper.Dismiss())
	}
	if err := r.close(limited); err != nil || r.cluster == nil || ctx.Err() != nil {
		err = errors.Join(err, r.journal.Close()) // it is the reaper's from here on
		// A request that was cut short may still be carried out by the engine:
		// the reaper looks again until nothing appears any more. It removes the
		// journal if it succeeds, and then there is nothing to complain of.
		if reaper.Abandon() == nil {
			return nil
		}
		return errors.Join(err, errors.New("the reaper could not remove everything; run lockcheck clean"))
	}
	// What a client has left behind is no child of ours.
	return errors.Join(cleanup.End(r.id), r.journal.Remove(), reaper.Dismiss())
}

func (r *run) close(ctx context.Context) error {
	if r.cluster == nil {
		return nil
	}
	return r.cluster.Close(ctx)
}

// record starts the cluster and records the run; a run that fails is recorded
// as a broken one. What could not be stored next to the history is unsaved.
func (r *run) record(ctx context.Context, interrupt <-chan struct{}) (interrupted bool, unsaved, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	interruptedEarly := cancelOn(ctx, cancel, interrupt)
	startErr := r.start(ctx)
	var unavailable *engine.UnavailableError
	r.nothingStarted = errors.As(startErr, &unavailable)
	interruptedEarly()
	if err := r.open(ctx, startErr); err != nil {
		return false, nil, err
	}
	failure := startErr
	if failure == nil {
		interrupted, failure = r.work(ctx, interrupt)
	}
	interrupted = interrupted || closed(interrupt)
	if interrupted && (ctx.Err() != nil || errors.Is(failure, context.Canceled)) {
		failure = nil // it is what the interruption did
	}
	r.finish(failure, interrupted)
	return interrupted, r.save(), nil
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

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// start brings up servers, resource and workers.
func (r *run) start(ctx context.Context) error {
	var logs map[string]string
	_, err := clusters.Start(ctx, clusters.Request{
		Run: r.id, Spec: r.spec, Nodes: r.Nodes, Version: r.ServerVersion, Binary: r.Binary, Image: cmp.Or(r.Images[r.spec.Image], r.spec.Replacement()),
		Labels:   map[string]string{engine.RunLabel: r.id, engine.OwnerLabel: r.me.String()},
		Progress: r.progress.Step, Status: r.progress.Status, Launch: r.journal.Start, RegisterFolder: r.journal.Folder,
		Meanwhile: r.startPrograms,
		Failed:    func(c clusters.Cluster) { logs = serverLogs(c) },
	})
	if err != nil {
		r.cluster = nil // it is gone
		return r.keepLogs(logs, err)
	}
	env := nemesis.Environment{
		Servers: r.cluster.Servers(), Workers: r.workers, Lease: r.effective,
		Writes: workloads.WriteDelayer{Resource: r.resource.Input}, Watch: nemesis.NewWatch(),
	}
	if err := r.settleOn(env); err != nil { // now that their machines can tell
		return err
	}
	r.nemesis = &nemesis.Nemesis{Environment: env, Schedule: r.schedule, Journal: r.journal}
	return nil
}

// open begins the history. What the header says of the cluster is known only
// once that has started, or failed to.
func (r *run) open(ctx context.Context, startErr error) error {
	header := r.header(ctx, startErr == nil)
	header.Format, header.Schema = history.Format, history.SchemaVersion
	writer, err := history.Create(filepath.Join(r.folder, HistoryFile), header)
	if err != nil {
		return err
	}
	r.recorder = &recorder{writer: writer, failed: r.unrecorded, observe: []func(history.Event){r.tally.Observe, r.canary.Observe, r.announce, r.endWithClient}}
	if r.UntilOverlap {
		r.recorder.observe = append(r.recorder.observe, r.overlap.Observe)
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
		Lock: r.info.Name, Workload: r.Workload, Guard: r.Guard,
		Lease: r.lease, Grace: r.grace(), Tokens: r.info.Token != "", Session: r.info.Session, Wakes: r.info.CountsWakes,
		Faults: r.schedule.Faults(), Unavailable: r.leftOut, MinOps: r.MinOps, Require: r.Require, Seed: r.Seed,
		Parameters: r.Parameters, Command: r.Command,
	}
	for i := range r.Concurrency {
		h.Workers = append(h.Workers, fmt.Sprintf("w%d", i+1))
	}
	if !started {
		return h
	}
	h.Reaches = r.reaches()
	h.Images = r.cluster.Images()
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
			name := fmt.Sprintf("w%d", i+1)
			reaches[name] = append(reaches[name], server.Name)
		}
	}
	return reaches
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

// endWithClient ends the run with a client that can do nothing more.
func (r *run) endWithClient(e history.Event) {
	if e.F == history.Client && e.Error != "" {
		r.fail(fmt.Errorf("%s: %s", e.Process, e.Error))
	}
}

// work lets the workers work and the nemesis inject faults until the time is over. Its
// error is why the run failed.
func (r *run) work(hard context.Context, interrupt <-chan struct{}) (interrupted bool, err error) {
	ctx, cancel := context.WithCancel(hard)
	defer cancel()
	if interrupted, err := r.begin(ctx, interrupt); interrupted || err != nil {
		return interrupted, errors.Join(err, r.collect(hard), r.lateFailure(), r.recorder.failure())
	}
	r.recorder.Phase(history.PhaseReady, "")
	r.progress.Step("running %s for %s, then %s without faults", r.describe(), r.active(), r.recovery)
	began := readHostClock()
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
	if err == nil && !interrupted {
		r.recover(hard)
	}
	return interrupted, errors.Join(err, r.collect(hard), r.lateFailure(), r.recorder.failure(), readHostClock().check(began))
}

func (r *run) describe() string {
	return fmt.Sprintf("%d workers, %s under lock %s, guard %s", r.Concurrency, r.Workload, r.info.Name, r.Guard)
}

// statusInterval is how often the status line is renewed.
const statusInterval = 200 * time.Millisecond

// wait returns when the time for faults is over, or the schedule is done and
// the run is to end with it, or what is searched for was seen.
func (r *run) wait(ctx context.Context, interrupt <-chan struct{}, done <-chan struct{}) (interrupted bool, err error) {
	switch {
	case r.UntilOverlap:
		done = r.overlap.seen
	case !r.EndEarly, len(r.schedule.Steps) == 0:
		done = nil // also where no fault is what is tested
	}
	return r.awaitEnd(time.Now().Add(r.active()), r.recovery, interrupt, done, ctx.Done())
}

// rest waits through the recovery period at the end.
func (r *run) rest(interrupt <-chan struct{}) (interrupted bool, err error) {
	return r.awaitEnd(time.Now().Add(r.recovery), 0, interrupt, nil, nil)
}

// awaitEnd waits for the end of a part of the run, after which some time follows.
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
	r.progress.Step("the run ends here, for it cannot be recorded any more: %v", err)
	r.fail(err)
}

// fail keeps the first reason.
func (r *run) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}

// lateFailure returns a failure that nobody has looked at yet.
func (r *run) lateFailure() error {
	select {
	case err := <-r.failed:
		return err
	default:
		return nil
	}
}

// observers is the one that there may be.
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
