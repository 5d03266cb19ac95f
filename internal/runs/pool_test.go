package runs

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
	"lockcheck/internal/cleanup"
	"lockcheck/nemesis"
)

// pooled makes runs one after another on clusters that a pool keeps.
type pooled struct {
	t      *testing.T
	pool   *Pool
	lock   string
	binary string   // "" for the binary of the test
	runs   []string // the runs that have had their own cluster
}

// run makes a run with a fault, and returns its history.
func (p *pooled) run(step nemesis.Step) *history.History {
	p.t.Helper()
	o := options(p.t, func(o *Options) {
		o.Lock, o.TTL, o.TimeLimit, o.Pool, o.ResultsOnly = p.lock, 0, 10*time.Second, p.pool, true
		o.Section.Min, o.Section.Max = 20*time.Millisecond, 40*time.Millisecond
		o.Schedule, o.EndEarly = &nemesis.Schedule{Steps: []nemesis.Step{step}}, true
		o.Binary = cmp.Or(p.binary, o.Binary)
	})
	outcome, err := Test(context.Background(), o, nil, logged{p.t})
	if err != nil {
		p.t.Fatal(err)
	}
	if why := broken(outcome.History); why != "" {
		p.t.Fatal(why)
	}
	for _, f := range outcome.Results.Faults {
		if !f.Proven {
			p.t.Fatalf("the fault was not proven: %+v", f)
		}
	}
	h := outcome.History
	p.t.Logf("%s: %s, cluster %q after %d runs", outcome.Results.Verdict, outcome.Results.Sentence, h.Header.Cluster, h.Header.Earlier)
	if outcome.Results.Verdict == checker.Broken {
		p.t.Errorf("broken: %s", outcome.Results.Sentence)
	}
	if h.Header.Cluster == "" {
		p.runs = append(p.runs, h.Header.Run)
	}
	if len(h.Header.Images) == 0 || len(h.Header.Versions) == 0 {
		p.t.Errorf("images %v, versions %v: want those of the cluster", h.Header.Images, h.Header.Versions)
	}
	return h
}

// keys returns the keys of a history.
func keys(h *history.History) map[string]bool {
	all := make(map[string]bool)
	for _, e := range h.Events {
		if e.Key != "" {
			all[e.Key] = true
		}
	}
	return all
}

