// Package runs takes one test from start to verdict: it checks what was asked
// for, starts the cluster, lets the workers work and the nemesis harm, records
// the history, has it judged and reported, and leaves the machine as it was. It
// is the only package that knows all the others.
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
	"lockcheck/internal/spelling"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// Options of one test, as a user gives them. Zero values mean the defaults of
// the lock.
type Options struct {
	Lock     string
	Workload string
	Guard    string
	// Nemesis lists kinds of faults for a random schedule; ignored with a Schedule.
	Nemesis  string
	Interval time.Duration // between faults of a random schedule
	Schedule *nemesis.Schedule
	// EndEarly ends the run when the schedule is done, not at the time limit.
	EndEarly bool

	TimeLimit   time.Duration
	Concurrency int
	// ServerVersion is one that the servers can be made of; "" for the usual one.
	ServerVersion string
	Nodes         int // number of servers; 0 for the usual one
	// Pin ties each worker to one server, in turn.
	Pin bool
	// Wait is how long an attempt waits in the queue of a lock that has one.
	Wait time.Duration
	// LockDelay is how long the service keeps the lock of a lost session; negative
	// for none at all.
	LockDelay time.Duration
	// Workers says of single workers what they do otherwise than the others.
	Workers []WorkerOptions
	// UntilOverlap ends the time for faults when two workers are seen to hold the
	// lock at once.
	UntilOverlap bool
	// SkipUnavailable leaves out faults that cannot be had on these servers.
	SkipUnavailable bool
	// Rate bounds the holds per second of all workers together; 0 for no bound.
	Rate    float64
	TTL     time.Duration
	Section workloads.Range
	Renew   bool
	Check   bool // look at the deadline before writing
	MinOps  int64
	Require []string
	Seed    uint64

	Images map[string]string // recipe to the image that replaces it
	Machine
	// Parameters are put down in the history as they were given.
	Parameters map[string]string
}

// WorkerOptions are those of one worker; zero values mean those of the test.
type WorkerOptions struct {
	TTL         time.Duration
	Section     time.Duration
	Wait        time.Duration
	NoKeepAlive bool          // leave the lease of a session to run out
	After       time.Duration // before the first attempt
	Holds       int           // after which it has done its part; 0 for never
}

// Defaults of a test.
const (
	defaultTimeLimit   = 20 * time.Second
	DefaultConcurrency = 5
	DefaultInterval    = 3 * time.Second
	DefaultMinOps      = 20
	defaultWait        = 5 * time.Second
	// defaultRotate is how many updates are made under one name of the lock.
	// With fresh names the history of each stays short, and is checked fast.
	defaultRotate = 40
)

// DefaultSection is the time that workers spend in their critical section.
func DefaultSection() workloads.Range {
	return workloads.Range{Min: 20 * time.Millisecond, Max: 60 * time.Millisecond}
}

// UsageError says that what was asked for makes no sense.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

func usage(format string, args ...any) error { return &UsageError{Err: fmt.Errorf(format, args...)} }

// test is a test that is ready to run.
type test struct {
	Options
	info     clients.Info
	workload workloads.Workload
	spec     clusters.Spec
	// lease is the shortest time after which the lock can end by itself, and
	// effective the longest.
	lease     time.Duration
	effective time.Duration
	schedule  nemesis.Schedule
	quiet     time.Duration
	// unavailable says which kinds of faults were left out, and why.
	unavailable []string
}

