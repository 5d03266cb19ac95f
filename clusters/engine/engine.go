// Package engine is the only place that talks to Docker. It handles containers, networks, volumes and images,
// labelled with the run that they belong to, and knows nothing of locks.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	"golang.org/x/sync/errgroup"
)

// Labels on everything that a run creates.
const (
	RunLabel   = "lockcheck.run"   // identity of the run
	OwnerLabel = "lockcheck.owner" // process that started the run, in the format of internal/cleanup
)

// JobLabel is on a swarm service and on the containers of its tasks. Its value is the name of their job.
const JobLabel = "lockcheck.job"

// UnavailableError says that no Docker engine answers, or that an engine answers only some requests.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return "no Docker engine: " + e.Err.Error() }
func (e *UnavailableError) Unwrap() error { return e.Err }

// Engine is a connection to a Docker engine.
type Engine struct {
	api *client.Client
	limits
}

// connectTimeout bounds the first requests to an engine.
const connectTimeout = 10 * time.Second

// errElsewhere refuses an engine on another machine: agents there would stamp events with another clock.
var errElsewhere = errors.New("DOCKER_HOST names one on another machine, whose clock is not ours: run lockcheck there")

// Connect finds the engine by DOCKER_HOST, or else at Docker's default socket; it ignores the contexts of the
// docker command. The engine must be on this machine. Connect can check that only for an ssh:// address, which
// it refuses. Its error is an *UnavailableError.
func Connect(ctx context.Context) (*Engine, error) {
	if strings.HasPrefix(os.Getenv(client.EnvOverrideHost), "ssh://") {
		return nil, &UnavailableError{Err: errElsewhere}
	}
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, &UnavailableError{Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := checkUsable(ctx, api); err != nil {
		_ = api.Close()
		return nil, &UnavailableError{Err: err}
	}
	return &Engine{api: api, limits: usualLimits()}, nil
}

// checkUsable returns why an engine is unusable. Docker 20.10 can deadlock its networks for good (see
// removeContainers) and still answer everything else.
func checkUsable(ctx context.Context, api *client.Client) error {
	if _, err := api.Ping(ctx); err != nil {
		return unavailableReason(err, api.DaemonHost())
	}
	_, err := api.NetworkList(ctx, network.ListOptions{Filters: filters.NewArgs(filters.Arg("label", RunLabel))})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the one at %s answers, but not when it is asked for its networks: restart it", api.DaemonHost())
	}
	return err
}

// unavailableReason says briefly why an engine does not answer.
func unavailableReason(err error, host string) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("this user may not use the one at %s", host)
	case client.IsErrConnectionFailed(err):
		return fmt.Errorf("none answers at %s", host)
	}
	return err
}

// Close ends the connection.
func (e *Engine) Close() error { return e.api.Close() }

// BySocket says whether the engine is reached through a Unix socket of this machine.
func (e *Engine) BySocket() bool { return strings.HasPrefix(e.api.DaemonHost(), "unix://") }

// Version describes the engine's version for people.
func (e *Engine) Version(ctx context.Context) (string, error) {
	v, err := e.api.ServerVersion(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s (API %s, %s %s)", v.Version, e.api.ClientVersion(), v.Os, v.Arch), nil
}

// creationContext returns the context for a request that creates something. It outlives ctx: the engine would finish an
// abandoned request, perhaps only after the run was removed.
func (e *Engine) creationContext(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := e.answerContext(context.WithoutCancel(ctx))
	return ctx, cancel, nil
}

// CreateVolume makes an empty volume.
func (e *Engine) CreateVolume(ctx context.Context, name string, labels map[string]string) error {
	ctx, cancel, err := e.creationContext(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	_, err = e.api.VolumeCreate(ctx, volume.CreateOptions{Name: name, Labels: labels})
	return err
}

// Run identifies a run that has left objects on the engine.
type Run struct{ ID, Owner string }

// Runs lists the runs that have left anything on the engine.
func (e *Engine) Runs(ctx context.Context) ([]Run, error) {
	ctx, cancel := e.answerContext(ctx)
	defer cancel()
	found := make(map[Run]bool)
	note := func(labels map[string]string) {
		if id := labels[RunLabel]; id != "" {
			found[Run{ID: id, Owner: labels[OwnerLabel]}] = true
		}
	}
	with := filters.NewArgs(filters.Arg("label", RunLabel))
	containers, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: with})
	if err != nil {
		return nil, err
	}
	for _, c := range containers {
		note(c.Labels)
	}
	networks, err := e.api.NetworkList(ctx, network.ListOptions{Filters: with})
	if err != nil {
		return nil, err
	}
	for _, n := range networks {
		note(n.Labels)
	}
	volumes, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: with})
	if err != nil {
		return nil, err
	}
	for _, v := range volumes.Volumes {
		note(v.Labels)
	}
	return slices.Collect(maps.Keys(found)), nil
}

