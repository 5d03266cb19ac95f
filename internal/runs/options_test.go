package runs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// asked returns options that have no mistakes.
func asked(change func(*Options)) Options {
	o := Options{
		Lock: "redis", Workload: "set", Guard: "none", Nemesis: "pause", Interval: DefaultInterval,
		TimeLimit: defaultTimeLimit, Concurrency: DefaultConcurrency, Use: workloads.Use{Section: DefaultSection()}, MinOps: DefaultMinOps,
	}
	if change != nil {
		change(&o)
	}
	return o
}

// TestPrepare: options that make no sense are a usage error, which says what would make sense.
func TestPrepare(t *testing.T) {
	schedule := func(step nemesis.Step) func(*Options) {
		return func(o *Options) { o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{step}} }
	}
	semaphore := func(change func(*Options)) func(*Options) {
		return func(o *Options) {
			o.Lock, o.Workload = "memory-semaphore", "semaphore"
			if change != nil {
				change(o)
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   string // part of the error; "" for none
	}{
		{"nothing wrong", nil, ""},
		{"unknown lock, nearly right", func(o *Options) { o.Lock = "redlok" }, `unknown lock "redlok"; did you mean "redlock"?`},
		{"unknown lock, like none", func(o *Options) { o.Lock = "xyzzy" }, `unknown lock "xyzzy" (there are memory, `},
		{"no lock", func(o *Options) { o.Lock = "" }, `unknown lock ""`},
		{"unknown fault", func(o *Options) { o.Nemesis = "pause,clok" }, `unknown fault "clok"; did you mean "clock"?`},
		{"no fault", func(o *Options) { o.Nemesis = "none" }, ""},
		{"the schedule of a run without faults", func(o *Options) { o.Nemesis, o.Schedule = "", &nemesis.Schedule{Seed: 1} }, ""},
		{"unknown workload", func(o *Options) { o.Workload = "sets" }, `unknown workload "sets"; did you mean "set"?`},
		{"unknown guard", func(o *Options) { o.Guard = "fense" }, `unknown guard "fense"; did you mean "fence"?`},
		{"fence without tokens", func(o *Options) { o.Guard = "fence" }, "lock redis has no fencing token (it works with memory"},
		{"fence on writes without tokens", func(o *Options) { o.Guard = "fence-writes" }, "--guard fence-writes: lock redis has no fencing token"},
		{"fence on writes with tokens", func(o *Options) { o.Guard, o.Lock = "fence-writes", "memory" }, ""},
		{"service that can be asked, without tokens", func(o *Options) { o.Guard = "ask" }, ""},
		{"service that cannot be asked", func(o *Options) { o.Guard, o.Lock = "ask", "redislock" }, "--guard ask: lock redislock cannot be asked who holds it (it works with memory, memory-redlock, redis"},
		{"nobody to ask", func(o *Options) { o.Guard, o.Lock = "ask", "none" }, "--guard ask: lock none cannot be asked"},
		{"data in the database", func(o *Options) { o.Guard, o.Lock = "database", "postgres-row" }, ""},
		{"no database", func(o *Options) { o.Guard = "database" }, "--guard database: lock redis has no database for the data (it works with postgres-session, postgres-xact"},
		{"writes held back that nobody sees", func(o *Options) { o.Guard, o.Lock, o.Nemesis = "database", "postgres-row", "pause,delay-write" }, "delay-write delays writes to the resource"},
		{"fence with tokens", func(o *Options) { o.Guard, o.Lock = "fence", "memory" }, ""},
		{"lease too short", func(o *Options) { o.TTL = time.Microsecond }, "--ttl 1µs: redis needs at least 1ms"},
		{"shortest lease", func(o *Options) { o.TTL = time.Millisecond }, ""},
		{"lease too long", func(o *Options) { o.Lock, o.TTL = "zookeeper", 2*time.Minute }, "--ttl 2m0s: zookeeper allows at most 1m0s"},
		{"longest lease", func(o *Options) { o.Lock, o.TTL, o.TimeLimit = "zookeeper", time.Minute, 0 }, ""},
		{"lease of a lock without", func(o *Options) { o.Lock, o.TTL = "none", time.Second }, "--ttl 1s: lock none has no lease"},
		{"lease of a worker of a lock without", func(o *Options) { o.Lock, o.Workers = "none", []workloads.Use{{TTL: time.Second}} }, "worker w1: --ttl 1s: lock none has no lease"},
		{"lease of a worker too short", func(o *Options) { o.Workers = []workloads.Use{{}, {TTL: time.Microsecond}} }, "worker w2: --ttl 1µs: redis needs at least 1ms"},
		{"lease of a worker too long for the run", func(o *Options) { o.Workers = []workloads.Use{{TTL: defaultTimeLimit}} }, "--time-limit 20s: the recovery period of this lock"},
		{"lease in parts of a millisecond", func(o *Options) { o.TTL = 1500 * time.Microsecond }, "whole number of milliseconds"},
		{"renewed", func(o *Options) { o.Renew = true }, ""},
		{"renewed, which it cannot be", func(o *Options) { o.Renew, o.Lock = true, "none" }, "--renew: lock none"},
		{"wait that nothing ends", func(o *Options) { o.Lock, o.Wait = "zookeeper-lib", time.Second }, "--wait 1s: an attempt on lock zookeeper-lib waits until"},
		{"wait that ends", func(o *Options) { o.Lock, o.Wait = "zookeeper-lib+new-session-on-error", time.Second }, ""},
		{"semaphore", semaphore(nil), ""},
		{"semaphore, with a permit for all but one", semaphore(func(o *Options) { o.Permits = DefaultConcurrency - 1 }), ""},
		{"semaphore, with a permit for all", semaphore(func(o *Options) { o.Permits = DefaultConcurrency }), "--permits 5: 5 workers never compete for that many; write --concurrency 6"},
		{"semaphore, with its usual permits for all", semaphore(func(o *Options) { o.Concurrency = 2 }), "--permits 2: 2 workers never compete for that many"},
		{"semaphore without a permit", semaphore(func(o *Options) { o.Permits = -1 }), "--permits -1: it must be at least 1"},
		{"semaphore of a mutex", semaphore(func(o *Options) { o.Lock = "redis" }), "--workload semaphore: lock redis has no permits (it works with memory-semaphore, "},
		{"semaphore behind a guard", semaphore(func(o *Options) { o.Guard = "cas" }), "--guard cas: lock memory-semaphore is a semaphore"},
		{"semaphore behind a fence", semaphore(func(o *Options) { o.Guard = "fence" }), "--guard fence: "},
		{"semaphore of which workers differ", semaphore(func(o *Options) { o.Workers = []workloads.Use{{Permits: 3}} }), "permits: all workers must have the same number"},
		{"permits of a mutex", func(o *Options) { o.Permits = 1 }, "--permits 1: lock redis has no permits"},
		{"one permit, as a mutex", func(o *Options) { o.Lock, o.Permits = "memory-semaphore", 1 }, ""},
		{"two permits, as a mutex", func(o *Options) { o.Lock, o.Permits = "memory-semaphore", 2 }, "--permits 2: workload set lets one worker hold the lock at a time"},
		{"nobody works", func(o *Options) { o.Concurrency = 0 }, "at least 2 workers are needed to compete for the lock"},
		{"fewer than nobody works", func(o *Options) { o.Concurrency = -3 }, "at least 2 workers are needed to compete for the lock"},
		{"as many as may be", func(o *Options) { o.Concurrency = maxConcurrency }, ""},
		{"too many", func(o *Options) { o.Concurrency = 1000 }, "--concurrency 1000: at most 100"},
		{"negative time between holds", func(o *Options) { o.Think = &workloads.Range{Min: -1} }, "--think"},
		{"no time between holds", func(o *Options) { o.Think = &workloads.Range{} }, ""},
		{"two times between holds", func(o *Options) { o.Think, o.Rate = &workloads.Range{}, 1 }, "--think 0s: it excludes --rate"},
		{"negative pause", func(o *Options) { o.Pause = -1 }, "--pause"},
		{"negative rate", func(o *Options) { o.Rate = -1 }, "--rate"},
		{"negative section", func(o *Options) { o.Section.Min = -1 }, "--section"},
		{"section from long to short", func(o *Options) { o.Section.Min = o.Section.Max + 1 }, "--section"},
		{"section of one length", func(o *Options) { o.Section.Min = o.Section.Max }, ""},
		{"several updates in a hold", func(o *Options) { o.Updates = 3 }, ""},
		{"fewer updates than none", func(o *Options) { o.Updates = -1 }, "--updates -1: it must not be negative"},
		{"several updates, and none", func(o *Options) { o.Workload, o.Updates = "mutex", 3 }, "--updates 3: workload mutex updates nothing"},
		{"image of its servers", func(o *Options) { o.Images = map[string]string{"redis": "redis:7"} }, ""},
		{"image of others", func(o *Options) { o.Images = map[string]string{"etcd": "etcd:3"} }, "--image etcd: lock redis does not use"},
		{"image without Docker", func(o *Options) { o.Lock, o.Images = "memory", map[string]string{"": "x"} }, "lock memory does not use"},
		{"property", func(o *Options) { o.Require = []string{"fencing-order"} }, ""},
		{"unknown property", func(o *Options) { o.Require = []string{"fencing-order", "beauty"} }, "--require beauty"},
		{"too short for its recovery period", func(o *Options) { o.TimeLimit = 2 * time.Second }, "--time-limit 2s: the recovery period of this lock"},
		{"longer lease, longer recovery period", func(o *Options) { o.TTL = defaultTimeLimit }, "--time-limit 20s: the recovery period of this lock"},
		{"no interval", func(o *Options) { o.Interval = 0 }, "--nemesis-interval"},
		{"schedule", schedule(nemesis.Step{Fault: "pause", For: nemesis.Span{Leases: 1}}), ""},
		{"schedule of an unknown fault", schedule(nemesis.Step{Fault: "rain", For: nemesis.Span{Leases: 1}}), `unknown fault "rain"`},
		{"schedule without length", schedule(nemesis.Step{Fault: "pause"}), "for: must be positive"},
	} {
		t.Run(c.name, func(t *testing.T) {
			prepared, err := prepare(asked(c.change))
			var usage *UsageError
			switch {
			case c.want == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case c.want == "" && (prepared.recovery <= prepared.lease || prepared.active() <= 0):
				t.Errorf("%s of faults, then %s without, with a lease of %s", prepared.active(), prepared.recovery, prepared.lease)
			case c.want != "" && (!errors.As(err, &usage) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v (%T), want one of usage with %q in it", err, err, c.want)
			}
		})
	}
}

// TestShortestHold: faults of holders know how long every hold lasts at least. That is the hold of the worker
// with the shortest one, with all of its updates, but no longer than a lease that is not renewed.
func TestShortestHold(t *testing.T) {
	section := func(d time.Duration) workloads.Use {
		return workloads.Use{Section: workloads.Range{Min: d, Max: 2 * d}}
	}
	for _, c := range []struct {
		name, lock string
		use        workloads.Use
		workers    []workloads.Use
		want       time.Duration
	}{
		{"within the lease", "memory", section(600 * time.Millisecond), nil, 600 * time.Millisecond},
		{"beyond the lease", "memory", section(3 * time.Second), nil, time.Second},
		{"renewed", "memory", workloads.Use{Section: section(3 * time.Second).Section, Renew: true}, nil, 3 * time.Second},
		{"kept by its session", "etcd", section(3 * time.Second), nil, 3 * time.Second},
		{"without a lease", "none", section(3 * time.Second), nil, 3 * time.Second},
		{"several updates", "memory", workloads.Use{Section: section(200 * time.Millisecond).Section, Updates: 3}, nil, 600 * time.Millisecond},
		{"one worker is quicker", "memory", section(600 * time.Millisecond), []workloads.Use{{}, section(100 * time.Millisecond)}, 100 * time.Millisecond},
	} {
		prepared, err := prepare(asked(func(o *Options) {
			o.Lock, o.Section, o.Renew, o.Updates, o.Workers = c.lock, c.use.Section, c.use.Renew, c.use.Updates, c.workers
		}))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := prepared.shortestHold(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestPrepareDefaults: the default lease is the lock's, and a lock without leases gets none. Leases of single
// workers count.
func TestPrepareDefaults(t *testing.T) {
	for lock, want := range map[string]time.Duration{"memory": time.Second, "redis": 2 * time.Second, "none": 0} {
		prepared, err := prepare(asked(func(o *Options) { o.Lock = lock }))
		if err != nil || prepared.lease != want || prepared.TTL != want {
			t.Errorf("%s: lease %s, TTL %s, %v, want %s", lock, prepared.lease, prepared.TTL, err, want)
		}
	}
	for lock, renews := range map[string]bool{"memory": true, "etcd": false} {
		prepared, err := prepare(asked(func(o *Options) { o.Lock, o.Workload = lock, "election" }))
		if err != nil || prepared.Renew != renews {
			t.Errorf("a leader by %s renews: %v, %v", lock, prepared.Renew, err)
		}
	}
	workers := []workloads.Use{{TTL: 4 * time.Second}, {TTL: time.Second}, {}}
	prepared, err := prepare(asked(func(o *Options) { o.Workers = workers }))
	if err != nil || prepared.lease != time.Second || prepared.effective != 4*time.Second || prepared.recovery <= 4*time.Second {
		t.Errorf("%v: leases from %s to %s, then %s without faults; want 1s to 4s", err, prepared.lease, prepared.effective, prepared.recovery)
	}
	prepared, err = prepare(asked(func(o *Options) { o.Nemesis = "clock,pause" }))
	if name := prepared.folderName(); err == nil && strings.HasSuffix(name, "-none") {
		t.Errorf("the usual guard is part of the name: %s", name)
	}
	if guarded, err := prepare(asked(func(o *Options) { o.Guard = "cas" })); err != nil || !strings.HasSuffix(guarded.folderName(), "-cas") {
		t.Errorf("the guard is not part of the name: %v", err)
	}
	if err != nil || prepared.nemesisName() != "clock+pause" {
		t.Errorf("the run is of %s, %v", prepared.nemesisName(), err)
	}
}

// TestHeaderUse: the header says what every worker does about the end of its lease, wherever that was
// configured.
func TestHeaderUse(t *testing.T) {
	renewing, checking := workloads.Use{Renew: true}, workloads.Use{CheckBeforeWrite: true}
	for _, c := range []struct {
		name             string
		change           func(*Options)
		renewed, checked bool
	}{
		{"neither", func(*Options) {}, false, false},
		{"renewed", func(o *Options) { o.Renew = true }, true, false},
		{"checked", func(o *Options) { o.CheckBeforeWrite = true }, false, true},
		{"by one of them", func(o *Options) { o.Workers = []workloads.Use{renewing, checking} }, false, false},
		{"by each of them", func(o *Options) { o.Concurrency, o.Workers = 2, []workloads.Use{renewing, renewing} }, true, false},
		{"by the workload", func(o *Options) { o.Workload = "election" }, true, false},
	} {
		prepared, err := prepare(asked(c.change))
		if err != nil {
			t.Fatal(err)
		}
		if h := (&run{test: prepared}).header(context.Background(), false); h.Renewed != c.renewed || h.Checked != c.checked {
			t.Errorf("%s: renewed %t, checked %t", c.name, h.Renewed, h.Checked)
		}
	}
}

// TestPermits: by default two workers at a time hold a semaphore, and one if the workload is a mutex
// workload.
func TestPermits(t *testing.T) {
	for _, c := range []struct {
		workload               string
		asked, client, history int
	}{{"semaphore", 0, 2, 2}, {"semaphore", 3, 3, 3}, {"semaphore", 1, 1, 1}, {"set", 0, 1, 0}} {
		prepared, err := prepare(asked(func(o *Options) { o.Lock, o.Workload, o.Permits = "memory-semaphore", c.workload, c.asked }))
		if err != nil {
			t.Fatal(err)
		}
		if prepared.Permits != c.client || prepared.permits() != c.history {
			t.Errorf("%s, %d asked for: %d, and %d in the history", c.workload, c.asked, prepared.Permits, prepared.permits())
		}
	}
}
