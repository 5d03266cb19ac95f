package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/checker/application"
	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/engine"
	"lockcheck/history"
	"lockcheck/internal/appfile"
	"lockcheck/internal/application/ask"
	"lockcheck/nemesis"
)

// ApplicationOptions of one test of a user's application. Zero values mean the defaults.
type ApplicationOptions struct {
	App appfile.App
	// Nemesis, Interval, Pause, Schedule and SkipUnsupported are as in Options.
	Nemesis         string
	Interval        time.Duration
	Pause           time.Duration
	Schedule        *nemesis.Schedule
	SkipUnsupported bool

	TimeLimit time.Duration
	MinOps    int64
	Require   []string
	Seed      uint64
	Machine
	Parameters map[string]string
}

const (
	// defaultActive is how long there may be faults in the test of an application.
	defaultActive = 30 * time.Second
	// settleTime is how long an application has after the last fault in any case.
	settleTime = 3 * time.Second
)

// appTest is a test of an application that is ready to run.
type appTest struct {
	ApplicationOptions
	spec     clusters.Spec
	schedule nemesis.Schedule
	recovery time.Duration
	leftOut  []string
	leader   *leadership // nil if the app file does not say how to ask for the leader
	// resourceAt is the address of the resource; "" before it has started, and without one.
	resourceAt string
}

// TestApplication runs one test of an application and judges it. What it returns and when it ends is as for Test.
func TestApplication(ctx context.Context, o ApplicationOptions, interrupt <-chan struct{}, progress Progress) (Outcome, error) {
	t, err := prepareApplication(o)
	if err != nil {
		return Outcome{}, err
	}
	if t.spec.OnDocker() {
		if err := ReadyForDocker(ctx, o.Binary); err != nil {
			return Outcome{}, err
		}
	}
	r, err := newAppRun(t, progress)
	if err != nil {
		return Outcome{}, err
	}
	interrupted, unsaved, err := r.conduct(ctx, interrupt)
	if err != nil {
		return Outcome{}, errors.Join(err, unsaved)
	}
	progress.Step("judging the history")
	judgement, err := Judge(r.folder)
	if err != nil {
		return Outcome{}, errors.Join(err, unsaved)
	}
	return Outcome{Judgement: judgement, Interrupted: interrupted, Delay: r.delay}, errors.Join(judgement.WriteReports(), unsaved)
}

// OutlineOfApplication checks the options of a test of an application without running it. The outline's Options have only
// the time limit. Errors are those of OutlineOf.
func OutlineOfApplication(o ApplicationOptions) (Outline, error) {
	t, err := prepareApplication(o)
	if err != nil {
		return Outline{}, err
	}
	return Outline{
		Options: Options{TimeLimit: t.TimeLimit}, Schedule: t.schedule,
		Effective: t.App.Lease, Recovery: t.recovery, Servers: len(t.App.Servers),
	}, nil
}

func prepareApplication(o ApplicationOptions) (*appTest, error) {
	t := &appTest{ApplicationOptions: o}
	if err := checkRequired(o.Require, application.Properties()); err != nil {
		return nil, err
	}
	switch {
	case t.Pause < 0:
		return nil, BadFlag("pause", t.Pause, "it must not be negative")
	case t.MinOps < 0:
		return nil, BadFlag("min-ops", t.MinOps, "it must not be negative")
	case t.Interval <= 0:
		return nil, BadFlag("nemesis-interval", t.Interval, "it must be positive")
	}
	t.spec, _ = clusters.ByName("none")
	if servers := t.servers(); len(servers) > 0 {
		t.spec = clusters.Custom(t.App.Name, servers)
	}
	t.recovery = max(t.App.Lease+settleTime, t.longestWithin()+time.Second)
	t.TimeLimit = cmp.Or(t.TimeLimit, defaultActive+t.recovery)
	if t.TimeLimit <= t.recovery {
		return nil, BadFlag("time-limit", t.TimeLimit, "the time without faults at the end alone takes %s: the lease of the app file and what its invariants may take; write --time-limit %s, or omit it",
			t.recovery, roomy(t.recovery, defaultActive/2))
	}
	if err := t.plan(); err != nil {
		return nil, err
	}
	servers, workers := t.plannedNodes()
	if slices.ContainsFunc(t.App.Questions, func(q ask.Question) bool { return q.Invariant.Kind == history.InvariantLeader }) {
		t.leader = newLeadership(t.App.Replicas, workers)
	}
	if err := t.settleOn(t.environment(servers, workers)); err != nil {
		return nil, &UsageError{Err: err, About: "nemesis"}
	}
	return t, nil
}

