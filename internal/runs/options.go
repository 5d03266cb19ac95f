// Package runs takes one test from its options to a run that is stored with its verdict.
package runs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/clusters"
	"lockcheck/history"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/spelling"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// Options are the options of one test, as a user gives them. Zero values mean the defaults of the lock.
type Options struct {
	Lock     string
	Workload string
	Guard    string
	// Nemesis lists kinds of faults for a random schedule. It is ignored if Schedule is set.
	Nemesis  string
	Interval time.Duration // time between faults of a random schedule
	// Pause is the length of the pauses in a random schedule; 0 for longer than the lease.
	Pause    time.Duration
	Schedule *nemesis.Schedule
	// EndEarly ends the run when the schedule is done, not at the time limit.
	EndEarly bool

	TimeLimit   time.Duration
	Concurrency int
	// ServerVersion is a version that the servers can have; "" for the default.
	ServerVersion string
	Nodes         int // number of servers; 0 for the default
	// Pin ties each worker to one server, in turn.
	Pin bool
	// Use is how all workers use the lock. Workers says what single workers do differently.
	workloads.Use
	Workers []workloads.Use
	// UntilOverlap ends the time for faults when two workers seem to hold the lock at once.
	UntilOverlap bool
	// UntilViolation ends the run when the lock service has visibly violated a required property, and no
	// expired validity can excuse it.
	UntilViolation bool
	// EndRecovered ends the recovery period when the longest lease is over and every live worker was granted
	// the lock after it. Later effects of a fault go unseen.
	EndRecovered bool
	// ResultsOnly leaves out the reports for people and for CI. Judgement.WriteReports can make them later
	// from the stored history and results.
	ResultsOnly bool
	// SkipUnsupported leaves out faults that are not supported on these servers.
	SkipUnsupported bool
	// Rate bounds the holds per second of all workers together; 0 for no bound.
	Rate    float64
	MinOps  int64
	Require []string
	// Handover bounds the idle time of no-idle-lock; 0 for the checker's default.
	Handover time.Duration
	Seed     uint64

	Images map[string]string // recipe to the image that replaces it
	Machine
	// Parameters are recorded in the history as given.
	Parameters map[string]string

	// recoveryLimit is how long the lock may take beyond the recovery period; 0 for the default.
	recoveryLimit time.Duration
}

// Defaults of a test.
const (
	defaultTimeLimit   = 20 * time.Second
	DefaultConcurrency = 5
	DefaultInterval    = 3 * time.Second
	DefaultMinOps      = 20
	defaultWait        = 5 * time.Second
	// defaultRotate is the number of updates under one name of the lock, if each update has its own hold.
	// With fresh names the history of each name stays short, and checking it is fast.
	defaultRotate = 40
)

// AnyUse says whether any worker uses its lock in a given way.
func (o Options) AnyUse(is func(workloads.Use) bool) bool {
	return is(o.Use) || slices.ContainsFunc(o.Workers, func(u workloads.Use) bool { return is(u.Or(o.Use)) })
}

// DefaultSection is the default time that workers spend in their critical section.
func DefaultSection() workloads.Range {
	return workloads.Range{Min: 20 * time.Millisecond, Max: 60 * time.Millisecond}
}

// UsageError says that the user asked for something that makes no sense.
type UsageError struct {
	Err error
	// About names the flag whose value is wrong; "" if no single flag is.
	About string
}

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError about no flag in particular.
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// BadFlag returns a UsageError about one flag and, unless it is nil, the flag's value.
func BadFlag(flag string, value any, format string, args ...any) error {
	name := "--" + flag
	if value != nil {
		name += fmt.Sprint(" ", value)
	}
	return &UsageError{Err: fmt.Errorf("%s: %w", name, fmt.Errorf(format, args...)), About: flag}
}

// test is a test that is ready to run.
type test struct {
	Options
	lock     lockfile.Lock
	info     clients.Info // of the lock
	workload workloads.Workload
	spec     clusters.Spec // of its servers
	// lease is the shortest time after which the lock of any worker can expire, and effective the longest.
	lease     time.Duration
	effective time.Duration
	schedule  nemesis.Schedule
	recovery  time.Duration
	// leftOut says which kinds of faults were left out, and why.
	leftOut []string
}

