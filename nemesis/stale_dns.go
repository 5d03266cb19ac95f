package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// staleDNS makes the names of peers point to an address where nobody is, as an old DNS record does after a failover.
// Connections that exist go on. It is exercised when the target sends a packet to that address.
type staleDNS struct{ partition }

func staleDNSKind() Kind {
	return Kind{
		Name: history.StaleDNS, Summary: "let the targets resolve the names of their peers to an address where nobody is",
		Target: roleOneWorker, Uses: []Option{UsesFrom},
		Can: func(env Environment, node *clusters.Node) error {
			if !env.Names {
				return errors.New("it is given addresses, and looks up no names")
			}
			return hasNetwork(env, node)
		},
		New: func(env Environment, order Order) (Fault, error) {
			cut, err := newCut(env, order)
			if err != nil {
				return nil, err
			}
			return &staleDNS{*cut}, nil
		},
		Random: randomPartition,
	}
}

func (s *staleDNS) Apply(ctx context.Context) (agent.Moment, error) {
	return eachNode(s.targets, func(node *clusters.Node) (agent.Moment, error) {
		return node.Host.Cut(ctx, agent.Cut{ID: s.id, Peers: []string{agent.UnusedAddress}, Moved: s.addresses(node)})
	})
}

// Prove shows that no name of a target has the address of a peer, and that some have the unused one.
func (s *staleDNS) Prove(ctx context.Context) (string, error) {
	if _, err := s.rules(ctx); err != nil {
		return "", err
	}
	var evidence []string
	for _, node := range s.targets {
		stale, right, err := s.names(ctx, node)
		switch {
		case err != nil:
			return "", err
		case len(right) > 0:
			return "", fmt.Errorf("%s resolves %s", node.Name, strings.Join(right, "; "))
		case len(stale) == 0:
			return "", fmt.Errorf("%s has no names of %s", node.Name, describe(s.cuts[node]))
		}
		evidence = append(evidence, node.Name+" resolves "+strings.Join(stale, "; "))
	}
	return strings.Join(evidence, "; "), nil
}

// ProveHealed shows that the rules are gone, and that names have the addresses of the peers again.
func (s *staleDNS) ProveHealed(ctx context.Context) (string, error) {
	if _, err := s.rulesGone(ctx); err != nil {
		return "", err
	}
	for _, node := range s.targets {
		if _, right, err := s.names(ctx, node); err != nil || len(right) == 0 {
			return "", errors.Join(fmt.Errorf("%s does not resolve the names of %s", node.Name, describe(s.cuts[node])), err)
		}
	}
	return "rules gone; names resolve as before", nil
}

// names lists the names of a target that have the unused address, and those that have the address of a peer.
func (s *staleDNS) names(ctx context.Context, node *clusters.Node) (stale, right []string, err error) {
	lines, err := node.Host.Names(ctx)
	for _, line := range lines {
		address, names, _ := strings.Cut(line, " ")
		switch {
		case address == agent.UnusedAddress:
			stale = append(stale, names+" to "+address)
		case slices.Contains(s.addresses(node), address):
			right = append(right, names+" to "+address)
		}
	}
	return stale, right, err
}