// RemoveRun removes everything that carries the run's label, and returns how many objects that was. An object
// that is already gone is no error. An object that cannot be removed is an error, but the others are still
// removed, unless the error is a *SilentError.
func (e *Engine) RemoveRun(ctx context.Context, id string) (int, error) {
	ctx, watchdog := watched(ctx, e.limits.answer)
	defer watchdog.end()
	with := filters.NewArgs(filters.Arg("label", RunLabel+"="+id))
	containers, err := e.removeContainers(ctx, with, watchdog.heard)
	networks, networksErr := e.removeNetworks(ctx, with, watchdog.heard)
	volumes, volumesErr := e.removeVolumes(ctx, with, watchdog.heard)
	err = errors.Join(err, networksErr, volumesErr)
	if silent := new(SilentError); errors.As(context.Cause(ctx), &silent) {
		err = silent // once, not once per remaining object
	}
	return containers + networks + volumes, err
}

func (e *Engine) removeNetworks(ctx context.Context, with filters.Args, heard func()) (int, error) {
	networks, err := e.api.NetworkList(ctx, network.ListOptions{Filters: with})
	return removeEach(networks, err, heard, func(n network.Summary) (string, error) {
		return "network " + n.Name, e.api.NetworkRemove(ctx, n.ID)
	})
}

func (e *Engine) removeVolumes(ctx context.Context, with filters.Args, heard func()) (int, error) {
	volumes, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: with})
	return removeEach(volumes.Volumes, err, heard, func(v *volume.Volume) (string, error) {
		return "volume " + v.Name, e.api.VolumeRemove(ctx, v.Name, true)
	})
}

// removeEach removes the listed things. err says why the list may be incomplete.
func removeEach[T any](things []T, err error, heard func(), remove func(T) (what string, err error)) (removed int, _ error) {
	for _, thing := range things {
		was, why := removal(remove(thing))
		removed, err = removed+was, errors.Join(err, why)
		heard()
	}
	return removed, err
}

// removal counts an object that was removed. A conflict means that the object is in use and stays. It does not
// mean, as it does for containers, that another removal is under way.
func removal(what string, err error) (removed int, _ error) {
	switch {
	case err == nil:
		return 1, nil
	case errdefs.IsNotFound(err):
		return 0, nil
	case errdefs.IsConflict(err), errdefs.IsPermissionDenied(err): // the engine's answer for networks
		return 0, fmt.Errorf("%s is in use: stop the container that uses it: %w", what, err)
	}
	return 0, fmt.Errorf("%s: %w", what, err)
}

// removeContainers removes first, several at a time, the containers that share another container's network, and
// then the others one by one. Docker 20.10 can deadlock for good when two containers leave a network at the
// same time. The container that leaves locks the network and then its controller; the container that is deleted
// locks them in the opposite order.
func (e *Engine) removeContainers(ctx context.Context, with filters.Args, heard func()) (int, error) {
	containers, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: with})
	if err != nil {
		return 0, err
	}
	var removed atomic.Int64
	errs := make([]error, len(containers))
	var guests errgroup.Group
	guests.SetLimit(removedAtOnce)
	remove := func(i int) {
		var gone bool
		if gone, errs[i] = e.removeContainer(ctx, containers[i].ID); gone {
			removed.Add(1)
		}
		heard()
	}
	guest := func(i int) bool {
		return container.NetworkMode(containers[i].HostConfig.NetworkMode).IsContainer()
	}
	for i := range containers {
		if guest(i) {
			guests.Go(func() error { remove(i); return nil })
		}
	}
	_ = guests.Wait() // before the containers whose networks they share
	for i := range containers {
		if !guest(i) {
			remove(i)
		}
	}
	return int(removed.Load()), errors.Join(errs...)
}

// removedAtOnce bounds how many containers are removed at a time.
const removedAtOnce = 4

func (e *Engine) removeContainer(ctx context.Context, id string) (removed bool, err error) {
	err = e.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsConflict(err) {
		// Another removal is under way. The network cannot be removed before it is done.
		err = e.awaitRemoved(ctx, id)
	}
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// removalPatience is how long another process may take to remove a container.
const removalPatience = 10 * time.Second

func (e *Engine) awaitRemoved(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, removalPatience)
	defer cancel()
	status, failed := e.api.ContainerWait(ctx, id, container.WaitConditionRemoved)
	select {
	case <-status:
		return nil
	case err := <-failed:
		return fmt.Errorf("somebody else is to remove the container: %w", err)
	}
}