func (t *appTest) longestWithin() time.Duration {
	var longest time.Duration
	for _, q := range t.App.Questions {
		longest = max(longest, q.Invariant.Within)
	}
	return longest
}

func (t *appTest) active() time.Duration { return t.TimeLimit - t.recovery }

// plan makes the schedule, or takes the one that was given.
func (t *appTest) plan() (err error) {
	if t.Schedule != nil {
		t.schedule = *t.Schedule
		t.schedule.Steps = slices.Clone(t.schedule.Steps)
		if err := t.schedule.Check(); err != nil {
			return &UsageError{Err: err}
		}
		return nil
	}
	requests, err := nemesis.ParseRequests(t.Nemesis)
	if err != nil {
		return &UsageError{Err: err, About: "nemesis"}
	}
	for i, r := range requests {
		requests[i].Target = t.target(r)
	}
	servers, workers := t.plannedNodes()
	if err := badRequest(ofReplicas(nemesis.CheckRequests(requests, t.environment(servers, workers)))); err != nil {
		return err
	}
	t.schedule, err = nemesis.Random(t.Seed, requests, nemesis.Environment{Lease: t.App.Lease, Pause: t.Pause}, t.Interval, t.active())
	if err != nil {
		return &UsageError{Err: err, About: "nemesis"}
	}
	return nil
}

// ofReplicas renames the targets in an error, because users of applications write replica and not worker.
func ofReplicas(err error) error {
	var refused *nemesis.RequestError
	if !errors.As(err, &refused) {
		return err
	}
	var others []nemesis.Request
	for _, r := range refused.Others {
		switch r.Target {
		case "one worker":
			r.Target = "replica"
		case "all workers":
			r.Target = "replicas"
		case "minority workers", "majority workers":
			continue
		}
		others = append(others, r)
	}
	return &nemesis.RequestError{Request: refused.Request, Err: refused.Err, Others: others}
}

// target is what a fault of a random schedule hits: replicas, by the roles of workers, unless the user named others.
// Who holds the lock is known only if the replicas say so.
func (t *appTest) target(r nemesis.Request) string {
	switch {
	case r.Target == "replica":
		return "one worker"
	case r.Target == "replicas":
		return "all workers"
	case r.Target != "":
		return r.Target
	case !hitsReplicas(r.Fault) && !t.onlyReplicasClock(r.Fault):
		return ""
	case len(t.App.Says[history.Holding]) > 0:
		return "holder"
	}
	return "one worker"
}

// hitsReplicas says whether a kind of fault is for replicas where the user names no target. Those of disks and of
// clocks are for servers.
func hitsReplicas(kind string) bool {
	return slices.Contains([]string{
		history.Pause, history.Freeze, history.Kill, history.Partition, history.OneWay, history.PacketLoss, history.PacketDelay, history.SlowLink,
		history.StaleDNS, history.DNSFailure,
	}, kind)
}

// onlyReplicasClock reports whether a fault moves clocks and only replicas have a command that proves a step.
func (t *appTest) onlyReplicasClock(kind string) bool {
	asked := func(replica bool) bool {
		return slices.ContainsFunc(t.App.Servers, func(s appfile.Server) bool { return s.Replica == replica && s.ClockCommand != nil })
	}
	return history.Does(kind, history.Steps) && !asked(false) && (asked(true) || len(t.App.Servers) == 0)
}

// settleOn refuses a schedule with faults that are not supported here, or leaves them out.
func (t *appTest) settleOn(env nemesis.Environment) (err error) {
	t.schedule, t.leftOut, err = settleOn(env, t.schedule, t.leftOut, t.SkipUnsupported)
	if errors.Is(err, agent.ErrNoLeader) {
		return fmt.Errorf("%w; app.leader in the app file says how to find out which replica leads", err)
	}
	return err
}

