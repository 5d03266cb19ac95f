package runs

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
	"lockcheck/history"
	"lockcheck/nemesis"
)

// TestRedis shows what a pause does to a lock without fencing. Controls are the same run without the pause,
// and with a resource that asks the server.
func TestRedis(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	for _, c := range []struct {
		faults, guard string
		want          checker.Verdict
	}{
		{"none", "none", checker.Valid}, {"pause", "none", checker.Violation}, {"pause", "ask", checker.Valid},
	} {
		t.Run(c.faults+" "+c.guard, func(t *testing.T) {
			t.Parallel()
			outcome := verdictIs(t, c.want, options(t, func(o *Options) {
				o.Lock, o.TTL, o.Workload, o.Nemesis, o.TimeLimit = "redis", time.Second, "counter", c.faults, 9*time.Second
				o.Guard = c.guard
			}))
			if c.guard == "ask" {
				tolerated(t, outcome.Results)
			}
			if outcome.History.Header.Versions["redis"] == "" || len(outcome.History.Header.Images) != 2 {
				t.Errorf("versions %v, images %v: not recorded", outcome.History.Header.Versions, outcome.History.Header.Images)
			}
			if err := clustertest.NothingLeft(outcome.History.Header.Run); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDataInDatabase keeps the data where the lock is: in the session that holds the lock and, through a
// pooler, in a session that only seems to hold it. Data that it keeps of a run do not appear in the next run.
func TestDataInDatabase(t *testing.T) {
	t.Parallel()
	for lock, want := range map[string]checker.Verdict{"postgres-session": checker.Valid, "postgres-pgbouncer": checker.Violation} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			info, _ := clients.ByName(lock)
			clustertest.Engine(t, info.Servers)
			// On a busy machine a cluster may not prove clean in time, so that the next run gets a new one.
			// Workers may also do too little for a verdict.
			pool, seen, reused, decided := NewPool(), make(map[string]bool), false, false
			for n := 0; n < 5 && !(reused && decided); n++ {
				outcome, err := Test(context.Background(), options(t, func(o *Options) {
					o.Lock, o.TTL, o.Guard, o.Nemesis, o.TimeLimit, o.Pool = lock, 0, "database", "none", 8*time.Second, pool
				}), nil, logged{t})
				if err != nil {
					t.Fatal(err)
				}
				if outcome.Results.Verdict != checker.Undecided {
					decided = true
					if f := outcome.Results.Finding(checker.NoLostUpdate); outcome.Results.Verdict != want || f.Verdict != want {
						t.Errorf("verdict %s, lost updates %s, want %s", outcome.Results.Verdict, f.Verdict, want)
					}
				}
				if reused = outcome.History.Header.Earlier > 0; !reused {
					clear(seen) // the seen names belong to servers that no longer exist
				}
				for key := range keys(outcome.History) {
					if seen[key] {
						t.Errorf("run %d has the key %s of the one before", n+1, key)
					}
					seen[key] = true
				}
			}
			if !reused || !decided {
				t.Errorf("a run came after another one on its servers: %t; one was decided: %t", reused, decided)
			}
			if err := pool.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRedisServerPaused pauses the server. Workers that do not wait for their calls leave behind attempts of
// unknown outcome, which must not be taken for violations.
func TestRedisServerPaused(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	outcome := verdictIs(t, checker.Valid, options(t, func(o *Options) {
		o.Lock, o.TTL, o.Nemesis, o.TimeLimit = "redis+watchdog", 2*time.Second, "pause:one server", 14*time.Second
	}))
	if outcome.Results.Operations.Unknown == 0 {
		t.Error("no attempt had an unknown outcome: the server was not stopped")
	}
}

// TestRedisRenewed: sections of 1.5 s under a lease of 0.6 s are valid if the lease is renewed.
func TestRedisRenewed(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	verdictIs(t, checker.Valid, options(t, func(o *Options) {
		o.Lock, o.TTL, o.Nemesis, o.TimeLimit, o.Renew = "redis", 600*time.Millisecond, "none", 10*time.Second, true
		o.Section.Min, o.Section.Max, o.MinOps = 1500*time.Millisecond, 1500*time.Millisecond, 2
	}))
}

func TestKilledOnDocker(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	killInMidRun(t, "--lock", "redis", "--ttl", "500ms", "--time-limit", "60s")
}

// TestNeverHealthy replaces the image of Redis by images that cannot serve.
func TestNeverHealthy(t *testing.T) {
	t.Parallel()
	docker := clustertest.Engine(t)
	const ref = "lockcheck/test-broken-redis:latest"
	base := ensureRedis(t, docker)
	err := docker.Build(context.Background(), ref,
		"FROM "+base+"\nRUN printf '#!/bin/sh\\necho cannot serve today\\nexit 1\\n' > /usr/local/bin/redis-server && chmod +x /usr/local/bin/redis-server\n",
		func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = docker.RemoveImage(context.Background(), ref) })
	outcome := verdictIs(t, checker.Broken, options(t, func(o *Options) {
		o.Lock, o.TTL, o.Images = "redis", time.Second, map[string]string{"redis": ref}
	}))
	keptLog(t, outcome, "cannot serve today")
	if err := clustertest.NothingLeft(outcome.History.Header.Run); err != nil {
		t.Error(err)
	}
}

// TestForeignImage: an image that lockcheck did not make can serve, and its clock can be moved like that of
// any other.
func TestForeignImage(t *testing.T) {
	t.Parallel()
	docker := clustertest.Engine(t)
	const ref = "lockcheck/test-plain-redis:latest"
	if err := docker.Build(context.Background(), ref, "FROM "+ensureRedis(t, docker)+"\nLABEL lockcheck.clock=\n", func(string) {}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = docker.RemoveImage(context.Background(), ref) })
	outcome := runTest(t, options(t, func(o *Options) {
		o.Lock, o.TTL, o.Nemesis, o.TimeLimit = "redis", time.Second, "clock", 14*time.Second
		o.Images = map[string]string{"redis": ref}
	}))
	if why := broken(outcome.History); why != "" {
		t.Fatal(why)
	}
	if !slices.ContainsFunc(outcome.Results.Faults, func(f checker.FaultCoverage) bool { return f.Kind == "clock" && f.Proven }) {
		t.Errorf("no step of the clock was proven: %+v", outcome.Results.Faults)
	}
}

// TestNoEngine: without an engine nothing starts, and no run is recorded.
func TestNoEngine(t *testing.T) {
	clustertest.ClientLibraries(t)
	t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
	outcome, err := Test(t.Context(), options(t, func(o *Options) { o.Lock = "redis" }), nil, logged{t})
	if outcome.History != nil || err == nil || !strings.Contains(err.Error(), "no Docker engine") {
		t.Errorf("%v: want that there is no engine", err)
	}
}

func ensureRedis(t *testing.T, docker *engine.Engine) string {
	t.Helper()
	image, err := images.Maker{Engine: docker, Progress: t.Logf}.Ensure(context.Background(), "redis")
	if err != nil {
		t.Fatal(err)
	}
	return image.Ref
}

// TestCutThatNobodyMet: Redis servers do not talk to each other. A cut between them drops nothing except
// lockcheck's own probe, and does not count. A cut that workers meet does.
func TestCutThatNobodyMet(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	for from, want := range map[string]checker.Verdict{"n2": checker.Undecided, "workers": checker.Valid} {
		t.Run(from, func(t *testing.T) {
			verdictIs(t, want, options(t, func(o *Options) {
				o.Lock, o.TTL, o.TimeLimit, o.Concurrency = "redlock", time.Second, 8*time.Second, 2
				o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
					Fault: "partition", Target: "n1", From: from, For: nemesis.Span{Plus: 2 * time.Second},
				}}}
			}))
		})
	}
}

