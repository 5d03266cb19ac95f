package nemesis

import (
	"context"
	"fmt"
	"strings"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// freeze stops its targets with the freezer of their control group, as a container runtime, an orchestrator or
// the suspension of a virtual machine does. Unlike a pause it sends no signal that a program could notice.
type freeze struct {
	env     Environment
	targets []*clusters.Node
}

func freezeKind() Kind {
	return Kind{
		Name: history.Freeze, Summary: "stop all processes of the target by the freezer of its control group",
		Target: roleHolder,
		Can:    func(_ Environment, node *clusters.Node) error { return node.CanFreeze() },
		New: func(env Environment, order Order) (Fault, error) {
			return &freeze{env: env, targets: order.Targets}, nil
		},
		Random: randomPause,
	}
}

func (f *freeze) Apply(ctx context.Context) (agent.Moment, error) {
	return eachNode(f.targets, func(node *clusters.Node) (agent.Moment, error) { return node.Freeze(ctx) })
}

func (f *freeze) Heal(ctx context.Context) (Healing, error) {
	moment, err := eachNode(f.targets, func(node *clusters.Node) (agent.Moment, error) { return node.Thaw(ctx) })
	return Healing{Moment: moment}, err
}

func (f *freeze) Prove(ctx context.Context) (string, error) { return f.states(ctx, true) }

func (f *freeze) ProveHealed(ctx context.Context) (string, error) { return f.states(ctx, false) }

// states waits until all targets are frozen, or none is.
func (f *freeze) states(ctx context.Context, frozen bool) (string, error) {
	return pollEach(ctx, f.targets, func(ctx context.Context, node *clusters.Node) (string, error) {
		return f.state(ctx, node, frozen)
	})
}

// state compares the answers of the engine, of the kernel and, for a server, of the server itself.
func (f *freeze) state(ctx context.Context, node *clusters.Node, frozen bool) (string, error) {
	is, err := node.Frozen(ctx)
	switch {
	case err != nil:
		return "", err
	case is != frozen:
		return "", fmt.Errorf("%s: frozen is %t", node.Name, is)
	}
	threads, kept, err := threadStates(ctx, node)
	switch server := f.env.server(node); {
	case err != nil:
		return "", err
	// The kernel may hide where a server's threads wait, but the server can be asked.
	case frozen && server && strings.Contains(threads, "R"), frozen && !server && !kept, !frozen && kept:
		return "", fmt.Errorf("%s: its threads are in states %s", node.Name, threads)
	case frozen && server && !kept: // if only a connection can be tested the kernel would still accept it
		err = silent(ctx, node)
	}
	return fmt.Sprintf("%s: frozen is %t, threads %s", node.Name, is, threads), err
}

// silent checks that a server does not answer.
func silent(ctx context.Context, node *clusters.Node) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if node.Host.Ready(ctx) == nil {
		return fmt.Errorf("%s still answers", node.Name)
	}
	return nil
}

// threadStates returns the states of all threads of a node, one letter each, and whether the freezer keeps all
// of them.
func threadStates(ctx context.Context, node *clusters.Node) (states string, kept bool, err error) {
	processes, err := node.Host.Processes(ctx)
	if err != nil {
		return "", false, err
	}
	kept = true
	for _, p := range processes {
		states, kept = states+p.States, kept && p.Frozen
	}
	if states == "" {
		return "", false, fmt.Errorf("%s has no process", node.Name)
	}
	return states, kept, nil
}
