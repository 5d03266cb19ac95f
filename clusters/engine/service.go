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

// Swarm is the swarm that this engine manages.
type Swarm struct {
	Node    string // ID of this node
	Address string // under which the swarm knows this node
	Nodes   int    // that accept tasks
}

var errNoSwarm = errors.New("this Docker engine manages no swarm: make one by docker swarm init, or run this on a manager")

// Swarm describes the swarm of the engine. It fails if the engine manages no swarm.
func (e *Engine) Swarm(ctx context.Context) (Swarm, error) {
	ctx, cancel := e.answerContext(ctx)
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

// Tasks is a swarm service that runs each of its tasks once. Tasks use the network of their node, because tasks
// of a swarm cannot share its process numbers.
type Tasks struct {
	Name    string
	Image   string
	Command []string
	// Env and Hostname may contain the number of the task, counted from 0, as {{.Task.Slot}}.
	Env      []string
	Hostname string
	Job      string   // see JobLabel
	Mounts   []string // paths of nodes, as "source:target"
	Count    int
	AtOnce   int
	// Node is the only node that runs tasks; "" for any node, at most one task a node at a time.
	Node string
	// OnEachNode runs one task on every node, in place of Count.
	OnEachNode bool
	// Grace is how long a task may take to end after it was asked to.
	Grace time.Duration
}

// mostFailures is how often a failed task is retried.
const mostFailures = 2

// StartTasks creates the service. The swarm retries a task that fails or whose node is gone.
func (e *Engine) StartTasks(ctx context.Context, t Tasks) (id string, err error) {
	ctx, cancel, err := e.creationContext(ctx)
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
	Node   string // that runs the task; "" until it is assigned
	Done   bool   // it has completed
	// Alive: the task waits for a node to accept it, or runs on a node that is ready.
	Alive bool
	// Failed is the swarm's reason why the task failed or has to wait; "" for none.
	Failed string
}

// TasksOf lists the attempts at the tasks of a service.
func (e *Engine) TasksOf(ctx context.Context, service string) ([]Task, error) {
	ctx, cancel := e.answerContext(ctx)
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

// RemoveTasks removes a service, which asks its tasks to end.
func (e *Engine) RemoveTasks(ctx context.Context, service string) error {
	ctx, cancel := e.answerContext(ctx)
	defer cancel()
	return e.api.ServiceRemove(ctx, service)
}

// StopJob ends the tasks of a job that run on this node. Each may take up to grace. It is needed because Docker
// 20.10 lets tasks of a run-once service continue when the service is removed.
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

// RemoveJob removes the ended containers of a job from this node. Docker 20.10 keeps containers that ended
// before their service was removed.
func (e *Engine) RemoveJob(ctx context.Context, job string) error {
	ctx, watchdog := watched(ctx, e.limits.answer)
	defer watchdog.end()
	_, err := e.removeContainers(ctx, filters.NewArgs(
		filters.Arg("label", JobLabel+"="+job), filters.Arg("status", "exited"), filters.Arg("status", "dead"), filters.Arg("status", "created"),
	), watchdog.heard)
	return err
}
