// Package swarm spreads a comparison or a hunt over the nodes of a Docker Swarm. It is a service of one-shot
// tasks, each of which runs one part on the engine of its node and sends the result to the manager. The swarm
// decides where a task runs, and retries tasks that fail.
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

// Job is a command that is spread over a swarm.
type Job struct {
	// Arguments of lockcheck, except those that name the part and its folder.
	Arguments []string
	// Files maps the relative paths in the arguments to files and folders of this machine.
	Files map[string]string
	Parts int
	// Image of lockcheck that the nodes can pull; "" for an image of this binary, which only this node has.
	Image string
	// Listen is the address for results, which all nodes must reach; "" for a free port on the address under
	// which the swarm knows this node.
	Listen string
	// Folder is where the results of parts are stored.
	Folder   string
	Binary   string
	Progress func(format string, args ...any)
}

const (
	// giveUp is how long a part may be without a live task, or the swarm without an answer. It is longer than
	// the retry of a task takes.
	giveUp = 2 * time.Minute
	// everySo is the interval at which the swarm's tasks are polled.
	everySo = 2 * time.Second
	// grace is how long a task may take to end its runs in an orderly way.
	grace = 30 * time.Second
)

// Run runs the parts and returns the folders of the results that came back. Closing interrupt ends all tasks.
// It is an error if the job could not be started or if no part came back. Single missing parts are no error.
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
		m.results.busy.Wait() // no request writes into the folder any more
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

// manager runs one job.
type manager struct {
	job     Job
	docker  *engine.Engine
	swarm   engine.Swarm
	name    string
	results *results
	// givenUp has the parts whose result is no longer expected. told has the parts of which it was reported
	// that they wait.
	givenUp, told map[int]bool
}

// image is the image of the job, or an image of this binary. The latter is named by its ID, so that no registry
// is asked.
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

// Command is the lockcheck command that a task runs.
const Command = "swarm-part"

// wait returns when all parts have come back or are given up, or when interrupt is closed.
func (m *manager) wait(ctx context.Context, service string, interrupt <-chan struct{}) error {
	seen := make(map[int]time.Time) // when a part last had a live task
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

// judge gives up parts that have had no live task for too long, and reports why other parts wait.
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
		case alive[part], !tried[part] && someLives: // its turn is still to come
			seen[part] = time.Now()
		case time.Since(seen[part]) > giveUp:
			m.givenUp[part] = true
			m.results.failed(part, cmp.Or(why[part], "no task makes it"))
			m.job.Progress("part %d is given up: %s", part, cmp.Or(why[part], "no task makes it"))
		}
	}
}

// end removes the service and its containers. If a task failed or did not return, it also cleans the nodes.
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

// cleaned waits until the tasks of a service have ended, and returns an error if some did not complete.
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

// uncleaned is the error that lists the nodes on which something may be left.
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
