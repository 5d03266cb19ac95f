package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
	"lockcheck/internal/cleanup/cleanuptest"
	"lockcheck/workloads"
)

// TestMatrix inflicts each fault that "list faults" reports as supported on the servers of each cluster and on
// a worker. The target must prove it, a client outside must notice it while it is in force, and it must be gone
// afterwards.
func TestMatrix(t *testing.T) {
	for _, spec := range clusters.Table() {
		if !spec.OnDocker() {
			continue // embedded clusters are tested with whole runs
		}
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel() // no worker holds a lease here that a busy machine could end
			m := newMatrix(t, clusters.Request{Spec: spec})
			m.healthy("before any fault")
			m.opened("nats-kv")
			for _, step := range m.steps() {
				t.Run(step.ID, func(t *testing.T) { m.inflict(t, step) })
			}
		})
	}
}

// matrix is a cluster with four idle workers: one as a target, two to be killed, and one to spare.
type matrix struct {
	t       *testing.T
	spec    clusters.Spec
	cluster clusters.Cluster
	env     Environment
}

// newMatrix starts a cluster. All of them together take minutes, so only Redis and etcd are usual.
func newMatrix(t *testing.T, request clusters.Request) *matrix {
	t.Helper()
	servers := request.Spec.Name
	if len(request.Versions) > 0 || servers != "redis" && servers != "redis-aof-everysec" && servers != "etcd" {
		servers = clustertest.Rest
	}
	docker := clustertest.Engine(t, servers)
	run, labels := cleanuptest.Run(t)
	t.Cleanup(func() {
		if _, err := docker.RemoveRun(context.WithoutCancel(t.Context()), run); err != nil {
			t.Errorf("clean-up: %v", err)
		}
	})
	m := &matrix{t: t, spec: request.Spec}
	request.Run, request.Binary, request.Labels = run, clustertest.Binary(t), labels
	request.Progress, request.Status = t.Logf, func(string, ...any) {}
	request.Meanwhile = func(ctx context.Context, c clusters.Cluster) error {
		for _, name := range []string{"w1", "w2", "w3", "w4"} {
			// The worker waits for the order to begin, which never comes.
			worker, err := c.Start(ctx, clusters.Program{Name: name, Args: []string{"worker"}, Networked: true})
			if err != nil {
				return err
			}
			if err := workloads.Configure(worker.Input, workloads.WorkerConfig{Lock: "none", Workload: "set"}); err != nil {
				return err
			}
			m.env.Workers = append(m.env.Workers, worker)
		}
		return nil
	}
	cluster, err := clusters.Start(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	m.cluster, m.env.Servers, m.env.Lease = cluster, cluster.Servers(), time.Second
	return m
}

// steps lists everything that is supported, on a server and on a worker. Steps that kill a worker come last.
func (m *matrix) steps() (steps []Step) {
	var last []Step
	for _, kind := range Kinds() {
		if kind.OnDisk {
			continue // tested on servers with such disks
		}
		can := kind.Support(m.spec)
		switch {
		case can.Servers != nil:
		case history.Does(kind.Name, history.Deposes):
			steps = append(steps, m.step(kind, roleLeader))
		default:
			steps = append(steps, m.step(kind, roleOne))
		}
		switch {
		case can.Workers != nil, history.Does(kind.Name, history.Defers): // tested with the resource
		case history.Does(kind.Name, history.Ends):
			last = append(last, m.step(kind, fmt.Sprintf("w%d", len(last)+2)))
		default:
			steps = append(steps, m.step(kind, "w1"))
		}
	}
	for _, shape := range []string{roleHalves, roleRing, roleBridge} {
		r := resolver{env: m.env, rng: seeded()}
		if _, err := r.targets(shape); err == nil {
			steps = append(steps, m.step(partitionKind(), shape))
		}
	}
	return append(steps, last...)
}

func (m *matrix) step(kind Kind, target string) Step {
	step := Step{Fault: kind.Name, Target: target}
	kind.Random(seeded(), m.env, &step)
	step.ID = kind.Name + "-" + strings.ReplaceAll(target, " ", "-")
	step.Target = target
	if !history.Does(kind.Name, history.Deposes) {
		step.For = Span{Plus: 100 * time.Millisecond}
	}
	if kind.uses(UsesDelay) {
		step.Delay = Span{Plus: 100 * time.Millisecond}
	}
	return step
}

// inflict runs one step to its end, and looks at it from outside while it is in force.
func (m *matrix) inflict(t *testing.T, step Step) *diary {
	d := &diary{t: t}
	var outside error
	d.on = func(f history.Fault) {
		if f.Stage == history.Proven {
			outside = m.seen(t.Context(), step, f)
		}
	}
	n := d.nemesis(m.env, step)
	n.Run(t.Context(), plenty)
	if outside != nil {
		t.Errorf("from outside: %v", outside)
	}
	for _, stage := range []history.Stage{history.Proven, history.ProvenHealed} {
		f := d.stage(step.ID, stage)
		if f.ID == "" {
			t.Fatalf("never %s: %v\n%s%s", stage, d.order(), d.stage(step.ID, history.Unproven).Evidence, d.stage(step.ID, history.Unhealed).Evidence)
		}
		t.Logf("%s: %s", stage, f.Evidence)
	}
	m.healthy("after " + step.ID)
	return d
}

// opened opens a lock if it is one of these servers. Those of NATS have a leader that can hand over once there is the
// lock's bucket.
func (m *matrix) opened(lock string) {
	m.t.Helper()
	info, _ := clients.ByName(lock)
	if info.Servers != m.spec.Name {
		return
	}
	config := clients.Config{Worker: "outside", TTL: info.TTL}
	for _, node := range m.env.Servers {
		config.Nodes = append(config.Nodes, node.Address)
	}
	client, err := info.Open(config)
	if err == nil {
		err = client.Close()
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// clock asks a running server for its time, and repeats the question if the server is too busy. The fault is in
// force meanwhile.
func (m *matrix) clock(ctx context.Context, node *clusters.Node) (now time.Time, err error) {
	for range 5 {
		asked, cancel := context.WithTimeout(ctx, probeTimeout)
		now, err = node.Server.Probes.Clock(asked, node.Address)
		cancel()
		if err == nil {
			return now, nil
		}
	}
	return now, err
}

// seen returns what a client outside the cluster does not notice of a fault in force.
func (m *matrix) seen(ctx context.Context, step Step, f history.Fault) error {
	quick, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, node := range m.env.Servers {
		if !slices.Contains(f.Targets, node.Name) {
			continue
		}
		switch {
		case history.Does(step.Fault, history.Stops), history.Does(step.Fault, history.Ends):
			if err := node.Server.Probes.Ready(quick, node.Address); err == nil {
				return fmt.Errorf("%s answers", node.Name)
			}
		case step.Fault == history.Clock:
			now, err := m.clock(ctx, node)
			if off := time.Until(now); err != nil || (off-step.Step.Of(m.env.Lease)).Abs() > clockTolerance {
				return fmt.Errorf("%s tells %s from true time, %v", node.Name, off, err)
			}
		}
	}
	return nil
}

// healthy waits until every server serves a client outside the cluster, and no node has anything left of a
// fault.
func (m *matrix) healthy(when string) {
	m.t.Helper()
	for _, node := range m.env.Servers {
		clustertest.Eventually(m.t, restartLimit, func() error {
			ctx, cancel := context.WithTimeout(m.t.Context(), time.Second)
			defer cancel()
			if err := node.Server.Probes.Ready(ctx, node.Address); err != nil {
				return fmt.Errorf("%s, %s: %w", when, node.Name, err)
			}
			if why := disturbed(ctx, node); why != "" {
				return fmt.Errorf("%s: %s", when, why)
			}
			return nil
		})
	}
}

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }
