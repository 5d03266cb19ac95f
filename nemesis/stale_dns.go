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
type staleDNS struct {
	partition
	before map[*clusters.Node][]string // by target: the lines of its hosts file for its peers
}

func staleDNSKind() Kind {
	return Kind{
		Name: history.StaleDNS, Summary: "let the targets resolve the names of their peers to an address where nobody is",
		Target: roleOneWorker, Uses: []Option{UsesFrom},
		Can: func(env Environment, node *clusters.Node) error {
			if !env.Names {
				return errors.New("only the nodes of an application look up names")
			}
			return hasNetwork(env, node)
		},
		New: func(env Environment, order Order) (Fault, error) {
			cut, err := newCut(env, order)
			if err != nil {
				return nil, err
			}
			return &staleDNS{*cut, make(map[*clusters.Node][]string)}, nil
		},
		Random: randomPartition,
	}
}

func (s *staleDNS) Apply(ctx context.Context) (agent.Moment, error) {
	for _, node := range s.targets {
		lines, err := s.linesOfPeers(ctx, node)
		if err == nil && len(lines) == 0 {
			err = errors.New("it has no names of " + describe(s.cuts[node]))
		}
		if err != nil {
			return agent.Moment{}, fmt.Errorf("%s: %w", node.Name, err)
		}
		s.before[node] = lines
	}
	return eachNode(s.targets, func(node *clusters.Node) (agent.Moment, error) {
		return node.Host.Cut(ctx, agent.Cut{ID: s.id, Peers: []string{agent.UnusedAddress}, Moved: s.addresses(node)})
	})
}

// Prove shows that every name that had the address of a peer has the unused one.
func (s *staleDNS) Prove(ctx context.Context) (string, error) {
	if _, err := s.rules(ctx); err != nil {
		return "", err
	}
	var evidence []string
	for _, node := range s.targets {
		lines, err := node.Host.Names(ctx)
		if err != nil {
			return "", err
		}
		for _, line := range s.before[node] {
			_, names, _ := strings.Cut(line, " ")
			if !slices.Contains(lines, agent.UnusedAddress+" "+names) {
				return "", fmt.Errorf("%s does not resolve %s to %s", node.Name, names, agent.UnusedAddress)
			}
			evidence = append(evidence, fmt.Sprintf("%s resolves %s to %s", node.Name, names, agent.UnusedAddress))
		}
	}
	return strings.Join(evidence, "; "), nil
}

// ProveHealed shows that the rules are gone, and that the names have the addresses that they had before.
func (s *staleDNS) ProveHealed(ctx context.Context) (string, error) {
	if _, err := s.rulesGone(ctx); err != nil {
		return "", err
	}
	for node := range s.before { // the others were left as they are
		if lines, err := s.linesOfPeers(ctx, node); err != nil || !slices.Equal(lines, s.before[node]) {
			return "", errors.Join(fmt.Errorf("%s does not resolve the names of %s as before", node.Name, describe(s.cuts[node])), err)
		}
	}
	return "rules gone; names resolve as before", nil
}

// linesOfPeers lists the names of a target that have the addresses of its peers.
func (s *staleDNS) linesOfPeers(ctx context.Context, node *clusters.Node) ([]string, error) {
	lines, err := node.Host.Names(ctx)
	return slices.DeleteFunc(lines, func(line string) bool {
		address, _, _ := strings.Cut(line, " ")
		return !slices.Contains(s.addresses(node), address)
	}), err
}
