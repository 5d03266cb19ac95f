// Package clientcheck checks the client of a lock against servers that it starts.
package clientcheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lockcheck/clients"
	"lockcheck/clients/conformance"
	"lockcheck/clusters"
	"lockcheck/clusters/engine"
	"lockcheck/internal/cleanup"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/workloads"
)

// Command is the hidden subcommand of lockcheck that runs conformance.Serve.
const Command = "client-check"

// closeTimeout bounds the removal of everything that the check started.
const closeTimeout = time.Minute

// Of describes a client that runs on this machine against the embedded service. The caller fills in its
// program.
func Of(d clients.Definition) (lockfile.Lock, error) {
	servers, known := clusters.ByName("memory")
	if !known {
		return lockfile.Lock{}, errors.New("there is no embedded service")
	}
	return lockfile.Lock{Info: d.Info(), Servers: servers, Definition: &d}, nil
}

// Check starts the servers of a lock, checks its client next to them, and removes everything that it started,
// even when ctx is done. It calls each with each result. The error is a *runs.UsageError, or says why the
// check could not be completed.
func Check(ctx context.Context, lock lockfile.Lock, binary string, progress runs.Progress, each func(conformance.Result)) (report conformance.Report, err error) {
	switch {
	case lock.Definition == nil:
		return report, runs.Usagef("%s is a lock of lockcheck's own, whose client does not speak the protocol; name the lock file of your own client", lock.Info.Name)
	case lock.Definition.Wraps:
		return report, runs.Usagef("%s is a command that wraps its child (client.wrap), which does not speak the protocol; test it at once, with lockcheck test --lock and this file", lock.Info.Name)
	}
	docker := lock.Servers.OnDocker()
	if docker {
		if err := runs.ReadyForDocker(ctx, binary); err != nil {
			return report, err
		}
	}
	me, err := cleanup.Self()
	if err != nil {
		return report, err
	}
	id, err := cleanup.NewID(time.Now())
	if err != nil {
		return report, err
	}
	// Start the reaper first. If a check were killed in between, its journal would stay.
	reaper, err := cleanup.StartReaper(binary, id, docker)
	if err != nil {
		return report, err
	}
	journal, err := cleanup.OpenJournal(id, me, docker)
	if err != nil {
		return report, errors.Join(err, reaper.Dismiss())
	}
	cluster, err := clusters.Start(ctx, clusters.Request{
		Run: id, Spec: lock.Servers, Binary: binary, Image: lock.Servers.Replacement(),
		Labels:   map[string]string{engine.RunLabel: id, engine.OwnerLabel: me.String()},
		Progress: progress.Step, Status: progress.Status, Launch: journal.Start, RegisterFolder: journal.Folder,
	})
	if err == nil {
		progress.Step("checking the client")
		report, err = follow(ctx, cluster, lock, each)
	}
	return report, errors.Join(err, remove(ctx, id, cluster, journal, reaper))
}

// follow runs the check in the cluster.
func follow(ctx context.Context, cluster clusters.Cluster, lock lockfile.Lock, each func(conformance.Result)) (conformance.Report, error) {
	config := conformance.Config{Definition: *lock.Definition, Folder: cluster.Folder()}
	for _, node := range cluster.Servers() {
		if !node.Server.Hidden {
			config.Nodes = append(config.Nodes, node.Address)
		}
	}
	node, err := cluster.Start(ctx, clusters.Program{Name: "w1", Image: lock.Image, Networked: true, Args: []string{Command}})
	if err != nil {
		return conformance.Report{}, err
	}
	if err := workloads.Configure(node.Input, config); err != nil {
		return conformance.Report{}, fmt.Errorf("%w; %s", err, node.Errors)
	}
	// The process ends when its input ends, and with the process its output.
	stop := context.AfterFunc(ctx, func() { _ = node.Input.Close() })
	defer stop()
	report, err := conformance.Follow(node.Output, each)
	if err != nil {
		return report, errors.Join(ctx.Err(), fmt.Errorf("%w; %s", err, node.Errors.All()))
	}
	_ = node.Input.Close() // the process may have ended already
	return report, nil
}

// remove removes everything that was started, as a run does.
func remove(ctx context.Context, id string, cluster clusters.Cluster, journal *cleanup.Journal, reaper *cleanup.Reaper) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	var err error
	if cluster != nil {
		err = cluster.Close(limited)
	}
	if err != nil || cluster == nil || ctx.Err() != nil {
		// The engine may still carry out a request that was cut short. The reaper looks again until nothing
		// new appears.
		err = errors.Join(err, journal.Close())
		if reaper.Abandon() == nil {
			return nil
		}
		return errors.Join(err, errors.New("the reaper could not remove everything; run lockcheck clean"))
	}
	// A process that a client has left behind is not our child.
	return errors.Join(cleanup.End(id), journal.Remove(), reaper.Dismiss())
}
