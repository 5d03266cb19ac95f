package nemesis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// restart is a planned restart: servers are asked to end, so they may save data, hand over roles and close
// connections. A server that does not end within endLimit is killed, as by "docker stop". With a version it is
// an upgrade or a downgrade.
type restart struct {
	kill
	version string // in which the servers start again; "" for the same
	// stop makes a server end; nil for Node.Stop.
	stop   func(context.Context, *clusters.Node) (agent.Moment, error)
	mu     sync.Mutex
	forced []*clusters.Node // those that were killed
}

// endLimit is the patience of "docker stop".
const endLimit = 10 * time.Second

func restartKind() Kind {
	kills := killKind()
	return Kind{
		Name: history.Restart, Summary: "ask a server to end, as its operator does (SIGTERM), and start it again",
		Target: roleOne, Momentary: true, Uses: []Option{UsesVersion},
		Can: func(env Environment, node *clusters.Node) error {
			if !env.server(node) {
				return errors.New("only servers are restarted; kill ends a worker")
			}
			return kills.Can(env, node)
		},
		New: func(env Environment, order Order) (Fault, error) {
			return &restart{kill: kill{env: env, targets: order.Targets}, version: order.Step.Version}, nil
		},
		Random: randomKill,
	}
}

// Apply returns when the servers have ended. The program of another version is in place before that, as after
// the installation of a package.
func (r *restart) Apply(ctx context.Context) (agent.Moment, error) {
	return eachNode(r.targets, func(node *clusters.Node) (agent.Moment, error) {
		if r.version != "" {
			if err := node.Upgrade(ctx, r.version); err != nil {
				return agent.Moment{}, err
			}
		}
		stop := r.stop
		if stop == nil {
			stop = func(ctx context.Context, node *clusters.Node) (agent.Moment, error) { return node.Stop(ctx) }
		}
		moment, err := stop(ctx, node)
		if err != nil {
			return moment, err
		}
		if !ends(ctx, node) {
			if err := ctx.Err(); err != nil {
				return moment, err
			}
			if _, err := node.Kill(ctx); err != nil {
				return moment, err
			}
			r.mu.Lock()
			r.forced = append(r.forced, node)
			r.mu.Unlock()
		}
		moment.To = history.Now()
		return moment, nil
	})
}

// ends waits until no process is left on a node, and says whether that was within endLimit.
func ends(ctx context.Context, node *clusters.Node) bool {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	for {
		if _, err := noProcess(ctx, node); err == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pollInterval):
		}
	}
}

// Prove says which servers had to be killed.
func (r *restart) Prove(ctx context.Context) (string, error) {
	evidence, err := r.kill.Prove(ctx)
	if err == nil && len(r.forced) > 0 {
		evidence += fmt.Sprintf("; %s killed, because it did not end within %s", describe(r.forced), endLimit)
	}
	return evidence, err
}

// Heal starts the servers again. One that Apply has asked to end, and had no time to wait for, is killed first.
func (r *restart) Heal(ctx context.Context) (Healing, error) {
	for _, node := range r.targets {
		if _, err := noProcess(ctx, node); err == nil || !node.Ending() {
			continue
		}
		if _, err := node.Kill(ctx); err != nil {
			return Healing{}, err
		}
	}
	return r.kill.Heal(ctx)
}

// ProveHealed also asks the servers for their version.
func (r *restart) ProveHealed(ctx context.Context) (string, error) {
	evidence, err := r.kill.ProveHealed(ctx)
	if err != nil || r.version == "" {
		return evidence, err
	}
	_, err = pollEach(ctx, r.targets, func(ctx context.Context, node *clusters.Node) (string, error) {
		version, err := node.Host.Version(ctx)
		if err == nil && version != r.version {
			err = fmt.Errorf("%s has version %s instead of %s", node.Name, version, r.version)
		}
		return version, err
	})
	return evidence + ", version " + r.version, err
}