// prepare checks the options and fills in what they leave open.
func prepare(o Options) (*test, error) {
	t := &test{Options: o}
	var err error
	if t.lock, err = lockfile.Find(o.Lock); err != nil {
		return nil, &UsageError{Err: err, About: "lock"}
	}
	t.info, t.spec = t.lock.Info, t.lock.Servers
	var known bool
	if t.workload, known = workloads.ByName(o.Workload); !known {
		return nil, unknown("workload", o.Workload, workloads.Names())
	}
	if !slices.Contains(workloads.Guards(), o.Guard) {
		return nil, unknown("guard", o.Guard, workloads.Guards())
	}
	if err := t.checkValues(); err != nil {
		return nil, err
	}
	ttls := t.ttls()
	t.lease = t.info.Lease(slices.Min(ttls))
	t.effective = t.info.Effective(slices.Max(ttls), *t.LockDelay)
	// The recovery period is long enough for the lock to be free again, and for the liveness checker to see
	// that.
	t.recovery = t.effective + t.info.Grace + checker.LivenessGrace + 500*time.Millisecond
	if err := t.planInTime(); err != nil {
		return nil, err
	}
	if t.guard() == workloads.Database && slices.Contains(t.schedule.Faults(), history.DelayWrite) {
		return nil, BadFlag("guard", t.Guard, "%s delays writes to the resource, and this guard has none; use another guard, or leave %s out of the faults", history.DelayWrite, history.DelayWrite)
	}
	if err := t.settle(); err != nil {
		return nil, err
	}
	if fault, least := t.schedule.Least(t.effective); least > t.active() {
		return nil, BadFlag("time-limit", t.TimeLimit, "it leaves %s for faults, and %s needs %s; write --time-limit %s, or omit it",
			t.active(), fault, least, roomy(t.recovery, least))
	}
	return t, nil
}

// planInTime makes the schedule. If the user sets no time limit, it chooses one that is long enough for the
// schedule.
func (t *test) planInTime() error {
	if t.TimeLimit != 0 {
		return t.plan()
	}
	t.TimeLimit = max(defaultTimeLimit, 3*t.recovery)
	if err := t.plan(); err != nil {
		return err
	}
	if _, least := t.schedule.Least(t.effective); least > t.active() {
		t.TimeLimit = t.longEnough(least)
		return t.plan()
	}
	return nil
}

// longEnough is a time limit that leaves some time for faults.
func (t *test) longEnough(active time.Duration) time.Duration {
	return (t.recovery + active + time.Second - 1).Truncate(time.Second)
}

// roomy is a time limit with room for faults that take some time. With the bare minimum a busy machine would not get to
// them.
func roomy(recovery, least time.Duration) time.Duration {
	const spare, step = 5 * time.Second, 5 * time.Second
	return (recovery + least + max(spare, least/2) + step - 1).Truncate(step)
}

// Outline is what is known of a test before it runs.
type Outline struct {
	// Options with the defaults of the lock filled in.
	Options Options
	// Schedule has the faults, without those that are left out.
	Schedule nemesis.Schedule
	// Effective is the time after which the lock of a dead holder is free; 0 if it never is. Recovery is the
	// time without faults at the end of the run.
	Effective, Recovery time.Duration
	// Least is the least time for faults in which each fault can last as long as it should.
	Least   time.Duration
	Servers int
	// Recipe of the image of the servers; "" for embedded ones.
	Recipe string
}

// OutlineOf checks the options of a test without running it. Its error is a *UsageError or
// a *nemesis.UnsupportedError.
func OutlineOf(o Options) (Outline, error) {
	t, err := prepare(o)
	if err != nil {
		return Outline{}, err
	}
	outline := Outline{Options: t.Options, Schedule: t.schedule, Effective: t.effective, Recovery: t.recovery, Servers: t.Nodes}
	_, outline.Least = t.schedule.Least(t.effective)
	if t.spec.OnDocker() && t.lock.Path == "" {
		outline.Recipe = t.spec.Recipe(t.ServerVersion)
	}
	return outline, nil
}

