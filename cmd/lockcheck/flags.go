package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockcheck/internal/runs"
	"lockcheck/workloads"
)

// described is how a flag is called and explained in every command that has it.
type described struct {
	short string // one letter; "" for none
	usage string // with the name of its value in back quotes
}

// descriptions of all flags of the commands for users.
func descriptions() map[string]described {
	return map[string]described{
		// What is tested.
		"app":      {"", "an app `file`: test your application instead of a lock (docs/own-application.md)"},
		"service":  {"", "`name` of the service that is your application"},
		"lock":     {"l", "`name` of the lock, with options as in etcd+watch-session (see \"lockcheck list locks\"), or a lock file"},
		"locks":    {"", "`names` of locks, or lock files; etcd@3.5.15 names a version of the servers"},
		"version":  {"", "`version` of the servers (see \"lockcheck list lock NAME\")"},
		"nodes":    {"", "number of servers"},
		"image":    {"", "other `image` for the servers, as in redis=redis:7.2"},
		"workload": {"w", "`what` workers do: " + strings.Join(workloads.Names(), ", ")},
		"guard":    {"", "`what` the resource checks: " + strings.Join(workloads.Guards(), ", ")},
		"guards":   {"", "`guards`, as in none,fence"},
		"require":  {"", "more `properties` to require, as in mutual-exclusion"},
		"permits":  {"", "how many workers may hold a semaphore at once"},

		// Faults.
		"nemesis":          {"", "`faults`, as in pause,clock or \"pause:one server\"; none for no faults"},
		"faults":           {"", "`faults`, one column each: attacks, as in holder-paused, or random faults, as in none,pause:holder"},
		"nemesis-interval": {"", "mean time between two faults"},
		"pause":            {"", "length of a pause"},
		"schedule":         {"", "`file` with a schedule of faults, instead of --nemesis"},
		"skip-unsupported": {"", "leave out faults that these servers do not support"},

		// What workers do.
		"concurrency":           {"c", "number of workers"},
		"load":                  {"", "`numbers` of workers, as in 1..64: each is twice the one before"},
		"rate":                  {"", "holds per second of all workers together; 0 for no limit"},
		"pin":                   {"", "tie each worker to one server, if one server can serve it alone"},
		"wait":                  {"", "how long an attempt waits in the queue of the lock"},
		"lock-delay":            {"", "how long Consul withholds the lock of a lost session; 0 means 1ms, the minimum of its library"},
		"ttl":                   {"", "lease of the lock"},
		"section":               {"", "time in the critical section, fixed or random as in 20ms-80ms"},
		"updates":               {"", "updates per hold, each with its own critical section"},
		"think":                 {"", "time between two holds of a worker, fixed or random as in 20ms-80ms"},
		"renew":                 {"", "renew the lease during the critical section"},
		"renews":                {"", "the client can renew its lease"},
		"check-before-write":    {"", "check the deadline of the lease before each write"},
		"exit-on-loss":          {"", "restart a worker that learns that its lock is lost (not with your own client)"},
		"ignore-failed-acquire": {"", "go on without the lock after an acquire fails (not after it is refused)"},

		// How much is run, and where it is stored.
		"time-limit":    {"", "length of a run, including its recovery period"},
		"min-ops":       {"", "a run with fewer updates is undecided"},
		"handover":      {"", "with --require no-idle-lock: how long a released lock may be idle (default 500ms)"},
		"seed":          {"", "seed of all random choices"},
		"seeds":         {"", "runs per cell, each with its own seed; also --trials"},
		"cluster-seeds": {"", "runs per cell for locks with several servers"},
		"test-count":    {"", "number of runs, each with the next seed"},
		"times":         {"", "how often to run each; all run once before any runs again"},
		"trials":        {"", "maximum number of trials, all parts together; 0 for no limit"},
		"budget":        {"", "`time` for all runs together; a run that does not fit is not made"},
		"parallel":      {"", "how many runs to make at a time"},
		"only":          {"", "run only what matches this regular `expression`, as in ^lock/redis/"},
		"missing":       {"", "run only what has no stored run yet"},
		"store":         {"", "`folder` of stored runs"},
		"out":           {"", "`folder` for the results (default: a new folder in the store)"},
		"resume":        {"", "continue what was begun in this `folder`"},
		"shard":         {"", "make only one `part`, as in 2/8; \"merge\" puts the parts together"},
		"swarm":         {"", "spread the work over a Docker Swarm that this node manages, in this many `parts`"},
		"swarm-image":   {"", "`image` of lockcheck that all nodes can pull (default: built from this binary, for this node only)"},
		"swarm-listen":  {"", "`address` and port of this node that tasks bring their results to"},

		// What comes out.
		"expect":        {"", "`verdict` that makes the exit code 0: valid, violation, undecided or broken"},
		"with-remedies": {"", "after a violation, run the same seed again with each remedy that the lock supports"},
		"baseline":      {"", "`folder` or comparison.json of an earlier comparison: what failed there fails here only if it is worse beyond chance"},
		"confirm":       {"", "how often to repeat a cell that is not valid, with other seeds"},
		"json":          {"", "print JSON"},
		"html":          {"", "write an HTML page to this `file` instead"},
		"list":          {"", "list the reproductions, built in or in the named files and folders"},
		"long":          {"", "everything that is known of each"},

		// One command each.
		"file":          {"f", "`file` with a suite: what to compare, and thresholds"},
		"steps":         {"", "how many values of each range a sweep starts with"},
		"blind":         {"", "share of trials that are drawn at random, 0 to 1"},
		"control":       {"", "run the control instead of the finding"},
		"fast":          {"", "run the shorter form, if there is one"},
		"links":         {"", "`path` to the store as seen from the table; \"\" for no links (default: as --store)"},
		"need":          {"", "`need` to decide for: data, once, waste, failover, infra or long"},
		"have":          {"", "comma-separated `servers` that are there; none for a shared disk only"},
		"work":          {"", "the longest time that the work under the lock takes"},
		"external":      {"", "the work has effects elsewhere, such as a charge or a mail"},
		"why":           {"", "print the runs behind a `cell`, LOCK/FAULT or LOCK/FAULT/GUARD"},
		"into":          {"", "add to this `file`"},
		"section-p99":   {"", "99 of 100 critical sections are shorter than this"},
		"section-max":   {"", "all critical sections are shorter than this, if there is such a bound"},
		"longest-pause": {"", "longest time that a process was stopped, as by garbage collection, swapping or a paused machine"},
		"failover":      {"", "how soon others must get the lock of a dead holder; 0 for any time"},
		"format":        {"", "`format` of the history: lockcheck or jepsen"},
		"export":        {"", "write the history in this `format` instead of judging it: jepsen"},
		"reentrant":     {"", "Jepsen: how many times one worker may acquire the lock before releasing it"},
		"keys":          {"", "Jepsen: `what` names a lock: independent, value, none or a :field (default: found out, or refused)"},
		"tokens":        {"", "the client gets fencing tokens"},
		"holds":         {"", "the service can be asked who holds the lock"},
		"queues":        {"", "an attempt waits for its turn"},
		"session":       {"", "the client keeps the lease alive by itself"},
		"works":         {"", "the client lets the time of the critical section pass"},
		"official":      {"", "the upstream images, by their digests"},
		"pin-digests":   {"", "with --official: print the table with the registry's current digests, and pull nothing"},
		"cache":         {"", "`file` to load images from, or to write them to if it lacks any"},
		"images":        {"", "also remove the images that lockcheck has made"},
		"port":          {"", "TCP port; 0 for any free port"},
	}
}

