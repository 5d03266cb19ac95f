package nemesis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// partition cuts its targets off from its peers, in both directions, in the network namespaces of the targets.
type partition struct {
	env Environment
	id  string
	// cuts lists for each target the nodes that it is cut off from.
	cuts        map[*clusters.Node][]*clusters.Node
	targets     []*clusters.Node
	inboundOnly bool // drop only packets to the targets
	dropped     int64
	// probed counts the packets of our own probes that the cut dropped.
	probed int64
	// open has the probes that were answered before the cut. They must be answered again after it.
	open   map[probe]bool
	healed map[*clusters.Node]bool
	// doubt has the nodes on which an attempt to heal has failed. If the cut is gone there nevertheless, its
	// counters are unknown.
	doubt   map[*clusters.Node]bool
	unknown bool
}

func partitionKind() Kind {
	return Kind{
		Name: history.Partition, Summary: "drop all packets between the targets and their peers (nftables)",
		Target: roleOne, Uses: []Option{UsesFrom},
		Can: hasNetwork, New: newPartition, Random: randomPartition,
	}
}

// oneWayKind is a partition in one direction. A connection needs both directions, so it breaks in either case.
// But for a while the target's packets still arrive although it receives none.
func oneWayKind() Kind {
	kind := partitionKind()
	kind.Name, kind.Summary = history.OneWay, "drop the packets from the peers to the targets, but not those back (nftables)"
	kind.New = func(env Environment, order Order) (Fault, error) {
		fault, err := newPartition(env, order)
		if err == nil {
			fault.(*partition).inboundOnly = true
		}
		return fault, err
	}
	return kind
}

func newCut(env Environment, order Order) (*partition, error) {
	if len(order.Peers) == 0 {
		return nil, errors.New("there is nobody to be cut off from: name somebody else than the targets with the key from")
	}
	return cutBy(env, order), nil
}

func cutBy(env Environment, order Order) *partition {
	return &partition{
		env: env, id: order.ID, cuts: order.Cuts,
		// If every node is a target, as in a ring, some may be cut off from no other node.
		targets: slices.DeleteFunc(slices.Clone(order.Targets), func(n *clusters.Node) bool { return len(order.Cuts[n]) == 0 }),
		healed:  make(map[*clusters.Node]bool),
		doubt:   make(map[*clusters.Node]bool),
	}
}

// hasNetwork says why a node cannot be cut off; nil if it can.
func hasNetwork(_ Environment, node *clusters.Node) error {
	if node.IP == "" {
		return errors.New("it has no network of its own")
	}
	return nil
}

