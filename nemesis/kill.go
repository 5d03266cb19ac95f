package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// kill ends all processes of its targets at once with SIGKILL, as a crash or the out-of-memory killer does. A
// server or a replica of an application is restarted with its address and its disk. A worker stays dead, like a
// client machine that is gone.
type kill struct {
	env     Environment
	targets []*clusters.Node
	// losePower: the targets' disks lose power as well.
	losePower bool
}

func killKind() Kind {
	return Kind{
		Name: history.Kill, Summary: "end all processes of the target (SIGKILL); a server or a replica is started again, a worker is not",
		Target: roleOne, Momentary: true,
		Can: func(env Environment, node *clusters.Node) error {
			if !env.server(node) {
				return nil
			}
			if err := node.CanRestart(); err != nil {
				return fmt.Errorf("%w; workers can be killed, as in kill:holder", err)
			}
			return nil
		},
		New: func(env Environment, order Order) (Fault, error) {
			return &kill{env: env, targets: order.Targets}, nil
		},
		Random: randomKill,
	}
}

// randomKill leaves a server dead for less than most leases as often as for longer. State that a restart
// forgets matters only while a client still relies on it.
func randomKill(rng *rand.Rand, _ Environment, step *Step) {
	step.For = Span{Plus: 200*time.Millisecond + time.Duration(rng.Int64N(int64(2800*time.Millisecond)))}
}

func (k *kill) Apply(ctx context.Context) (agent.Moment, error) {
	return eachNode(k.targets, func(node *clusters.Node) (agent.Moment, error) {
		if k.losePower {
			return node.LosePower(ctx)
		}
		return node.Kill(ctx)
	})
}

// Prove waits until no process is left on the targets.
func (k *kill) Prove(ctx context.Context) (string, error) { return pollEach(ctx, k.targets, noProcess) }

func noProcess(ctx context.Context, node *clusters.Node) (string, error) {
	processes, err := node.Host.Processes(ctx)
	if err != nil {
		return "", err
	}
	if len(processes) > 0 {
		return "", fmt.Errorf("%s: %s[%d] still runs", node.Name, processes[0].Command, processes[0].PID)
	}
	return node.Name + " has no process", nil
}

func someProcess(ctx context.Context, node *clusters.Node) (string, error) {
	processes, err := node.Host.Processes(ctx)
	if err != nil {
		return "", err
	}
	if len(processes) == 0 {
		return "", fmt.Errorf("%s has no process", node.Name)
	}
	return node.Name + " runs again", nil
}

// Heal restarts the servers. A retry restarts those that failed to start.
func (k *kill) Heal(ctx context.Context) (Healing, error) {
	moment, err := eachNode(k.restarted(), func(node *clusters.Node) (agent.Moment, error) {
		return node.Restart(ctx)
	})
	return Healing{Moment: moment}, err
}

// restarted lists the targets that are restarted.
func (k *kill) restarted() []*clusters.Node { return k.those(true) }

// dead lists the targets that stay dead.
func (k *kill) dead() []*clusters.Node { return k.those(false) }

func (k *kill) those(restart bool) []*clusters.Node {
	return slices.DeleteFunc(slices.Clone(k.targets), func(n *clusters.Node) bool { return (n.CanRestart() == nil) != restart })
}

const (
	// restartLimit is how long a server may take to become ready again. A Galera server took more than a minute
	// on a busy machine.
	restartLimit = 2 * time.Minute
	// disturbedLimit is how long a server that other faults may keep from serving gets to become ready. After
	// that it is enough that its process runs.
	disturbedLimit = 5 * time.Second
)

// ProveHealed waits until servers serve again, and checks that workers stay dead.
func (k *kill) ProveHealed(ctx context.Context) (string, error) {
	var seen []string
	for _, node := range k.restarted() {
		evidence, err := k.serves(ctx, node)
		if err != nil {
			return "", err
		}
		seen = append(seen, evidence)
	}
	if len(k.dead()) > 0 {
		if _, err := pollEach(ctx, k.dead(), noProcess); err != nil {
			return "", err
		}
		seen = append(seen, describe(k.dead())+" dead and not restarted")
	}
	return strings.Join(seen, "; "), nil
}

// serves waits until a server is ready again. A replica of an application only has to run, because its
// readiness cannot be asked.
func (k *kill) serves(ctx context.Context, node *clusters.Node) (string, error) {
	if !k.env.server(node) {
		return pollEach(ctx, []*clusters.Node{node}, someProcess)
	}
	ctx, cancel := context.WithTimeout(ctx, restartLimit)
	defer cancel()
	begin := time.Now()
	for {
		if err := node.Revive(ctx); err != nil {
			return "", err
		}
		err := node.Host.Ready(ctx)
		took := time.Since(begin).Round(time.Millisecond)
		if err == nil {
			return fmt.Sprintf("%s is ready again after %s", node.Name, took), nil
		}
		if took > disturbedLimit {
			if evidence, runs := k.runs(ctx, node); runs {
				return evidence, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%s is not ready again: %w", node.Name, err)
		case <-time.After(10 * pollInterval):
		}
	}
}

// runs accepts a server that runs and is not ready, if other faults may be the reason.
func (k *kill) runs(ctx context.Context, node *clusters.Node) (evidence string, yes bool) {
	if processes, err := node.Host.Processes(ctx); err != nil || len(processes) == 0 {
		return "", false
	}
	if why := disturbedAmong(ctx, k.env.Servers); why != "" {
		return fmt.Sprintf("%s runs again, but cannot be ready while %s", node.Name, why), true
	}
	return "", false
}

// disturbedAmong names a fault on any of the servers, "" for none. A server may not become ready while others
// of its cluster are faulty.
func disturbedAmong(ctx context.Context, servers []*clusters.Node) string {
	for _, server := range servers {
		if why := disturbed(ctx, server); why != "" {
			return why
		}
	}
	return ""
}

// disturbed names the fault that a server is under; "" for none.
func disturbed(ctx context.Context, node *clusters.Node) string {
	cuts, err := node.Host.Cuts(ctx)
	if err != nil {
		return ""
	}
	processes, err := node.Host.Processes(ctx)
	switch {
	case err != nil:
	case len(cuts) > 0:
		return node.Name + " is cut off"
	case len(processes) == 0:
		return node.Name + " is dead"
	case processes[0].Stopped:
		return node.Name + " is stopped"
	case node.DiskFaulty():
		return node.Name + " has a faulty disk"
	}
	if frozen, err := node.Frozen(ctx); err == nil && frozen {
		return node.Name + " is frozen"
	}
	return ""
}
