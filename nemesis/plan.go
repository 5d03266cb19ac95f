package nemesis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
)

// Plan returns why the schedule cannot be executed here, before anything is done. A role that only the run can
// resolve is checked on every node that it may mean.
func (n *Nemesis) Plan() error {
	for i, step := range n.Schedule.Steps {
		if _, known := KindByName(step.Fault); !known {
			return &UnknownKindError{Name: step.Fault}
		}
		err := step.fits(n.Environment.Lease)
		var nobody *UnknownNodeError
		if _, unresolved := n.possible(step); err == nil && errors.As(unresolved, &nobody) {
			err = nobody
		}
		if err != nil {
			return &StepError{i, step.ID, err}
		}
	}
	for i, step := range n.Schedule.Steps {
		if n.unsupported(step) != nil {
			continue // the step may be left out
		}
		if err := n.hopeless(step); err != nil {
			return &StepError{i, step.ID, err}
		}
	}
	for _, unsupported := range n.Unsupported() {
		return unsupported
	}
	return nil
}

// Unsupported lists the steps whose faults are not supported here, with the reasons.
func (n *Nemesis) Unsupported() []*UnsupportedError {
	var all []*UnsupportedError
	for _, step := range n.Schedule.Steps {
		if err := n.unsupported(step); err != nil {
			all = append(all, err)
		}
	}
	return all
}

func (n *Nemesis) unsupported(step Step) *UnsupportedError {
	kind, known := KindByName(step.Fault)
	if !known {
		return nil
	}
	if err := n.lacksMoment(step); err != nil {
		return &UnsupportedError{Step: step.ID, Fault: step.Fault, Where: step.Target, Err: fmt.Errorf("when: %s never comes: %w", step.When, err)}
	}
	nodes, err := n.possible(step)
	if err != nil {
		return &UnsupportedError{Step: step.ID, Fault: step.Fault, Where: step.Target, Err: err}
	}
	if step.Target == roleLeader || step.Target == roleFollower {
		if n.Environment.Leader == nil && !slices.ContainsFunc(n.Environment.Servers, canLead) {
			return &UnsupportedError{Step: step.ID, Fault: step.Fault, Where: step.Target, Err: agent.ErrNoLeader}
		}
		// The leader may be any server that supports the fault; only the run can tell.
		nodes = resolver{can: n.can(step)}.able(nodes)
	}
	for _, node := range nodes {
		if err := kind.Can(n.Environment, node); err != nil {
			return &UnsupportedError{Step: step.ID, Fault: step.Fault, Where: node.Name, Err: err}
		}
	}
	return nil
}

// Why a moment never comes.
var (
	errNoQueue = errors.New("no attempt waits for its turn")
	// ErrNoRenewals is why no renewal is ever in flight.
	ErrNoRenewals = errors.New("no worker renews, or the client does not report its renewals")
)

// lacksMoment says why the moment of a step never comes; nil if it can.
func (n *Nemesis) lacksMoment(step Step) error {
	switch {
	case step.When == WhenQueued && !n.Environment.Queues:
		return errNoQueue
	case step.When == WhenRenewing && !n.Environment.Renews:
		return ErrNoRenewals
	case step.OfMessage():
		return n.lacksMessages(step)
	case step.When == WhenFailover && !slices.ContainsFunc(n.Environment.Servers, canLead):
		return agent.ErrNoLeader
	}
	return nil
}

// canLead says whether a server's kind has a leader.
func canLead(node *clusters.Node) bool {
	_, can := node.Server.Probes.(agent.LeaderProbe)
	return can
}

// possible lists the nodes that a step may affect.
func (n *Nemesis) possible(step Step) ([]*clusters.Node, error) {
	r := resolver{env: n.Environment, rng: n.anyOrder(), can: n.can(step)}
	targets, err := r.anyOf(step.Target)
	if err != nil {
		return nil, err
	}
	if step.From != "" {
		peers, err := r.anyOf(step.From)
		return slices.Concat(targets, peers), err
	}
	cuts, err := r.cuts(step, targets)
	return slices.Concat(targets, peersIn(cuts, targets)), err
}

// anyOrder is a random source for checks that only ask which nodes a role may mean.
func (n *Nemesis) anyOrder() *rand.Rand { return rand.New(rand.NewPCG(n.Schedule.Seed, 1)) }

// peersIn lists the nodes that the targets are separated from.
func peersIn(cuts map[*clusters.Node][]*clusters.Node, targets []*clusters.Node) []*clusters.Node {
	var peers []*clusters.Node
	for _, target := range targets {
		for _, peer := range cuts[target] {
			if !slices.Contains(peers, peer) {
				peers = append(peers, peer)
			}
		}
	}
	return peers
}

// can returns a function that says why the step's fault cannot be inflicted on a node.
func (n *Nemesis) can(step Step) func(*clusters.Node) error {
	kind, known := KindByName(step.Fault)
	if !known {
		return nil
	}
	return func(node *clusters.Node) error { return kind.Can(n.Environment, node) }
}

// UnsupportedError says that a fault is not supported on this cluster.
type UnsupportedError struct {
	Step, Fault string
	Where       string // node or role
	Err         error
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("fault %s is not supported on %s: %v", e.Fault, e.Where, e.Err)
}

func (e *UnsupportedError) Unwrap() error { return e.Err }