func newPartition(env Environment, order Order) (Fault, error) {
	p, err := newCut(env, order)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// randomPartition cuts off one server, one worker, or half of all nodes, for longer than a silent holder keeps
// its lock.
func randomPartition(rng *rand.Rand, env Environment, step *Step) {
	if step.Target == "" {
		step.Target = []string{roleOne, roleOneWorker, roleHalves}[rng.IntN(3)]
	}
	step.For = Span{Leases: 1, Plus: env.Silence + time.Second}
}

func (p *partition) Apply(ctx context.Context) (agent.Moment, error) {
	p.recordOpen(ctx)
	return eachNode(p.targets, func(node *clusters.Node) (agent.Moment, error) {
		return node.Host.Cut(ctx, agent.Cut{ID: p.id, Peers: p.addresses(node), InboundOnly: p.inboundOnly})
	})
}

// addresses are the addresses of the nodes that a target is cut off from.
func (p *partition) addresses(node *clusters.Node) []string {
	var addresses []string
	for _, peer := range p.cuts[node] {
		addresses = append(addresses, peer.IP)
	}
	return addresses
}

// Heal is retried only for the nodes on which it failed, because the counters of the others are gone with their
// rules.
func (p *partition) Heal(ctx context.Context) (Healing, error) {
	moment := agent.Moment{}
	for _, node := range p.targets {
		if p.healed[node] {
			continue
		}
		m, dropped, err := p.healNode(ctx, node)
		if err != nil {
			return Healing{}, fmt.Errorf("%s: %w", node.Name, err)
		}
		p.healed[node] = true
		p.dropped += dropped
		moment = agent.Moment{From: cmp.Or(moment.From, m.From), To: max(moment.To, m.To)}
	}
	return Healing{Moment: moment, Dropped: p.others()}, nil
}

// others is how many packets besides our probes have met the cut; nil if unknown.
func (p *partition) others() *int64 {
	if p.unknown {
		return nil
	}
	dropped := p.dropped - p.probed
	return &dropped
}

// healNode heals a node if its cut exists. The cut may have failed, or an earlier attempt to heal may have
// succeeded without an answer.
func (p *partition) healNode(ctx context.Context, node *clusters.Node) (agent.Moment, int64, error) {
	cuts, err := node.Host.Cuts(ctx)
	if err != nil {
		return agent.Moment{}, 0, err
	}
	if !slices.Contains(cuts, p.id) {
		p.unknown = p.unknown || p.doubt[node]
		return agent.Moment{}, 0, nil
	}
	moment, dropped, err := node.Host.Heal(ctx, p.id)
	p.doubt[node] = err != nil
	return moment, dropped, err
}

// probeTimeout is how long a connection may take before it counts as cut off.
const probeTimeout = 300 * time.Millisecond

// closedPort is a port on which nothing listens (tcpmux, RFC 1078), so that any node can be probed, whether it
// serves or not. A refusal costs one packet each way and leaves no connection open. Later packets of a
// connection would be counted as other traffic.
const closedPort = "1"

// probesAtOnce bounds concurrent probes. It covers the largest usual clusters, so a proof takes one
// probeTimeout.
const probesAtOnce = 64

// probe is our own attempt to connect from one node to another.
type probe struct{ from, to *clusters.Node }

func (p probe) try(ctx context.Context) error {
	_, err := p.from.Host.Answer(ctx, net.JoinHostPort(p.to.IP, closedPort), probeTimeout)
	return err
}

// tryAll makes all probes and returns the error of each; nil for one that was answered.
func tryAll(ctx context.Context, probes []probe) []error {
	results := make([]error, len(probes))
	free := make(chan struct{}, probesAtOnce)
	var all sync.WaitGroup
	for i, probe := range probes {
		free <- struct{}{}
		all.Go(func() {
			results[i] = probe.try(ctx)
			<-free
		})
	}
	all.Wait()
	return results
}

// describeProbes names each pair once, and groups nodes with the same peers: "n1, n2 cannot reach w1, w2; n3
// cannot reach w1".
func describeProbes(probes []probe, verb string) string {
	var from []*clusters.Node
	to := make(map[*clusters.Node][]*clusters.Node)
	for _, p := range probes {
		if to[p.from] == nil {
			from = append(from, p.from)
		}
		to[p.from] = append(to[p.from], p.to)
	}
	var clauses []string
	for len(from) > 0 {
		others := to[from[0]]
		var alike, rest []*clusters.Node
		for _, node := range from {
			if slices.Equal(to[node], others) {
				alike = append(alike, node)
			} else {
				rest = append(rest, node)
			}
		}
		clauses = append(clauses, fmt.Sprintf("%s %s %s", describe(alike), verb, describe(others)))
		from = rest
	}
	return strings.Join(clauses, "; ")
}

// probes lists the probes of all pairs that are to be cut. With inboundOnly only the target asks, and the
// answer is dropped. Otherwise each side asks the other. Both nodes of a pair may be targets, and each probe is
// listed once.
func (p *partition) probes() []probe {
	var all []probe
	known := make(map[probe]bool)
	add := func(one probe) {
		if !known[one] {
			known[one] = true
			all = append(all, one)
		}
	}
	for _, target := range p.targets {
		for _, peer := range p.cuts[target] {
			add(probe{target, peer})
			if !p.inboundOnly {
				add(probe{peer, target})
			}
		}
	}
	return all
}

// recordOpen stores which probes are answered before the cut. The others prove nothing later: another cut may be in
// force, or the nodes may never have been able to connect.
func (p *partition) recordOpen(ctx context.Context) {
	p.open = make(map[probe]bool)
	probes := p.probes()
	for i, err := range tryAll(ctx, probes) {
		if err == nil {
			p.open[probes[i]] = true
		}
	}
}

// across chooses a target and one of its peers.
func (p *partition) across() (from, to *clusters.Node) {
	from = p.targets[0] // every target has at least one peer
	return from, p.cuts[from][0]
}

// Prove shows for every pair of the cut that a connection attempt, which was answered before, gets no answer
// now. For a pair without an answer before, as under another cut, only the rules can be checked. But an answer
// now disproves the cut there, too.
func (p *partition) Prove(ctx context.Context) (string, error) {
	if _, err := p.rules(ctx); err != nil {
		return "", err
	}
	probes := p.probes()
	var reached, cut, unanswered []probe
	for i, err := range tryAll(ctx, probes) {
		switch probe := probes[i]; {
		case err == nil:
			reached = append(reached, probe)
		case !p.open[probe]:
			unanswered = append(unanswered, probe)
		case errors.Is(err, agent.ErrNoAnswer):
			cut = append(cut, probe)
		default:
			return "", fmt.Errorf("the probe from %s to %s failed: %w", probe.from.Name, probe.to.Name, err)
		}
	}
	if err := p.countProbe(ctx); err != nil {
		return "", err
	}
	if len(reached) > 0 {
		return "", errors.New(describeProbes(reached, "can still reach"))
	}
	var evidence []string
	if len(cut) > 0 {
		evidence = append(evidence, describeProbes(cut, "cannot reach"))
	}
	if len(unanswered) > 0 {
		evidence = append(evidence, "rules in place, although "+describeProbes(unanswered, "could not reach")+" before")
	}
	return strings.Join(evidence, "; "), nil
}

// countProbe stores what our own probes added to the counters, because a cut that no other packet met was not
// exercised.
func (p *partition) countProbe(ctx context.Context) (err error) {
	p.probed, err = p.countMet(ctx)
	return err
}

// countMet is how many packets have met the rules so far.
func (p *partition) countMet(ctx context.Context) (int64, error) {
	all := int64(0)
	for _, node := range p.targets {
		met, err := node.Host.Dropped(ctx, p.id)
		if err != nil {
			return 0, err
		}
		all += met
	}
	return all, nil
}

// rules checks that the kernel of each target lists the cut.
func (p *partition) rules(ctx context.Context) (string, error) {
	for _, node := range p.targets {
		cuts, err := node.Host.Cuts(ctx)
		if err != nil {
			return "", err
		}
		if !slices.Contains(cuts, p.id) {
			return "", fmt.Errorf("%s has no rules for it", node.Name)
		}
	}
	return "rules in place", nil
}

// rulesGone checks that our cut is gone and lists the nodes on which other cuts are in force.
func (p *partition) rulesGone(ctx context.Context) (others map[*clusters.Node]bool, err error) {
	others = make(map[*clusters.Node]bool)
	for _, node := range p.involved() {
		cuts, err := node.Host.Cuts(ctx)
		if err != nil {
			return nil, err
		}
		if slices.Contains(cuts, p.id) {
			return nil, fmt.Errorf("%s still has its rules", node.Name)
		}
		if len(cuts) > 0 {
			others[node] = true
		}
	}
	return others, nil
}

// ProveHealed shows that our rules are gone, and that every pair that could connect before can connect again,
// unless another cut is in force on one of its nodes.
func (p *partition) ProveHealed(ctx context.Context) (string, error) {
	answered := make(map[probe]bool)
	return poll(ctx, func(ctx context.Context) (string, error) {
		others, err := p.rulesGone(ctx) // each time, because another cut may begin meanwhile
		if err != nil {
			return "", err
		}
		waiting := slices.DeleteFunc(p.probes(), func(one probe) bool {
			return !p.open[one] || answered[one] || others[one.from] || others[one.to]
		})
		var left []probe
		var last error
		for i, err := range tryAll(ctx, waiting) {
			if err != nil {
				left, last = append(left, waiting[i]), err
			} else {
				answered[waiting[i]] = true
			}
		}
		if len(left) > 0 {
			return "", fmt.Errorf("%s: %w", describeProbes(left, "cannot reach"), last)
		}
		shown := slices.DeleteFunc(p.probes(), func(one probe) bool { return !answered[one] })
		if len(shown) == 0 {
			return "rules gone", nil
		}
		return "rules gone; " + describeProbes(shown, "can reach"), nil
	})
}

// involved lists targets and peers.
func (p *partition) involved() []*clusters.Node {
	nodes := slices.Clone(p.targets)
	for _, target := range p.targets {
		for _, peer := range p.cuts[target] {
			if !slices.Contains(nodes, peer) {
				nodes = append(nodes, peer)
			}
		}
	}
	return nodes
}

// names lists the names of nodes.
func names(nodes []*clusters.Node) []string {
	var list []string
	for _, node := range nodes {
		list = append(list, node.Name)
	}
	return list
}

// describe names nodes in a sentence.
func describe(nodes []*clusters.Node) string { return strings.Join(names(nodes), ", ") }