// TestMessageOnRedis loses the answer to a worker's second renewal. A message that nobody sends is the control.
func TestMessageOnRedis(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	for bytes, want := range map[string]checker.Verdict{"PEXPIRE": checker.Valid, "NO SUCH COMMAND": checker.Undecided} {
		t.Run(bytes, func(t *testing.T) {
			t.Parallel()
			outcome := verdictIs(t, want, options(t, func(o *Options) {
				o.Lock, o.TTL, o.TimeLimit, o.Concurrency, o.Renew = "redis", 2*time.Second, 20*time.Second, 2, true
				o.Section.Min, o.Section.Max, o.MinOps = time.Second, time.Second, 5
				o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
					Fault: history.OneWay, Target: "actor", From: "servers", When: nemesis.WhenRequest, Bytes: bytes, Nth: 2,
					For: nemesis.Span{Plus: time.Second},
				}}}
			}))
			renewals := make(map[string]int) // by worker, until the cut was in force
			for _, e := range outcome.History.Events {
				switch {
				case e.F == history.Renew && e.Type == history.Invoke:
					renewals[e.Process]++
				case e.Fault != nil && e.Fault.Stage == history.Applied && renewals[e.Fault.Actor] != 2:
					t.Errorf("it came after %d renewals: %+v", renewals[e.Fault.Actor], e.Fault)
				}
			}
		})
	}
}
