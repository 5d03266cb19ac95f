package swarm

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
)

// oneNode makes a swarm of this engine alone for the time of the test.
func oneNode(t *testing.T) *client.Client {
	t.Helper()
	clustertest.Engine(t, clustertest.Rest)
	docker, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = docker.Close() })
	info, err := docker.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Swarm.LocalNodeState != swarm.LocalNodeStateInactive {
		return docker // an existing swarm
	}
	_, err = docker.NetworkInspect(t.Context(), gatewayBridge, network.InspectOptions{})
	hadBridge := err == nil
	if _, err := docker.SwarmInit(t.Context(), swarm.InitRequest{ListenAddr: "127.0.0.1:2377", AdvertiseAddr: "127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := docker.SwarmLeave(ctx, true); err != nil {
			t.Error(err)
		}
		if !hadBridge {
			_ = docker.NetworkRemove(ctx, gatewayBridge)
		}
	})
	return docker
}

// gatewayBridge is a network that Docker creates for swarms and does not remove.
const gatewayBridge = "docker_gwbridge"

// ofJobs lists the containers of tasks in any of the given states.
func ofJobs(t *testing.T, docker *client.Client, states ...string) []container.Summary {
	t.Helper()
	with := filters.NewArgs(filters.Arg("label", engine.JobLabel))
	for _, state := range states {
		with.Add("status", state)
	}
	list, err := docker.ContainerList(t.Context(), container.ListOptions{All: true, Filters: with})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestSwarm runs parts on a real swarm. A killed task is retried, and nothing is left.
func TestSwarm(t *testing.T) {
	docker := oneNode(t)
	job := Job{
		Arguments: []string{"compare", "--locks", "memory", "--faults", "none", "--guards", "none", "--seeds", "2", "--time-limit", "3s"},
		Parts:     2, Folder: t.TempDir(), Binary: clustertest.Binary(t), Progress: t.Logf,
	}
	killed := make(chan error, 1)
	go func() {
		for t.Context().Err() == nil {
			if tasks := ofJobs(t, docker, "running"); len(tasks) > 0 {
				killed <- docker.ContainerKill(t.Context(), tasks[0].ID, "KILL")
				return
			}
			time.Sleep(everySo / 10)
		}
	}()
	parts, err := job.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	if len(parts) != job.Parts {
		t.Errorf("%d parts came back", len(parts))
	}
	for _, part := range parts {
		if runs, err := filepath.Glob(filepath.Join(part, "runs", "*", "2*", "*.json*")); err != nil || len(runs) == 0 {
			t.Errorf("%s: runs %v, %v", part, runs, err)
		}
	}
	for len(ofJobs(t, docker, "running")) > 0 && t.Context().Err() == nil { // the task has only to end
		time.Sleep(everySo / 10)
	}
	if folders, err := filepath.Glob(folderOf("lockcheck-2*", 1)); err != nil || len(folders) > 0 {
		t.Errorf("left on the node: %v, %v", folders, err)
	}
}

// TestInterrupted: nothing of an interrupted job is left.
func TestInterrupted(t *testing.T) {
	docker := oneNode(t)
	interrupt := make(chan struct{})
	job := Job{
		Arguments: []string{"compare", "--locks", "memory", "--faults", "none", "--guards", "none", "--time-limit", "10m"},
		Parts:     1, Folder: t.TempDir(), Binary: clustertest.Binary(t), Progress: t.Logf,
	}
	go func() {
		for t.Context().Err() == nil && len(ofJobs(t, docker, "running")) == 0 {
			time.Sleep(everySo / 10)
		}
		close(interrupt)
	}()
	if parts, err := job.Run(t.Context(), interrupt); err == nil || len(parts) > 0 {
		t.Errorf("parts %v, %v", parts, err)
	}
	if left := ofJobs(t, docker, "running", "exited", "created"); len(left) > 0 {
		t.Errorf("containers of tasks are left: %v", left)
	}
}

// TestNoSwarm: the error says that there is no swarm.
func TestNoSwarm(t *testing.T) {
	docker := clustertest.Engine(t, clustertest.Rest)
	if _, err := docker.Swarm(t.Context()); err == nil {
		t.Skip("this engine has a swarm of its own")
	}
	_, err := Job{Parts: 1, Folder: t.TempDir(), Binary: clustertest.Binary(t), Progress: t.Logf}.Run(t.Context(), nil)
	if err == nil || err.Error() == "" {
		t.Errorf("got %v", err)
	}
}
