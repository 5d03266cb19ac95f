package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters"
	"lockcheck/clusters/engine"
	"lockcheck/history"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// Progress shows how a run is going.
type Progress interface {
	Step(format string, args ...any)   // something worth a line
	Status(format string, args ...any) // how things stand at the moment
}

// Silent drops all progress, for one of many runs.
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
	// Delay is the longest time by which this process was woken up late while the workers worked. The workers
	// may have been woken up as late. A violation stands all the same, because workers stamp their own
	// events. A fault may have hit another moment than intended.
	Delay time.Duration
}

// Test runs one test and judges it. The error is a *UsageError, or says that not even a broken run could be
// recorded. The failure of a run is in its results. If the outcome has a History, the run was judged, and the
// error says what could not be written or removed afterwards. When interrupt is closed, the run heals its
// faults, collects its logs and judges what was recorded. When ctx is done, it neither heals nor collects.
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

// run is one test of a lock in progress.
type run struct {
	*test
	session

	tally    *tally
	overlap  *overlapWatch
	violated *violationWatch
	canary   *canary
	traces   *traces
	resource *clusters.Node
	workers  []*clusters.Node
	observer *clusters.Node // of the lock service; nil if it cannot be observed
}

// newRun makes a run on the site of earlier runs or, if used is nil, on its own site.
func newRun(t *test, used *site, progress Progress) (*run, error) {
	shared, err := newSession(progress)
	if err != nil {
		return nil, err
	}
	r := &run{
		test: t, session: shared,
		tally:    newTally(),
		overlap:  newOverlapWatch(t.permits()),
		violated: newViolationWatch(t.requires(checker.MutualExclusion)),
		canary:   newCanary(t.workerNames(), t.effective),
		traces:   newTraces(t),
	}
	r.site, r.section, r.ended = used, t.LongestSection(), r.violated.seen
	r.status = r.tally.String
	if r.folder, err = newRunFolder(t.Store, t.folderName()); err != nil {
		return nil, err
	}
	return r, nil
}

// conduct starts and records the run, and removes everything that it started, except for a cluster that later
// runs can use. left says what could not be removed or stored; the record of the run is valid all the same.
func (r *run) conduct(ctx context.Context, interrupt <-chan struct{}) (interrupted bool, left, err error) {
	if r.site == nil {
		r.sweepLeftovers(ctx, r.spec.OnDocker())
		if r.site, err = openSite(r.id, r.madeOf(), r.Binary, r.spec.OnDocker()); err != nil {
			return false, nil, err
		}
	}
	interrupted, unsaved, err := r.record(ctx, interrupt, r)
	close(r.over)
	if err == nil && r.sound && !interrupted && ctx.Err() == nil && r.traces.none() {
		return false, errors.Join(unsaved, r.Pool.give(ctx, r.site)), nil
	}
	return interrupted, errors.Join(unsaved, r.site.close(ctx)), err
}

// start brings up servers, resource and workers.
func (r *run) start(ctx context.Context) error {
	if err := r.startCluster(ctx); err != nil {
		return err
	}
	env := r.environment(r.cluster.Servers(), r.workers)
	env.Writes, env.Watch = workloads.WriteDelayer{Resource: r.resource.Input}, nemesis.NewWatch()
	env.Calls = workloads.Catcher{Workers: inputs(r.workers)}
	if err := r.settleOn(env); err != nil { // only the machines of running servers can show what they support
		return err
	}
	r.nemesis = &nemesis.Nemesis{Environment: env, Schedule: r.schedule, Journal: r.site.journal}
	return nil
}

// startCluster starts a cluster, or only the programs on the cluster of earlier runs.
func (r *run) startCluster(ctx context.Context) error {
	if r.site.cluster != nil {
		return r.startPrograms(ctx, r.site.cluster)
	}
	var logs map[string]string
	_, err := clusters.Start(ctx, clusters.Request{
		Run: r.id, Spec: r.spec, Nodes: r.Nodes, Version: r.ServerVersion, Binary: r.Binary, Image: r.serverImage(),
		Labels:   map[string]string{engine.RunLabel: r.id, engine.OwnerLabel: r.site.owner.String()},
		Progress: r.progress.Step, Status: r.progress.Status, Launch: r.site.journal.Start, RegisterFolder: r.site.journal.Folder,
		Meanwhile: r.startPrograms, Lasting: r.lasting(), Disks: r.schedule.OnDisks(), Versions: r.schedule.Versions(),
		Failed: func(c clusters.Cluster) { logs = serverLogs(c, time.Time{}) },
	})
	if err != nil {
		r.cluster, r.site.cluster = nil, nil // the cluster no longer exists
		return r.keepLogs(logs, err)
	}
	return nil
}