// prepare checks the options and fills in what they leave open.
func prepare(o Options) (*test, error) {
	t := &test{Options: o}
	var known bool
	if t.info, known = clients.ByName(o.Lock); !known {
		return nil, unknown("lock", o.Lock, clients.Names())
	}
	if t.workload, known = workloads.ByName(o.Workload); !known {
		return nil, unknown("workload", o.Workload, workloads.Names())
	}
	if !slices.Contains(workloads.Guards(), o.Guard) {
		return nil, unknown("guard", o.Guard, workloads.Guards())
	}
	if t.spec, known = clusters.ByName(t.info.Servers); !known {
		return nil, fmt.Errorf("lock %s: no servers called %q", o.Lock, t.info.Servers)
	}
	if err := t.checkValues(); err != nil {
		return nil, err
	}
	t.lease = t.info.Lease(t.TTL)
	t.effective = t.info.Effective(t.TTL, max(0, t.LockDelay))
	// Long enough for the lock to be free again, and for the liveness checker
	// to see it.
	t.quiet = t.effective + t.info.Grace + checker.LivenessGrace + 500*time.Millisecond
	if t.TimeLimit == 0 {
		t.TimeLimit = max(defaultTimeLimit, 3*t.quiet)
	}
	if err := t.plan(); err != nil {
		return nil, err
	}
	if t.guard() == workloads.Database && slices.Contains(t.schedule.Faults(), history.DelayWrite) {
		return nil, usage("--guard %s: %s holds back writes to the resource, and there are none", t.Guard, history.DelayWrite)
	}
	return t, t.settle()
}

// Outline is what a test will be, as far as that is known before it runs.
type Outline struct {
	// Options with the defaults of the lock filled in.
	Options Options
	// Effective is the time after which the lock of a dead holder is free; 0 if it never
	// is. Quiet is the time without faults at the end of the run.
	Effective, Quiet time.Duration
	Servers          int
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
	outline := Outline{Options: t.Options, Effective: t.effective, Quiet: t.quiet, Servers: t.Nodes}
	if t.spec.OnDocker() {
		outline.Recipe = t.spec.Recipe(t.ServerVersion)
	}
	return outline, nil
}

// slack is how much longer than its lease the lock may take to be free again.
func (t *test) slack() time.Duration { return t.effective - t.lease + t.info.Grace }

func (t *test) checkValues() error {
	t.fillIn()
	switch {
	case t.info.TTL != 0 && t.TTL < t.info.MinTTL:
		return usage("--ttl %s: %s needs at least %s", t.TTL, t.Lock, t.info.MinTTL)
	case t.info.MaxTTL != 0 && t.TTL > t.info.MaxTTL:
		return usage("--ttl %s: %s allows at most %s", t.TTL, t.Lock, t.info.MaxTTL)
	case t.info.TTL != 0 && t.TTL%time.Millisecond != 0:
		return usage("--ttl %s: leases are counted in whole milliseconds", t.TTL)
	case t.guard().Lacks(t.info) != "":
		return usage("--guard %s: lock %s %s (it works with %s)", t.Guard, t.Lock, t.guard().Lacks(t.info), strings.Join(fitting(t.guard()), ", "))
	case t.Renew && !t.info.Renew:
		return usage("--renew: lock %s cannot be renewed", t.Lock)
	case !t.spec.HasVersion(t.ServerVersion):
		return usage("--version %s: for lock %s there is %s", t.ServerVersion, t.Lock, alternatives(t.spec.Versions))
	case !t.spec.HasSize(t.Nodes):
		return usage("--nodes %d: lock %s has %s servers", t.Nodes, t.Lock, alternatives(t.spec.AllSizes()))
	case t.Pin && !t.info.AnyServer:
		return usage("--pin: a worker of lock %s needs all servers", t.Lock)
	case t.LockDelay > 0 && t.info.LockDelay == 0:
		return usage("--lock-delay: lock %s knows no such delay", t.Lock)
	case t.Wait < 0:
		return usage("--wait must not be negative")
	case len(t.Workers) > t.Concurrency:
		return usage("%d workers are described, but there are only %d", len(t.Workers), t.Concurrency)
	case t.Concurrency < 1:
		return usage("--concurrency must be at least 1")
	case t.Concurrency > maxConcurrency:
		return usage("--concurrency must be at most %d", maxConcurrency)
	case t.Rate < 0:
		return usage("--rate must not be negative")
	case t.Section.Min < 0 || t.Section.Max < t.Section.Min:
		return usage("--section must be a length of time or a range of them")
	}
	for name := range t.Images {
		if name != t.spec.Image || !t.spec.OnDocker() {
			return usage("--image %s=…: lock %s does not use that image", name, t.Lock)
		}
	}
	for _, property := range t.Require {
		if !slices.Contains(checker.Properties(), checker.Property(property)) {
			return usage("--require %s: there is no such property (there are %s)", property, propertyNames())
		}
	}
	return nil
}

