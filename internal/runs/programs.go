package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"lockcheck/clusters"
	"lockcheck/history"
	"lockcheck/workloads"
)

// startPrograms starts the resource and the workers, which wait for the command to begin.
func (r *run) startPrograms(ctx context.Context, cluster clusters.Cluster) error {
	r.cluster, r.site.cluster = cluster, cluster
	if err := r.startResource(ctx); err != nil {
		return err
	}
	if err := r.startObserver(ctx); err != nil {
		return err
	}
	if err := r.startWorkers(ctx); err != nil {
		return err
	}
	return r.startRemovalObserver(ctx)
}

// startObserver starts the program that records what the lock service itself reports, if the service can be
// observed.
func (r *run) startObserver(ctx context.Context) (err error) {
	if r.info.Observe == nil {
		return nil
	}
	config := workloads.ObserverConfig{Lock: r.Lock, Nodes: addresses(r.cluster.Servers()), Prefix: r.site.prefix()}
	r.observer, err = r.startProgram(ctx, clusters.Program{Name: history.Service, Networked: true}, "observer", config)
	return err
}

// startRemovalObserver starts the program that records whose connection removes the key of a lock, for users' own clients,
// whose commands lockcheck does not know. It needs the addresses of the workers.
func (r *run) startRemovalObserver(ctx context.Context) (err error) {
	if servers := r.info.Servers; r.lock.Definition == nil || servers != "redis" && servers != "valkey" {
		return nil
	}
	config := workloads.ObserverConfig{
		Lock: r.info.Name, Redis: true, Nodes: addresses(r.forClients()), Prefix: r.site.prefix(), Workers: make(map[string]string),
	}
	for _, w := range r.workers {
		config.Workers[w.IP] = w.Name
	}
	r.observer, err = r.startProgram(ctx, clusters.Program{Name: history.Service, Networked: true}, "observer", config)
	return err
}

// rotate is the number of updates, reads or attempts after which the lock gets a new name. Each election must
// have as many terms as another lock has holds.
func (r *run) rotate() int {
	if r.guard() == workloads.Database { // attempts are counted
		return defaultRotate
	}
	return defaultRotate * r.workload.PerHold(r.Use)
}

// patience is the longest time for which the next name of the lock waits for a worker that still works under
// the last name. It covers the longest fault and some time to release.
func (r *run) patience() time.Duration {
	var longest time.Duration
	for _, step := range r.schedule.Steps {
		longest = max(longest, step.For.Of(r.effective))
	}
	return longest + time.Second
}

func (r *run) startResource(ctx context.Context) (err error) {
	config := workloads.ResourceConfig{
		Socket: r.socket(), Guard: r.guard(), Rotate: r.rotate(),
		CountReads: r.workload.Update == nil, Patience: r.patience(), Prefix: r.site.prefix(),
	}
	reaches := r.guard() == workloads.Ask || r.guard() == workloads.Database
	if reaches {
		config.Service = &workloads.ServiceConfig{
			Lock: r.info.Name, Definition: r.lock.Definition, Nodes: addresses(r.forClients()), TTL: r.TTL,
			Folder: r.cluster.Folder(), Timeout: callTimeout,
		}
	}
	program := clusters.Program{Name: history.Resource, Networked: reaches}
	if reaches {
		program.Image, program.Binary = r.lock.Image, r.workerBinary()
	}
	r.resource, err = r.startProgram(ctx, program, "resource", config)
	return err
}

func addresses(nodes []*clusters.Node) []string {
	var all []string
	for _, node := range nodes {
		all = append(all, node.Address)
	}
	return all
}

func inputs(programs []*clusters.Node) map[string]io.Writer {
	all := make(map[string]io.Writer, len(programs))
	for _, p := range programs {
		all[p.Name] = p.Input
	}
	return all
}

// callTimeout bounds one call to the lock service.
const callTimeout = time.Second

func (r *run) socket() string { return filepath.Join(r.cluster.Folder(), "resource.sock") }