// errClockOfMachine is why the wall clock of a replica on this machine is left alone.
var errClockOfMachine = errors.New("a replica on this machine has the clock of the machine; on Docker (app.compose, app.image or app.build) replicas have their own")

// plannedNodes are those that faults may hit, before any was started.
func (t *appTest) plannedNodes() (servers, replicas []*clusters.Node) {
	all, workers := t.spec.Plan(len(t.App.Servers), len(t.App.Replicas)+1)
	resource, workers := workers[0], workers[1:]
	resource.Name = history.Resource
	if len(t.App.Servers) > 0 {
		servers, replicas = t.divide(all)
		return t.withResource(servers, resource), replicas
	}
	for i, w := range workers {
		w.Name, w.Clock, w.Again = t.App.Replicas[i], errClockOfMachine, func(context.Context) error { return errors.New("it was only planned") }
	}
	return t.withResource(nil, resource), t.hittable(workers)
}

// hittable are the replicas on this machine that faults may hit.
func (t *appTest) hittable(replicas []*clusters.Node) []*clusters.Node {
	return slices.DeleteFunc(slices.Clone(replicas), func(n *clusters.Node) bool { return !t.App.Hittable(appfile.Server{Name: n.Name}) })
}

// divide separates replicas from the servers that they use, and leaves out nodes that faults may not hit.
func (t *appTest) divide(nodes []*clusters.Node) (servers, replicas []*clusters.Node) {
	for i, s := range t.App.Servers {
		switch {
		case !t.App.Hittable(s):
		case s.Replica:
			replicas = append(replicas, nodes[i])
		default:
			servers = append(servers, nodes[i])
		}
	}
	return servers, replicas
}

func (t *appTest) environment(servers, replicas []*clusters.Node) nemesis.Environment {
	env := nemesis.Environment{Servers: servers, Workers: replicas, Lease: t.App.Lease, Pause: t.Pause, Names: true}
	if t.leader != nil {
		env.Leader = t.leader.Leader
	}
	return env
}

// folderName names the folder of all runs that can be compared with this one.
func (t *appTest) folderName() string {
	faults := "none"
	if kinds := t.schedule.Faults(); len(kinds) > 0 {
		faults = strings.Join(kinds, "+")
	}
	return t.App.Name + "-" + faults
}

// appRun is a test of an application in progress.
type appRun struct {
	*appTest
	session

	replicas []*clusters.Node
	askers   []*clusters.Node
	load     *clusters.Node // nil if there is none
	resource *clusters.Node // nil if there is none
	tally    *appTally
	settled  *settled
}

func newAppRun(t *appTest, progress Progress) (*appRun, error) {
	shared, err := newSession(progress)
	if err != nil {
		return nil, err
	}
	r := &appRun{appTest: t, session: shared, tally: new(appTally), settled: newSettled(t.App.Questions)}
	r.section, r.status = finalLimit, r.tally.String
	if r.folder, err = newRunFolder(t.Store, t.folderName()); err != nil {
		return nil, err
	}
	return r, nil
}

// finalLimit is how long askers may take for their last answers, and replicas until they have ended.
const finalLimit = 30 * time.Second

// conduct does everything that must be undone, and undoes it. No later run uses its servers: nobody knows what the application
// has left on them.
func (r *appRun) conduct(ctx context.Context, interrupt <-chan struct{}) (interrupted bool, left, err error) {
	r.sweepLeftovers(ctx, r.spec.OnDocker())
	if r.site, err = openSite(r.id, "", r.Binary, r.spec.OnDocker()); err != nil {
		return false, nil, err
	}
	interrupted, unsaved, err := r.record(ctx, interrupt, r)
	close(r.over)
	return interrupted, errors.Join(unsaved, r.site.close(ctx)), err
}

// start starts the servers, the replicas, the askers and the load.
func (r *appRun) start(ctx context.Context) error {
	if err := r.startCluster(ctx); err != nil {
		return err
	}
	if err := r.startPrograms(ctx); err != nil {
		return err
	}
	servers, replicas := []*clusters.Node(nil), r.hittable(r.replicas)
	if len(r.App.Servers) > 0 {
		servers, replicas = r.divide(r.cluster.Servers())
	}
	env := r.environment(r.withResource(servers, r.resource), replicas)
	env.Watch = nemesis.NewWatch()
	if err := r.settleOn(env); err != nil {
		return err
	}
	r.nemesis = &nemesis.Nemesis{Environment: env, Schedule: r.schedule, Journal: r.site.journal}
	return nil
}

func (r *appRun) startCluster(ctx context.Context) (err error) {
	var logs map[string]string
	r.cluster, err = clusters.Start(ctx, clusters.Request{
		Run: r.id, Spec: r.spec, Binary: r.Binary,
		Labels:   map[string]string{engine.RunLabel: r.id, engine.OwnerLabel: r.site.owner.String()},
		Progress: r.progress.Step, Status: r.progress.Status, Launch: r.site.journal.Start, RegisterFolder: r.site.journal.Folder,
		Before: r.startResource, Disks: r.schedule.OnDisks(),
		Failed: func(c clusters.Cluster) { logs = serverLogs(c, time.Time{}) },
	})
	if err != nil {
		r.cluster = nil
		return r.keepLogs(logs, err)
	}
	r.site.cluster = r.cluster
	if r.schedule.OnDisks() {
		syncDisks(r.cluster.Servers(), r.progress.Step)
	}
	return nil
}

func (r *appRun) header(ctx context.Context, started bool) history.Header {
	h := history.Header{
		Run: r.id, Started: time.Now().UTC().Format(time.RFC3339), Version: r.Version,
		Lock: r.App.Name, Workload: history.WorkloadApplication, Guard: history.GuardNone,
		Faults: r.schedule.Faults(), Unavailable: r.leftOut, MinOps: r.MinOps, Require: r.Require, Seed: r.Seed,
		Parameters: r.Parameters, Command: r.Command,
		Application: &history.Application{Replicas: r.App.Replicas, Resource: r.App.Resource, Says: r.App.Says},
	}
	if r.App.LeaseKnown {
		h.Lease = r.App.Lease
	}
	for _, q := range r.App.Questions {
		h.Application.Invariants = append(h.Application.Invariants, q.Invariant)
	}
	if !started {
		return h
	}
	h.Images = r.cluster.Images()
	if r.spec.OnDocker() {
		h.Source = "images that the app file names"
	}
	for _, server := range r.cluster.Servers() {
		h.Servers = append(h.Servers, server.Name)
	}
	return h
}

func (r *appRun) observers() []func(history.Event) {
	observers := []func(history.Event){r.tally.Observe, r.settled.Observe}
	if r.leader != nil {
		observers = append(observers, r.leader.Observe)
	}
	return observers
}

func (r *appRun) planned() nemesis.Schedule { return r.schedule }

// work lets the application work and the nemesis inject faults until the time is over.
func (r *appRun) work(hard context.Context, interrupt <-chan struct{}) (interrupted bool, err error) {
	r.begin()
	r.recorder.Phase(history.PhaseReady, "")
	r.progress.Step("testing %s, %d replicas, for %s, then up to %s without faults; times count from here", r.App.Name, len(r.App.Replicas), r.active(), r.recovery)
	began, delay := readHostClock(), watchDelay(r.recorder.Stalled)
	defer func() { r.delay = delay() }()
	interrupted, err = r.inflict(hard, r.active(), func(ctx context.Context, _ <-chan struct{}) (bool, error) {
		return r.awaitEnd(time.Now().Add(r.active()), r.recovery, interrupt, nil, ctx.Done())
	})
	if err == nil && !interrupted {
		r.recorder.Phase(history.PhaseRecovery, "")
		interrupted, err = r.awaitEnd(time.Now().Add(r.recovery), 0, interrupt, r.settled.done(r.App.Lease+settleTime), nil)
	}
	return interrupted, errors.Join(err, r.collect(hard, interrupt), r.lateFailure(), r.recorder.failure(), readHostClock().check(began))
}
