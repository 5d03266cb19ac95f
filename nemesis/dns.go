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

// dnsFailure removes the names of peers from the hosts file, and drops what the name servers answer to any question, also
// about other names. Connections that exist go on. It is exercised when the target asks a name server anything.
type dnsFailure struct{ staleDNS }

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

func dnsFailureKind() Kind {
	kind := staleDNSKind()
	kind.Name, kind.Summary = history.DNSFailure, "let lookups of the names of peers on the targets get no answer"
	kind.New = func(env Environment, order Order) (Fault, error) {
		fault, err := staleDNSKind().New(env, order)
		if err != nil {
			return nil, err
		}
		return &dnsFailure{*fault.(*staleDNS)}, nil
	}
	return kind
}

func (s *staleDNS) Apply(ctx context.Context) (agent.Moment, error) {
	return s.rename(ctx, func(addresses []string) agent.Cut {
		return agent.Cut{ID: s.id, Peers: []string{agent.UnusedAddress}, Moved: addresses}
	})
}

func (d *dnsFailure) Apply(ctx context.Context) (agent.Moment, error) {
	return d.rename(ctx, func(addresses []string) agent.Cut { return agent.Cut{ID: d.id, Unnamed: addresses} })
}

// rename makes a cut on each target for the addresses of its peers.
func (s *staleDNS) rename(ctx context.Context, cut func(addresses []string) agent.Cut) (agent.Moment, error) {
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
		return node.Host.Cut(ctx, cut(s.addresses(node)))
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

// Prove shows that no peer has a name in the hosts file, and that the name server, which resolvers ask next, does not
// answer. One name is enough for the question: the rules do not distinguish names.
func (d *dnsFailure) Prove(ctx context.Context) (string, error) {
	if _, err := d.rules(ctx); err != nil {
		return "", err
	}
	var evidence []string
	for _, node := range d.targets {
		lines, err := d.linesOfPeers(ctx, node)
		if err == nil && len(lines) > 0 {
			err = errors.New("it still resolves " + strings.Join(lines, ", "))
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", node.Name, err)
		}
		name := strings.Fields(d.before[node][0])[1]
		d.probed++ // not counted from the rules: a resolver that has asked by now may wait for longer than the fault lasts
		if err = node.Host.AskDNS(ctx, name, probeTimeout); !errors.Is(err, agent.ErrNoAnswer) {
			return "", errors.Join(fmt.Errorf("the name server of %s still answers", node.Name), err)
		}
		evidence = append(evidence, fmt.Sprintf("%s gets no answer to a lookup of %s", node.Name, name))
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
