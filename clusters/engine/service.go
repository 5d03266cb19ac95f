package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/swarm"
	"golang.org/x/sync/errgroup"
)

// Swarm is the cluster of engines that this one is a manager of.
type Swarm struct {
	Node    string // identity of this node
	Address string // by which the swarm knows it
	Nodes   int    // that can be given work
}

// errNoSwarm says what to do about an engine that manages none.
var errNoSwarm = errors.New("this Docker engine manages no swarm: make one by docker swarm init, or run this on a manager")

// Swarm looks at the swarm of the engine.
func (e *Engine) Swarm(ctx context.Context) (Swarm, error) {
	ctx, cancel := e.answering(ctx)
	defer cancel()
	info, err := e.api.Info(ctx)
	if err != nil {
		return Swarm{}, err
	}
	if !info.Swarm.ControlAvailable {
		return Swarm{}, errNoSwarm
	}
	ready, err := e.readyNodes(ctx)
	return Swarm{Node: info.Swarm.NodeID, Address: info.Swarm.NodeAddr, Nodes: len(ready)}, err
}

func (e *Engine) readyNodes(ctx context.Context) (map[string]bool, error) {
	nodes, err := e.api.NodeList(ctx, swarm.NodeListOptions{})
	if err != nil {
		return nil, err
	}
	ready := make(map[string]bool)
	for _, n := range nodes {
		if n.Status.State == swarm.NodeStateReady && n.Spec.Availability == swarm.NodeAvailabilityActive {
			ready[n.ID] = true
		}
	}
	return ready, nil
}

// Tasks are a service that does a number of tasks once each, every one on the network of its
// node, as tasks of a swarm cannot have its process numbers.
type Tasks struct {
	Name    string
	Image   string
	Command []string
	// Env and Hostname can name the number of the task, from 0, as {{.Task.Slot}}.
	Env      []string
	Hostname string
	Job      string   // see JobLabel
	Mounts   []string // paths of nodes, as "source:target"
	Count    int
	AtOnce   int
	// Node is the only one that tasks run on; "" for any, each of which gets one at a time.
	Node string
	// OnEachNode makes one task on every node, in place of Count.
	OnEachNode bool
	// Grace is how long a task may take to end when it is told to.
	Grace time.Duration
}

// mostFailures is how often a task is made again after it has failed.
const mostFailures = 2

// StartTasks makes a service. The swarm makes a task again that fails, or whose node is gone.
func (e *Engine) StartTasks(ctx context.Context, t Tasks) (id string, err error) {
	ctx, cancel, err := e.making(ctx)
	if err != nil {
		return "", err
	}
	defer cancel()
	made, err := e.api.ServiceCreate(ctx, t.spec(), swarm.ServiceCreateOptions{})
	if err != nil {
		return "", fmt.Errorf("service %s: %w", t.Name, err)
	}
	return made.ID, nil
}

func (t Tasks) spec() swarm.ServiceSpec {
	failures, labels := uint64(mostFailures), map[string]string{JobLabel: t.Job}
	spec := &swarm.ContainerSpec{
		Image: t.Image, Args: t.Command, Env: t.Env, Hostname: t.Hostname, Labels: labels, StopGracePeriod: &t.Grace,
	}
	for _, bound := range t.Mounts {
		source, target, _ := strings.Cut(bound, ":")
		spec.Mounts = append(spec.Mounts, mount.Mount{Type: mount.TypeBind, Source: source, Target: target})
	}
	placement := new(swarm.Placement)
	switch {
	case t.Node != "":
		placement.Constraints = []string{"node.id==" + t.Node}
	case !t.OnEachNode:
		placement.MaxReplicas = 1
	}
	return swarm.ServiceSpec{
		Annotations: swarm.Annotations{Name: t.Name, Labels: labels},
		Mode:        t.mode(),
		TaskTemplate: swarm.TaskSpec{
			ContainerSpec: spec,
			Placement:     placement,
			Networks:      []swarm.NetworkAttachmentConfig{{Target: "host"}},
			RestartPolicy: &swarm.RestartPolicy{Condition: swarm.RestartPolicyConditionOnFailure, MaxAttempts: &failures},
		},
	}
}

func (t Tasks) mode() swarm.ServiceMode {
	if t.OnEachNode {
		return swarm.ServiceMode{GlobalJob: &swarm.GlobalJob{}}
	}
	count, atOnce := uint64(t.Count), uint64(t.AtOnce)
	return swarm.ServiceMode{ReplicatedJob: &swarm.ReplicatedJob{TotalCompletions: &count, MaxConcurrent: &atOnce}}
}

// Task is one attempt at a task of a service.
type Task struct {
	Number int    // from 0
	Node   string // that it was given to; "" for none yet
	Done   bool   // it has done its work
	// Alive: it waits for a node that takes it, or runs on one that answers.
	Alive bool
	// Failed is what the swarm says of one that failed, or why it has to wait; "" for nothing.
	Failed string
}

// TasksOf lists the attempts at the tasks of a service.
func (e *Engine) TasksOf(ctx context.Context, service string) ([]Task, error) {
	ctx, cancel := e.answering(ctx)
	defer cancel()
	ready, err := e.readyNodes(ctx)
	if err != nil {
		return nil, err
	}
	list, err := e.api.TaskList(ctx, swarm.TaskListOptions{Filters: filters.NewArgs(filters.Arg("service", service))})
	if err != nil {
		return nil, err
	}
	var all []Task
	for _, t := range list {
		state := t.Status.State
		waits := state == swarm.TaskStateNew || state == swarm.TaskStatePending || state == swarm.TaskStateAllocated
		runs := state == swarm.TaskStateAssigned || state == swarm.TaskStateAccepted || state == swarm.TaskStatePreparing ||
			state == swarm.TaskStateReady || state == swarm.TaskStateStarting || state == swarm.TaskStateRunning
		all = append(all, Task{Number: t.Slot, Node: t.NodeID, Done: state == swarm.TaskStateComplete, Alive: waits || runs && ready[t.NodeID], Failed: t.Status.Err})
	}
	return all, nil
}

// RemoveTasks removes a service. Its tasks are told to end.
func (e *Engine) RemoveTasks(ctx context.Context, service string) error {
	ctx, cancel := e.answering(ctx)
	defer cancel()
	return e.api.ServiceRemove(ctx, service)
}

// StopJob ends the tasks of a job that run on this node, which may take so long each. Docker 20.10 lets
// tasks run on that are to be done once, when their service is removed.
func (e *Engine) StopJob(ctx context.Context, job string, grace time.Duration) error {
	with := filters.NewArgs(filters.Arg("label", JobLabel+"="+job), filters.Arg("status", "running"))
	running, err := e.api.ContainerList(ctx, container.ListOptions{Filters: with})
	if err != nil {
		return err
	}
	seconds := int(grace.Seconds())
	var all errgroup.Group
	for _, c := range running {
		all.Go(func() error { return e.api.ContainerStop(ctx, c.ID, container.StopOptions{Timeout: &seconds}) })
	}
	return all.Wait()
}

// RemoveJob removes the containers of the tasks of a job that have ended on this node: Docker 20.10
// keeps those that ended before their service was removed.
func (e *Engine) RemoveJob(ctx context.Context, job string) error {
	ctx, watchdog := watched(ctx, e.limits.answer)
	defer watchdog.end()
	_, err := e.removeContainers(ctx, filters.NewArgs(
		filters.Arg("label", JobLabel+"="+job), filters.Arg("status", "exited"), filters.Arg("status", "dead"), filters.Arg("status", "created"),
	), watchdog.heard)
	return err
}
