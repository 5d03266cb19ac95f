package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// pause stops all processes of its targets with SIGSTOP. It has the effect of a long garbage collection, a
// swapped-out page or a stopped virtual machine.
type pause struct{ targets []*clusters.Node }

func pauseKind() Kind {
	return Kind{
		Name: history.Pause, Summary: "stop all processes of the target (SIGSTOP), then let them go on",
		Target: roleHolder,
		Can:    func(Environment, *clusters.Node) error { return nil },
		New: func(_ Environment, order Order) (Fault, error) {
			return &pause{targets: order.Targets}, nil
		},
		Random: randomPause,
	}
}

// randomPause outlasts the lease, or the connection in place of a lease, unless the length is given. Shorter
// pauses have no effect.
func randomPause(rng *rand.Rand, env Environment, step *Step) {
	if env.Pause > 0 {
		step.For = Span{Plus: env.Pause}
		return
	}
	half := UsualPause(0) / 2
	step.For = Span{Leases: 1, Plus: env.Silence + half + time.Duration(rng.Int64N(int64(2*half)))}
}

// UsualPause is the approximate length of random pauses for a lease, unless the length is given.
func UsualPause(lease time.Duration) time.Duration { return lease + time.Second }

func (p *pause) Apply(ctx context.Context) (agent.Moment, error) { return p.signal(ctx, agent.Stop) }

func (p *pause) Heal(ctx context.Context) (Healing, error) {
	moment, err := p.signal(ctx, agent.Continue)
	return Healing{Moment: moment}, err
}

func (p *pause) signal(ctx context.Context, signal agent.Signal) (agent.Moment, error) {
	return eachNode(p.targets, func(node *clusters.Node) (agent.Moment, error) {
		return node.Host.Signal(ctx, signal)
	})
}

func (p *pause) Prove(ctx context.Context) (string, error) { return p.states(ctx, true) }

func (p *pause) ProveHealed(ctx context.Context) (string, error) { return p.states(ctx, false) }

// states waits until every process of every target is stopped, or none is.
func (p *pause) states(ctx context.Context, stopped bool) (string, error) {
	return pollEach(ctx, p.targets, func(ctx context.Context, node *clusters.Node) (string, error) {
		return processStates(ctx, node, stopped)
	})
}

func processStates(ctx context.Context, node *clusters.Node, stopped bool) (string, error) {
	processes, err := node.Host.Processes(ctx)
	if err != nil {
		return "", err
	}
	if len(processes) == 0 {
		return "", fmt.Errorf("%s has no process", node.Name)
	}
	var states []string
	for _, p := range processes {
		state := fmt.Sprintf("%s[%d] %s", p.Command, p.PID, p.States)
		if p.Stopped != stopped {
			return "", fmt.Errorf("%s: %s", node.Name, state)
		}
		states = append(states, state)
	}
	return node.Name + ": " + strings.Join(states, ", "), nil
}

// pollInterval and pollTimeout bound the wait for evidence.
const (
	pollInterval = time.Millisecond
	pollTimeout  = 5 * time.Second
)

// poll asks until there is no error, or until it took too long. The error is that of the last complete
// question, because a cancelled one says nothing.
func poll(ctx context.Context, ask func(context.Context) (string, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	var last error
	for {
		answer, err := ask(ctx)
		if err == nil {
			return answer, nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return "", last
		case <-time.After(pollInterval):
		}
	}
}

// pollEach polls one node after the other, and joins their evidence.
func pollEach(ctx context.Context, nodes []*clusters.Node, ask func(context.Context, *clusters.Node) (string, error)) (string, error) {
	var seen []string
	for _, node := range nodes {
		evidence, err := poll(ctx, func(ctx context.Context) (string, error) { return ask(ctx, node) })
		if err != nil {
			return "", err
		}
		seen = append(seen, evidence)
	}
	return strings.Join(seen, "; "), nil
}
