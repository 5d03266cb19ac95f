// Package swarm spreads a comparison or a hunt over the nodes of a Docker Swarm: as a service of
// one-shot tasks, each of which makes a part of it on the engine of its own node. What a part
// made comes back to the manager. Where a task runs, and that it is made again if it fails, is
// left to the swarm.
package swarm

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"time"

	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
	"lockcheck/internal/cleanup"
)

// Job is what is spread.
type Job struct {
	// Arguments of lockcheck, without those that name the part and its folder.
	Arguments []string
	// Files that the arguments name, and folders, by the paths that they are to have there.
	Files map[string]string
	Parts int
	// Image of lockcheck, as nodes can pull it; "" for one of this binary, which only this
	// node has.
	Image string
	// Listen is the address for what comes back, which all nodes must reach; "" for a port of its
	// own on the address by which the swarm knows this node.
	Listen string
	// Folder is where the parts are put.
	Folder   string
	Binary   string
	Progress func(format string, args ...any)
}

const (
	// giveUp is how long a part may have no task that lives until nothing is expected of it, and
	// the swarm give no answer: longer than it takes to make a task again.
	giveUp = 2 * time.Minute
	// everySo often the swarm is asked how it stands.
	everySo = 2 * time.Second
	// grace is how long a task may take to end its runs in good order.
	grace = 30 * time.Second
)

// Run makes the parts, and returns the folders of those that came back. When interrupt is closed
// all tasks are ended. Its error says why the job could not be made, or that no part came back;
// that some did not is none.
func (j Job) Run(ctx context.Context, interrupt <-chan struct{}) (parts []string, err error) {
	docker, err := engine.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer docker.Close()
	swarm, err := docker.Swarm(ctx)
	if err != nil {
		return nil, err
	}
	id, err := cleanup.NewID(time.Now())
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", cmp.Or(j.Listen, net.JoinHostPort(swarm.Address, "0")))
	if err != nil {
		return nil, fmt.Errorf("results could not come back to this node: %w: name an address of it that all nodes reach", err)
	}
	m := &manager{job: j, swarm: swarm, docker: docker, name: "lockcheck-" + id, results: newResults(j, rand.Text())}
	server := m.results.server(grace)
	go server.Serve(listener) //nolint:errcheck // it ends with Close
	defer func() {
		err = errors.Join(err, server.Close())
		m.results.busy.Wait() // nobody writes into the folder any more
	}()
	service, err := m.start(ctx, "http://"+listener.Addr().String())
	if err != nil {
		return nil, err
	}
	err = m.wait(ctx, service, interrupt)
	err = errors.Join(err, m.end(ctx, service))
	parts = m.results.folders()
	if len(parts) == 0 {
		err = errors.Join(err, fmt.Errorf("none of %d parts came back: %s", j.Parts, m.results.lastFailure()))
	}
	return parts, err
}

// manager sees to one job.
type manager struct {
	job     Job
	docker  *engine.Engine
	swarm   engine.Swarm
	name    string
	results *results
	// given up are the parts that nothing is expected of, and told those of which it was said
	// that they wait.
	givenUp, told map[int]bool
}

// image is that of the job, or one of this binary by its ID, which no registry is asked for.
func (m *manager) image(ctx context.Context) (string, error) {
	if m.job.Image != "" {
		return m.job.Image, nil
	}
	maker := images.Maker{Engine: m.docker, Progress: func(format string, args ...any) { m.job.Progress(format, args...) }}
	self, err := maker.EnsureSelf(ctx, m.job.Binary)
	return self.ID, err
}

func (m *manager) start(ctx context.Context, address string) (service string, err error) {
	tasks, err := m.tasks(ctx)
	if err != nil {
		return "", err
	}
	tasks.Env = append(tasks.Env, managerVariable+"="+address, tokenVariable+"="+m.results.token, fmt.Sprintf("%s=%d", partsVariable, m.job.Parts))
	for _, name := range images.Variables() {
		if value := os.Getenv(name); value != "" {
			tasks.Env = append(tasks.Env, name+"="+value)
		}
	}
	m.job.Progress("%d parts, %d at a time: service %s", m.job.Parts, tasks.AtOnce, m.name)
	return m.docker.StartTasks(ctx, tasks)
}

func (m *manager) tasks(ctx context.Context) (engine.Tasks, error) {
	image, err := m.image(ctx)
	t := engine.Tasks{
		Name: m.name, Image: image, Command: []string{Command}, Hostname: m.name + "-{{.Task.Slot}}",
		Env:    []string{jobVariable + "=" + m.name, partVariable + "={{.Task.Slot}}"},
		Job:    m.name,
		Mounts: []string{"/var/run/docker.sock:/var/run/docker.sock", "/tmp:/tmp"},
		Count:  m.job.Parts, AtOnce: max(1, min(m.job.Parts, m.swarm.Nodes)), Grace: grace,
	}
	if m.job.Image == "" {
		t.Node, t.AtOnce = m.swarm.Node, 1
	}
	return t, err
}