// flags declares the flags of one command. A flag without a description panics, which any test
// that builds the command line finds.
type flags struct {
	*pflag.FlagSet
	known map[string]described
}

func flagsOf(cmd *cobra.Command) flags {
	set := cmd.Flags()
	set.SortFlags = false
	return flags{set, descriptions()}
}

func (f flags) describe(name string) described {
	d, known := f.known[name]
	if !known {
		panic("flag --" + name + " has no description")
	}
	return d
}

func (f flags) text(p *string, name, value string) {
	d := f.describe(name)
	f.StringVarP(p, name, d.short, value, d.usage)
}

func (f flags) list(p *[]string, name string, value ...string) {
	d := f.describe(name)
	f.StringSliceVarP(p, name, d.short, value, d.usage)
}

func (f flags) number(p *int, name string, value int) {
	d := f.describe(name)
	f.IntVarP(p, name, d.short, value, d.usage)
}

func (f flags) seed(p *uint64, name string, value uint64) {
	f.Uint64Var(p, name, value, f.describe(name).usage)
}

func (f flags) share(p *float64, name string, value float64) {
	f.Float64Var(p, name, value, f.describe(name).usage)
}

func (f flags) length(p *time.Duration, name string, value time.Duration) {
	f.DurationVar(p, name, value, f.describe(name).usage)
}

func (f flags) yes(p *bool, name string) {
	f.BoolVar(p, name, false, f.describe(name).usage)
}

func (f flags) value(p pflag.Value, name string) {
	f.VarP(p, name, f.describe(name).short, f.describe(name).usage)
}

// otherwise says what the zero values of flags stand for, in pairs of name and words.
func (f flags) otherwise(pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		f.Lookup(pair[0]).DefValue = pair[1]
	}
}

// alsoCalled lets flags be given by other names, too.
func (f flags) alsoCalled(names map[string]string) {
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if now, is := names[name]; is {
			name = now
		}
		return pflag.NormalizedName(name)
	})
}

// exclusive refuses flags that were given next to one that makes them meaningless.
func exclusive(set *pflag.FlagSet, with string, names ...string) error {
	for _, name := range names {
		if set.Changed(name) {
			return &runs.UsageError{Err: fmt.Errorf("--%s and --%s exclude each other", with, name), About: name}
		}
	}
	return nil
}

// least refuses a number that is too small.
func least[N int | int64 | time.Duration](name string, value, least N) error {
	if value < least {
		return runs.BadFlag(name, value, "it must be at least %v", least)
	}
	return nil
}