// fillIn puts the defaults of the lock where nothing was said.
func (t *test) fillIn() {
	if t.TTL == 0 {
		t.TTL = t.info.TTL
	}
	if t.Wait == 0 && t.info.Queues {
		t.Wait = defaultWait
	}
	if t.LockDelay == 0 {
		t.LockDelay = t.info.LockDelay
	}
	t.ServerVersion = t.spec.Version(t.ServerVersion)
	t.Nodes = cmp.Or(t.Nodes, t.spec.Nodes)
}

// alternatives lists what can be chosen, in words.
func alternatives[T any](values []T) string {
	if len(values) == 0 {
		return "no choice"
	}
	var texts []string
	for _, v := range values {
		texts = append(texts, fmt.Sprint(v))
	}
	return strings.Join(texts, ", ")
}

func propertyNames() string {
	var names []string
	for _, p := range checker.Properties() {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}

// maxConcurrency is what the addresses of a run's network allow.
const maxConcurrency = 100

func (t *test) guard() workloads.Guard { return workloads.Guard(t.Guard) }

// fitting lists the locks that have what a guard needs.
func fitting(guard workloads.Guard) []string {
	var names []string
	for _, info := range clients.Table() {
		if guard.Lacks(info) == "" {
			names = append(names, info.Name)
		}
	}
	return names
}

// plan makes the schedule.
func (t *test) plan() error {
	if t.TimeLimit <= t.quiet {
		return usage("--time-limit %s: this lock needs %s without faults at the end alone", t.TimeLimit, t.quiet)
	}
	if t.Options.Schedule != nil {
		t.schedule = *t.Options.Schedule
		if err := t.schedule.Check(); err != nil {
			return &UsageError{Err: err}
		}
		return nil
	}
	requests, err := nemesis.ParseRequests(t.Nemesis)
	if err != nil {
		return &UsageError{Err: err}
	}
	if t.Interval <= 0 {
		return usage("--nemesis-interval must be positive")
	}
	t.schedule, err = nemesis.Random(t.Seed, requests, nemesis.Environment{Lease: t.effective}, t.Interval, t.active())
	if err != nil {
		return &UsageError{Err: err}
	}
	return nil
}

// settle refuses a schedule with faults that cannot be had on the servers of the
// lock, as far as that is known before they run, or leaves those out.
func (t *test) settle() error {
	servers, workers := t.spec.Plan(t.Nodes, t.Concurrency)
	return t.settleOn(nemesis.Environment{Servers: servers, Workers: workers, Lease: t.effective})
}

func (t *test) settleOn(env nemesis.Environment) error {
	plan := nemesis.Nemesis{Environment: env, Schedule: t.schedule}
	err := plan.Plan()
	var unsupported *nemesis.UnsupportedError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &unsupported):
		return &UsageError{Err: err}
	case !t.SkipUnavailable:
		return fmt.Errorf("%w; --skip-unavailable leaves it out", err)
	}
	var ids []string
	for _, o := range plan.Unsupported() {
		ids = append(ids, o.Step)
		if why := o.Error(); !slices.Contains(t.unavailable, why) {
			t.unavailable = append(t.unavailable, why)
		}
	}
	t.schedule = t.schedule.Without(ids...)
	if len(t.schedule.Steps) == 0 {
		return fmt.Errorf("nothing is left of the schedule: %w", err)
	}
	return nil
}

// active is the time in which there may be faults.
func (t *test) active() time.Duration { return t.TimeLimit - t.quiet }

// nemesisName names the faults in the path of a run.
func (t *test) nemesisName() string {
	if faults := t.schedule.Faults(); len(faults) > 0 {
		return strings.Join(faults, "+")
	}
	return "none"
}

func unknown(what, name string, known []string) error {
	return &UsageError{Err: &spelling.UnknownError{What: what, Name: name, Known: known}}
}