// Command is what a task runs: lockcheck with this argument.
const Command = "swarm-part"

// wait returns when all parts are there or given up, or it was interrupted.
func (m *manager) wait(ctx context.Context, service string, interrupt <-chan struct{}) error {
	seen := make(map[int]time.Time) // when a part had a task that lived
	for n := range m.job.Parts {
		seen[n+1] = time.Now()
	}
	m.givenUp, m.told = make(map[int]bool), make(map[int]bool)
	answered := time.Now()
	ticker := time.NewTicker(everySo)
	defer ticker.Stop()
	for {
		select {
		case <-m.results.news:
		case <-ticker.C:
			tasks, err := m.docker.TasksOf(ctx, service)
			if err == nil {
				answered = time.Now()
				m.judge(tasks, seen)
			} else if time.Since(answered) > giveUp {
				return err
			}
		case <-interrupt:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
		for _, line := range m.results.said() {
			m.job.Progress("%s", line)
		}
		if len(m.missing()) == 0 {
			return nil
		}
	}
}

// missing are the parts that are still expected.
func (m *manager) missing() (all []int) {
	for n := range m.job.Parts {
		if part := n + 1; !m.results.has(part) && !m.givenUp[part] {
			all = append(all, part)
		}
	}
	return all
}

// judge gives up the parts that have had no task alive for too long, and says what others wait for.
func (m *manager) judge(tasks []engine.Task, seen map[int]time.Time) {
	why := make(map[int]string)
	tried, alive := make(map[int]bool), make(map[int]bool)
	for _, t := range tasks {
		part := t.Number + 1
		tried[part], alive[part] = true, alive[part] || t.Alive
		if t.Failed != "" {
			why[part] = t.Failed
		}
		if t.Alive && t.Failed != "" && !m.told[part] {
			m.told[part] = true
			m.job.Progress("part %d waits: %s", part, t.Failed)
		}
	}
	someLives := slices.Contains(slices.Collect(maps.Values(alive)), true)
	for _, part := range m.missing() {
		switch {
		case alive[part], !tried[part] && someLives: // its turn is to come
			seen[part] = time.Now()
		case time.Since(seen[part]) > giveUp:
			m.givenUp[part] = true
			m.results.failed(part, cmp.Or(why[part], "no task makes it"))
			m.job.Progress("part %d is given up: %s", part, cmp.Or(why[part], "no task makes it"))
		}
	}
}

// end removes the service and the containers of its tasks, and what those that did not end by
// themselves have left on their nodes.
func (m *manager) end(ctx context.Context, service string) error {
	err := m.docker.RemoveTasks(ctx, service)
	if err == nil && (m.results.anyFailed() || len(m.results.folders()) < m.job.Parts) {
		err = m.clean(ctx)
	}
	return errors.Join(err, m.docker.RemoveJob(ctx, m.name))
}

func (m *manager) clean(ctx context.Context) error {
	tasks, err := m.tasks(ctx)
	if err != nil {
		return err
	}
	tasks.Name, tasks.Job, tasks.OnEachNode, tasks.Hostname = m.name+"-clean", m.name+"-clean", true, ""
	tasks.Command = append(tasks.Command, "--clean", m.name)
	service, err := m.docker.StartTasks(ctx, tasks)
	if err != nil {
		return err
	}
	return errors.Join(m.cleaned(ctx, service), m.docker.RemoveTasks(ctx, service), m.docker.RemoveJob(ctx, tasks.Job))
}

// cleaned waits until the tasks of a service have ended, and says if not all did what they were to.
func (m *manager) cleaned(ctx context.Context, service string) error {
	ctx, cancel := context.WithTimeout(ctx, giveUp)
	defer cancel()
	for {
		tasks, err := m.docker.TasksOf(ctx, service)
		if err != nil {
			return err
		}
		alive := slices.ContainsFunc(tasks, func(t engine.Task) bool { return t.Alive })
		if len(tasks) > 0 && !alive {
			return m.uncleaned(tasks)
		}
		select {
		case <-ctx.Done():
			return m.uncleaned(tasks)
		case <-time.After(everySo):
		}
	}
}

// uncleaned is the error for the nodes on which something may be left.
func (m *manager) uncleaned(tasks []engine.Task) error {
	nodes := make(map[string]bool)
	for _, t := range tasks {
		nodes[t.Node] = nodes[t.Node] || t.Done
	}
	var left []string
	for node, done := range nodes {
		if !done {
			left = append(left, node)
		}
	}
	if len(left) == 0 {
		return nil
	}
	slices.Sort(left)
	return fmt.Errorf("tasks may have left containers on nodes %s: run there lockcheck %s --clean %s", left, Command, m.name)
}