// requires says whether the verdict rests on a property.
func (t *test) requires(p checker.Property) bool {
	h := history.Header{Guard: t.Guard, Workload: t.Workload, Lock: t.info.Name, Tokens: t.info.Token != "", Renewed: t.AnyUse(func(u workloads.Use) bool { return u.Renew }), Require: t.Require}
	return slices.Contains(checker.Required(h), p)
}

// grace is how much longer than its lease the lock may take to become free again.
func (t *test) grace() time.Duration { return t.effective - t.lease + t.info.Grace }

// fillIn sets the lock's defaults for options that the user left open.
func (t *test) fillIn() {
	if t.TTL == 0 {
		t.TTL = t.info.TTL
	}
	if t.Wait == 0 && t.info.GivesUp() {
		t.Wait = defaultWait
		if t.info.CountsAnew {
			t.Wait = max(t.Wait, t.info.Effective(t.TTL, 0)+t.info.Grace)
		}
	}
	t.Renew = t.Renew || t.workload.Renews && t.info.Renew
	if t.LockDelay == nil {
		t.LockDelay = &t.info.LockDelay
	}
	if t.Permits == 0 && t.info.Permits {
		t.Permits = 1
		if t.Workload == history.WorkloadSemaphore {
			t.Permits = defaultPermits
		}
	}
	t.ServerVersion = t.spec.Version(t.ServerVersion)
	t.Nodes = cmp.Or(t.Nodes, t.spec.Nodes)
}

// maxConcurrency is the number of workers for which a run's network has addresses.
const maxConcurrency = 100

func (t *test) guard() workloads.Guard { return workloads.Guard(t.Guard) }

// plan makes the schedule.
func (t *test) plan() error {
	if t.TimeLimit <= t.recovery {
		return t.recoversOnly()
	}
	if t.Options.Schedule != nil {
		t.schedule = *t.Options.Schedule
		t.schedule.Steps = slices.Clone(t.schedule.Steps) // Check gives the steps names, and other runs may share the schedule
		if err := t.schedule.Check(); err != nil {
			return &UsageError{Err: err}
		}
		return nil
	}
	requests, err := nemesis.ParseRequests(t.Nemesis)
	if err != nil {
		return &UsageError{Err: err, About: "nemesis"}
	}
	if t.Interval <= 0 {
		return BadFlag("nemesis-interval", t.Interval, "it must be positive")
	}
	env := nemesis.Environment{Lease: t.effective, Pause: t.Pause, Hold: t.shortestHold()}
	if t.effective == 0 {
		env.Silence = t.info.Grace
	}
	if err := t.checkRequests(requests); err != nil {
		return err
	}
	t.schedule, err = nemesis.Random(t.Seed, requests, env, t.Interval, t.active())
	if err != nil {
		return &UsageError{Err: err, About: "nemesis"}
	}
	return nil
}

// checkRequests refuses targets that random faults cannot have here.
func (t *test) checkRequests(requests []nemesis.Request) error {
	servers, workers := t.spec.Plan(t.Nodes, t.Concurrency)
	return badRequest(nemesis.CheckRequests(requests, t.environment(servers, workers)))
}

// badRequest is the error of --nemesis for a fault that cannot be requested; nil for nil.
func badRequest(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{Err: fmt.Errorf("--nemesis %w", err), About: "nemesis"}
}

// recoversOnly returns an error that says that the time limit leaves no time for faults, and which limit
// does.
func (t *test) recoversOnly() error {
	longer := *t
	longer.TimeLimit = t.recovery + time.Second
	if err := longer.plan(); err != nil {
		return err
	}
	_, least := longer.schedule.Least(t.effective)
	return BadFlag("time-limit", t.TimeLimit, "the recovery period of this lock alone takes %s; write --time-limit %s, or omit it", t.recovery, roomy(t.recovery, least))
}

// shortestHold is the least time that any worker holds the lock, or less if its lease ends before.
func (t *test) shortestHold() time.Duration {
	var holds []time.Duration
	for i := range t.Concurrency {
		use := t.use(i + 1)
		hold := use.Section.Min * time.Duration(t.workload.PerHold(use))
		if lease := t.info.Lease(use.TTL); lease > 0 && !t.info.Session && !t.renews(use) {
			hold = min(hold, lease)
		}
		holds = append(holds, hold)
	}
	return slices.Min(holds)
}

// renews says whether a worker renews its lease by its own calls.
func (t *test) renews(u workloads.Use) bool { return u.Renew && t.info.Renew && u.TTL > 0 }

// settle refuses a schedule with faults that are known to be unsupported on the lock's servers before they
// run, or leaves these faults out.
func (t *test) settle() error {
	servers, workers := t.spec.Plan(t.Nodes, t.Concurrency)
	env := t.environment(servers, workers)
	if err := t.settleOn(env); err != nil {
		if t.Options.Schedule != nil {
			return &UsageError{Err: err, About: "schedule"}
		}
		return &UsageError{Err: withOthers(err, env), About: "nemesis"}
	}
	return nil
}

// withOthers adds to the error of a fault that its target does not support: which targets support it, or that none does.
func withOthers(err error, env nemesis.Environment) error {
	var unsupported *nemesis.UnsupportedError
	if !errors.As(err, &unsupported) {
		return err
	}
	others := env.Requests(unsupported.Fault)
	if len(others) == 0 {
		return fmt.Errorf("%w; no target of this lock can have it, so take another fault (lockcheck list faults) or another lock", err)
	}
	return fmt.Errorf("%w; here write one of %s", err, nemesis.Written(others))
}

// environment is what is known of the environment before anything starts.
func (t *test) environment(servers, workers []*clusters.Node) nemesis.Environment {
	env := nemesis.Environment{Servers: servers, Workers: workers, Lease: t.effective, Queues: t.info.Queues, WallClocks: t.info.WallClocks}
	env.Renews = t.AnyUse(t.renews) || t.recordsRenewals()
	return env
}

// recordsRenewals says whether the client renews a session in the background and reports that to its worker. A user's
// own client cannot.
func (t *test) recordsRenewals() bool {
	return t.info.Session && t.lock.Definition == nil && t.AnyUse(func(u workloads.Use) bool { return !u.NoKeepAlive })
}

func (t *test) settleOn(env nemesis.Environment) (err error) {
	t.schedule, t.leftOut, err = settleOn(env, t.schedule, t.leftOut, t.SkipUnsupported)
	return err
}

// settleOn refuses a schedule with faults that are not supported in an environment. With skip it returns the
// schedule without these faults, and adds the reasons to leftOut.
func settleOn(env nemesis.Environment, schedule nemesis.Schedule, leftOut []string, skip bool) (nemesis.Schedule, []string, error) {
	plan := nemesis.Nemesis{Environment: env, Schedule: schedule}
	err := plan.Plan()
	var unsupported *nemesis.UnsupportedError
	switch {
	case err == nil:
		return schedule, leftOut, nil
	case !errors.As(err, &unsupported):
		return schedule, leftOut, err
	}
	var ids []string
	for _, o := range plan.Unsupported() {
		ids = append(ids, o.Step)
	}
	rest := schedule.Without(ids...)
	switch {
	case !skip && len(rest.Steps) == 0: // skipping it would leave nothing
		return schedule, leftOut, err
	case !skip:
		return schedule, leftOut, fmt.Errorf("%w; --skip-unsupported leaves it out", err)
	case len(rest.Steps) == 0:
		return schedule, leftOut, fmt.Errorf("nothing is left of the schedule: %w", err)
	}
	for _, o := range plan.Unsupported() {
		if why := o.Error(); !slices.Contains(leftOut, why) {
			leftOut = append(leftOut, why)
		}
	}
	return rest, leftOut, nil
}

// active is the time in which faults may happen.
func (t *test) active() time.Duration { return t.TimeLimit - t.recovery }

// folderName names the folder of all runs that can be compared with this run. The guard is part of the name
// unless it is the default.
func (t *test) folderName() string {
	parts := []string{t.info.Name, t.Workload, t.nemesisName()}
	if t.guard() != workloads.NoGuard {
		parts = append(parts, t.Guard)
	}
	return strings.Join(parts, "-")
}

// nemesisName names the faults in the path of a run.
func (t *test) nemesisName() string {
	if faults := t.schedule.Faults(); len(faults) > 0 {
		return strings.Join(faults, "+")
	}
	return "none"
}

func unknown(what, name string, known []string) error {
	return &UsageError{Err: &spelling.UnknownError{What: what, Name: name, Known: known}, About: what}
}