func (r *run) startWorkers(ctx context.Context) error {
	r.progress.Step("starting the workers (%d)", r.Concurrency)
	r.workers = make([]*clusters.Node, r.Concurrency)
	errs := make([]error, r.Concurrency)
	var all sync.WaitGroup
	slots := make(chan struct{}, clusters.StartAtOnce)
	for i := range r.workers {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			config := r.workerConfig(i + 1)
			r.workers[i], errs[i] = r.startProgram(ctx, clusters.Program{
				Name: config.Name, Binary: r.workerBinary(), Image: r.lock.Image, Networked: true, Clock: r.movesWorkerClocks(),
			}, "worker", config)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (r *run) workerConfig(index int) workloads.WorkerConfig {
	config := workloads.WorkerConfig{
		Name: workerName(index), Index: index,
		Lock: r.info.Name, Definition: r.lock.Definition, Nodes: addresses(r.servers(index)), Folder: r.cluster.Folder(), Socket: r.socket(), Workload: r.Workload, Seed: r.Seed, Prefix: r.site.prefix(),
		InDatabase: r.guard() == workloads.Database,
		Use:        r.use(index),
		Idle:       workloads.Range{Max: 10 * time.Millisecond},
		Retry:      workloads.Range{Min: 10 * time.Millisecond, Max: 40 * time.Millisecond},
		Timeout:    callTimeout,
	}
	if r.Rate > 0 {
		each := time.Duration(float64(r.Concurrency) / r.Rate * float64(time.Second))
		config.Idle = workloads.Range{Min: each / 2, Max: each * 3 / 2}
	}
	if config.Think != nil {
		config.Idle = *config.Think
	}
	if r.info.Endless {
		config.Wait = r.TimeLimit
	}
	if r.movesWorkerClocks() {
		config.ClockSocket = clusters.ClockSocket(r.cluster.Folder(), config.Name)
	}
	return config
}

// movesWorkerClocks says whether the wall clocks of workers must be movable: for a schedule that moves clocks, and for
// any schedule that the next run in the same containers may have.
func (r *run) movesWorkerClocks() bool {
	return r.info.WallClocks && (r.lasting() || slices.ContainsFunc(r.schedule.Faults(), func(fault string) bool { return history.Does(fault, history.Steps) }))
}

// use is how a worker, counted from 1, uses its lock.
func (t *test) use(index int) workloads.Use {
	if index <= len(t.Workers) {
		return t.Workers[index-1].Or(t.Use)
	}
	return t.Use
}

// allUse says whether every worker uses its lock in a given way.
func (t *test) allUse(is func(workloads.Use) bool) bool {
	for i := range t.Concurrency {
		if !is(t.use(i + 1)) {
			return false
		}
	}
	return true
}

// workerName is the name of a worker, counted from 1.
func workerName(index int) string { return fmt.Sprintf("w%d", index) }

// workerNames are the names of all workers.
func (t *test) workerNames() []string {
	var names []string
	for i := range t.Concurrency {
		names = append(names, workerName(i+1))
	}
	return names
}

// servers are the servers that a worker gets: all servers for clients, or the one that the worker is tied to.
func (r *run) servers(index int) []*clusters.Node {
	all := r.forClients()
	if r.Pin {
		return []*clusters.Node{all[(index-1)%len(all)]}
	}
	return all
}

// forClients are the servers that are not hidden from clients.
func (r *run) forClients() []*clusters.Node {
	return slices.DeleteFunc(slices.Clone(r.cluster.Servers()), func(n *clusters.Node) bool { return n.Server.Hidden })
}

// startProgram starts a program with one of lockcheck's hidden commands.
func (r *session) startProgram(ctx context.Context, p clusters.Program, command string, config any) (*clusters.Node, error) {
	p.Args = []string{command}
	node, err := r.cluster.Start(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := workloads.Configure(node.Input, config); err != nil {
		return nil, fmt.Errorf("%s: %w; %s", p.Name, err, node.Errors)
	}
	return node, nil
}