// serverImage is the image that replaces the image of the servers; "" for the image of the recipe.
func (t *test) serverImage() string { return cmp.Or(t.Images[t.spec.Image], t.spec.Replacement()) }

// observers are the functions that act on the events of the run.
func (r *run) observers() []func(history.Event) {
	observe := []func(history.Event){r.tally.Observe, r.canary.Observe, r.traces.Observe, r.endWithClient}
	if r.schedule.OnDisks() {
		observe = append(observe, r.syncAtFirstGrant())
	}
	// Neither distinguishes readers, who may hold a lock next to each other.
	if r.UntilOverlap && !r.workload.Readers {
		observe = append(observe, r.overlap.Observe)
	}
	if r.UntilViolation && !r.workload.Readers && r.permits() <= 1 { // it compares pairs of holders
		observe = append(observe, r.violated.Observe)
	}
	return observe
}

func (r *run) planned() nemesis.Schedule { return r.schedule }

func (r *run) header(ctx context.Context, started bool) history.Header {
	h := history.Header{
		Run: r.id, Started: time.Now().UTC().Format(time.RFC3339), Version: r.Version,
		Lock: r.info.Name, Workload: r.Workload, Guard: r.Guard, Workers: r.workerNames(),
		Lease: r.lease, Grace: r.grace(), Tokens: r.info.Token != "", Session: r.info.Session, Renewals: r.recordsRenewals(), Supports: r.info.Supports(), Wakes: r.info.CountsWakes,
		Renewed: r.allUse(func(u workloads.Use) bool { return u.Renew }),
		Checked: r.allUse(func(u workloads.Use) bool { return u.CheckBeforeWrite }),
		Permits: r.permits(), Faults: r.schedule.Faults(), Unavailable: r.leftOut, MinOps: r.MinOps, Require: r.Require, Handover: r.Handover, Seed: r.Seed,
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

// reaches says to which server each worker is tied; nil if none is.
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

// endWithClient ends the run when a user's client can do nothing more.
func (r *run) endWithClient(e history.Event) {
	if e.F == history.Client && e.Error != "" {
		r.fail(fmt.Errorf("%s: %s", e.Process, e.Error))
	}
}

// work lets the workers work and the nemesis inject faults until the time is over. Its error says why the run
// failed.
func (r *run) work(hard context.Context, interrupt <-chan struct{}) (interrupted bool, err error) {
	if interrupted, err := r.begin(hard, interrupt); interrupted || err != nil {
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
	interrupted, err = r.inflict(hard, r.active(), func(ctx context.Context, done <-chan struct{}) (bool, error) {
		return r.wait(ctx, interrupt, done)
	})
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
	workers := "1 worker"
	if r.Concurrency > 1 {
		workers = fmt.Sprintf("%d workers", r.Concurrency)
	}
	return fmt.Sprintf("%s, %s under lock %s, guard %s", workers, r.Workload, r.info.Name, r.Guard)
}

// wait returns when the time for faults is over, when the schedule is done (EndEarly), or when an overlap was
// seen (UntilOverlap).
func (r *run) wait(ctx context.Context, interrupt <-chan struct{}, done <-chan struct{}) (interrupted bool, err error) {
	switch {
	case r.UntilOverlap:
		done = r.overlap.seen
	case !r.EndEarly, len(r.schedule.Steps) == 0:
		done = nil // also without any scheduled fault
	}
	return r.awaitEnd(time.Now().Add(r.active()), r.recovery, interrupt, done, ctx.Done())
}

// rest waits for the end of the recovery period.
func (r *run) rest(interrupt <-chan struct{}) (interrupted bool, err error) {
	var recovered <-chan struct{}
	if r.EndRecovered {
		recovered = r.canary.everyone
	}
	return r.awaitEnd(time.Now().Add(r.recovery), 0, interrupt, recovered, nil)
}

// serviceObserver lists the observer of the lock service, if there is one.
func (r *run) serviceObserver() []*clusters.Node {
	if r.observer == nil {
		return nil
	}
	return []*clusters.Node{r.observer}
}

// followAll records what the programs say and watches over all processes.
func (r *run) followAll() {
	for _, program := range slices.Concat([]*clusters.Node{r.resource}, r.serviceObserver(), r.workers) {
		r.follow.Go(func() {
			if err := r.recorder.Follow(program.Name, program.Output, false); err != nil {
				r.fail(err)
			}
		})
		r.watch(program)
	}
	for _, server := range r.cluster.Servers() {
		r.watch(server)
	}
}