// TestPool: a cluster serves another run after a fault that leaves nothing behind, but not after a fault that
// may. No run records what an earlier run has left on the servers, such as locks of killed workers or the end
// of their sessions.
func TestPool(t *testing.T) {
	t.Parallel()
	brief := nemesis.Span{Plus: time.Second} // long enough to be proven on a busy machine
	step := func(fault, target string) nemesis.Step {
		return nemesis.Step{Fault: fault, Target: target, For: brief}
	}
	holder := step(history.Kill, "holder")
	holder.When = nemesis.WhenHolding
	clock := step(history.Clock, "n1")
	clock.Step = nemesis.Span{Plus: time.Minute}
	for _, c := range []struct{ lock, servers, lasting string }{
		{"redis-aof", "redis", history.Wipe}, {"etcd", clustertest.Rest, ""}, // a member of etcd cannot be wiped
	} {
		t.Run(c.lock, func(t *testing.T) {
			t.Parallel()
			clustertest.Engine(t, c.servers)
			p := &pooled{t: t, pool: NewPool(), lock: c.lock}
			first := p.run(holder) // leaves its lock on the servers
			seen := keys(first)
			steps := []nemesis.Step{step(history.Pause, "w1"), step(history.Freeze, "n1"), step(history.Partition, "w2"), step(history.Kill, "n1"), clock}
			for i, s := range append(steps, step(cmp.Or(c.lasting, history.Pause), "n1")) {
				h := p.run(s)
				if h.Header.Cluster != first.Header.Run || h.Header.Earlier != i+1 {
					t.Errorf("run %d has cluster %q after %d runs, want that of the first", i+2, h.Header.Cluster, h.Header.Earlier)
				}
				for key := range keys(h) {
					if seen[key] {
						t.Errorf("run %d has key %s of a run before", i+2, key)
					}
					seen[key] = true
				}
			}
			if h := p.run(step(history.Pause, "w1")); c.lasting != "" && h.Header.Cluster != "" {
				t.Errorf("cluster %q after %d runs was used again after %s", h.Header.Cluster, h.Header.Earlier, c.lasting)
			}
			if err := p.pool.Close(context.Background()); err != nil {
				t.Error(err)
			}
			journals, err := cleanup.Journals()
			for _, run := range p.runs {
				if err != nil || slices.Contains(journals, run) {
					t.Errorf("journals %v, %v: that of %s is to be gone", journals, err, run)
				}
				if err := clustertest.NothingLeft(run); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestPoolClients: a user's clients, and workers of another program, are new in each run on a cluster that is
// kept.
func TestPoolClients(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t, clustertest.Rest)
	for lock, binary := range map[string]string{example("redis-py"): "", "redsync-4.12.0": clustertest.WithWorkerPrograms(t)} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			p := &pooled{t: t, pool: NewPool(), lock: lock, binary: binary}
			t.Cleanup(func() {
				if err := p.pool.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
			brief := nemesis.Span{Plus: time.Second} // long enough to be proven on a busy machine
			seen := make(map[string]bool)
			for earlier, fault := range []string{history.Pause, history.Partition, history.Kill} {
				h := p.run(nemesis.Step{Fault: fault, Target: "w1", For: brief})
				if h.Header.Earlier != earlier {
					t.Errorf("%s in run %d of its cluster, want %d", fault, h.Header.Earlier+1, earlier+1)
				}
				for key := range keys(h) {
					if seen[key] {
						t.Errorf("run %d has key %s of a run before", earlier+1, key)
					}
					seen[key] = true
				}
			}
		})
	}
}

// TestIdleMost: if there are too many clusters, the one that has waited longest is removed and not handed
// out.
func TestIdleMost(t *testing.T) {
	p := NewPool()
	var all []*site
	for i := range idleMost + 2 {
		all = append(all, &site{id: fmt.Sprint(i), made: "redis"})
		old := p.keep(all[i])
		switch {
		case i < idleMost && old != nil:
			t.Errorf("%s has to go for the cluster %d", old.id, i+1)
		case i >= idleMost && old != all[i-idleMost]:
			t.Errorf("%v has to go, want %s", old, all[i-idleMost].id)
		}
	}
	for i := 2; i < len(all); i++ {
		if got := p.find("redis"); got != all[i] {
			t.Errorf("handed out: %v, want %s", got, all[i].id)
		}
	}
	if got := p.find("redis"); got != nil {
		t.Errorf("%s is handed out, and had to go", got.id)
	}
}

// TestLasting: which clusters serve another run.
func TestLasting(t *testing.T) {
	for lock, want := range map[string]bool{"redis": true, "redsync": true, "redsync-4.12.0": true, "memory": false,
		"../../examples/kazoo/lock.yaml": true, "../../examples/compose-redis/lock.yaml": false} {
		prepared, err := prepare(asked(func(o *Options) { o.Lock, o.Pool = lock, NewPool() }))
		if err != nil {
			t.Fatal(err)
		}
		if got := prepared.lasting(); got != want {
			t.Errorf("%s: %v", lock, got)
		}
	}
}

// TestMadeOf: tests that differ in anything that runs on a cluster do not share the cluster.
func TestMadeOf(t *testing.T) {
	seen := make(map[string]string)
	for _, name := range []string{"redsync", "redsync-4.12.0", "zookeeper", "redis", example("kazoo"), example("curator"), example("redis-py")} {
		for _, nodes := range []int{0, 3} {
			for _, guard := range []string{"none", "ask"} {
				prepared, err := prepare(asked(func(o *Options) { o.Lock, o.Pool, o.Nodes, o.Guard = name, NewPool(), nodes, guard }))
				if err != nil {
					continue // the lock cannot have that many servers, or cannot be asked
				}
				what := fmt.Sprintf("%s %d %s", name, prepared.Nodes, guard)
				if other, there := seen[prepared.madeOf()]; there && other != what {
					t.Errorf("%s stands in for %s", what, other)
				}
				seen[prepared.madeOf()] = what
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("%d clusters: %v", len(seen), seen)
	}
}

// TestLastChange: only a change in the folder is noticed.
func TestLastChange(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "client.py")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := lastChange(folder)
	if again := lastChange(folder); again != before {
		t.Errorf("%s, then %s", before, again)
	}
	if err := os.Chtimes(file, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if after := lastChange(folder); after == before {
		t.Errorf("%s before and after", after)
	}
}

// TestPoolProof: a cluster that is not clean is removed, even if the record says that nothing was left.
func TestPoolProof(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	for name, disturb := range map[string]func(context.Context, *site) error{
		"a stopped server": func(ctx context.Context, s *site) error {
			_, err := s.cluster.Servers()[0].Host.Signal(ctx, "stop")
			return err
		},
		"a clock": func(ctx context.Context, s *site) error {
			_, err := s.cluster.Servers()[0].Host.SetClock(ctx, time.Minute)
			return err
		},
		"a fault that nobody has healed": func(_ context.Context, s *site) error { return s.journal.Begin("x", "heal it") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &pooled{t: t, pool: NewPool(), lock: "redis"}
			p.run(nemesis.Step{Fault: history.Pause, Target: "w1", For: nemesis.Span{Plus: time.Millisecond}})
			if len(p.pool.idle) != 1 {
				t.Fatalf("%d clusters are kept, want one", len(p.pool.idle))
			}
			s := p.pool.idle[0]
			if err := disturb(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			err := s.next(t.Context())
			if err == nil {
				t.Error("it passes for clean")
			}
			t.Log(err)
			if err := p.pool.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTraces: after which faults a cluster is used again, and after which not.
func TestTraces(t *testing.T) {
	fault := func(kind string, stages ...history.Stage) []history.Event {
		var events []history.Event
		kind, target, _ := strings.Cut(kind, " ")
		for _, stage := range stages {
			events = append(events, history.Event{Fault: &history.Fault{ID: kind, Kind: kind, Stage: stage, Targets: []string{target}}})
		}
		return events
	}
	whole := []history.Stage{history.Requested, history.Applied, history.Proven, history.Healed, history.ProvenHealed}
	for _, c := range []struct {
		name   string
		events []history.Event
		over   bool // servers fail over
		own    bool // the clients are a user's
		want   bool
	}{
		{"nothing", nil, false, false, true},
		{"a pause", fault("pause n1", whole...), false, false, true},
		{"a pause, where others take over", fault("pause n1", whole...), true, false, false},
		{"a worker paused, where others take over", fault("pause w1", whole...), true, false, true},
		{"a worker cut off, where others take over", fault("partition w1", whole...), true, false, true},
		{"a cut that is not proven healed", fault("partition w1", whole[:4]...), false, false, false},
		{"a cut that is not proven", fault("partition w1", history.Requested, history.Applied, history.Unproven, history.Healed, history.ProvenHealed), false, false, false},
		{"a cut that nobody could heal", fault("partition w1", history.Requested, history.Applied, history.Proven, history.Unhealed), false, false, false},
		{"a fault that was skipped", fault("kill n1", history.Skipped), false, false, true},
		{"a worker killed", fault("kill w1", whole...), false, false, true},
		{"a worker killed whose client is a user's", fault("kill w1", whole...), false, true, false},
		{"such a one paused", fault("pause w1", whole...), false, true, true},
		{"a worker killed that there is not, where others take over", fault("kill w6", whole...), true, false, false},
		{"a server killed", fault("kill n1", whole...), false, false, true},
		{"a server killed, where others take over", fault("kill n1", whole...), true, false, false},
		{"a server that lost power", fault("power-loss n1", whole...), false, false, false},
		{"a server wiped", fault("wipe n1", whole...), false, false, false},
		{"a clock", fault("clock n1", whole...), false, false, true},
		{"a clock, where others take over", fault("clock n1", whole...), true, false, false},
		{"a disk", fault("disk-full n1", whole...), false, false, false},
		{"who knows what", fault("earthquake n1", whole...), false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			test := &test{Options: Options{Concurrency: 5}}
			test.spec.FailsOver = c.over
			if c.own {
				test.lock.Definition = new(clients.Definition)
			}
			traces := newTraces(test)
			for _, e := range c.events {
				traces.Observe(e)
			}
			if got := traces.none(); got != c.want {
				t.Errorf("nothing is left: %t, want %t", got, c.want)
			}
		})
	}
}
