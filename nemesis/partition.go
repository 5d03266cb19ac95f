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
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// partition cuts its targets off from its peers: both directions are dropped,
// in the network namespaces of the targets.
type partition struct {
	env Environment
	id  string
	// cuts names for each target the nodes that it is cut off from.
	cuts        map[*clusters.Node][]*clusters.Node
	targets     []*clusters.Node
	inboundOnly bool // drop only what is sent to the targets
	dropped     int64
	// probed counts the packets that our own probe lost.
	probed int64
	// open: a connection across the cut could be made before it.
	open   bool
	healed map[*clusters.Node]bool
	// doubt has the nodes on which an attempt to heal has failed: what the cut had met
	// there is unknown if it is gone all the same.
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

// oneWayKind is a partition in one direction: of a connection, which needs both,
// nothing is left in either case, but a target is still heard for a while that no
// longer hears.
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
		// Where every node is a target, as in a ring, some may be cut off from nobody.
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

// randomPartition cuts off one server, one worker, or half of them all, for longer than a holder
// that is not heard keeps its lock.
func randomPartition(rng *rand.Rand, env Environment, step *Step) {
	if step.Target == "" {
		step.Target = []string{roleOne, roleOneWorker, roleHalves}[rng.IntN(3)]
	}
	step.For = Span{Leases: 1, Plus: env.Silence + time.Second}
}

func (p *partition) Apply(ctx context.Context) (agent.Moment, error) {
	from, to, possible := p.probe()
	p.open = possible && p.try(ctx, from, to) == nil
	return eachNode(p.targets, func(node *clusters.Node) (agent.Moment, error) {
		return node.Host.Cut(ctx, agent.Cut{ID: p.id, Peers: p.addresses(node), InboundOnly: p.inboundOnly})
	})
}

// addresses of those that a target is cut off from.
func (p *partition) addresses(node *clusters.Node) []string {
	var addresses []string
	for _, peer := range p.cuts[node] {
		addresses = append(addresses, peer.IP)
	}
	return addresses
}

// Heal is retried for the nodes on which it failed: the counters of the others
// are gone with their rules.
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

// others is how many packets that are not ours have met the cut; nil if that is not
// known.
func (p *partition) others() *int64 {
	if p.unknown {
		return nil
	}
	dropped := p.dropped - p.probed
	return &dropped
}

// healNode heals a node if there is anything to heal: the cut may have failed, or an
// attempt to heal it have succeeded without a word.
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

// closedPort is one that nobody serves (tcpmux, RFC 1078). A refusal costs one
// packet each way and leaves nothing open, of which later packets would look as if
// others than us had met the rules.
const closedPort = "1"

// try makes an attempt of our own to connect across the cut. Where the answer is what
// gets lost it goes to a port that nobody serves: a server would repeat its answer for
// a minute, long after we have counted what is ours.
func (p *partition) try(ctx context.Context, from, to *clusters.Node) error {
	if !p.inboundOnly {
		return from.Host.Dial(ctx, to.Address, probeTimeout)
	}
	_, err := from.Host.Answer(ctx, net.JoinHostPort(to.IP, closedPort), probeTimeout)
	return err
}

// across chooses a target and a peer of it.
func (p *partition) across() (from, to *clusters.Node) {
	from = p.targets[0] // who has at least one
	return from, p.cuts[from][0]
}

// Prove shows that an attempt to connect across the cut, which was answered before it,
// gets no answer any more.
func (p *partition) Prove(ctx context.Context) (string, error) {
	evidence, err := p.rules(ctx)
	if err != nil || !p.open {
		return evidence, err
	}
	from, to, _ := p.probe()
	err = p.try(ctx, from, to)
	switch {
	case err == nil:
		return "", fmt.Errorf("%s still reaches %s", from.Name, to.Name)
	case !errors.Is(err, agent.ErrNoAnswer):
		return "", fmt.Errorf("the probe from %s to %s failed: %w", from.Name, to.Name, err)
	}
	return fmt.Sprintf("%s cannot connect to %s", from.Name, to.Name), p.countProbe(ctx)
}

// countProbe notes what our own probe added to the counters: a cut that nobody
// else met was not exercised.
func (p *partition) countProbe(ctx context.Context) (err error) {
	p.probed, err = p.met(ctx)
	return err
}

// met is how many packets have met the rules so far.
func (p *partition) met(ctx context.Context) (int64, error) {
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

// rules is the evidence where no connection can tell, because nobody serves a port
// or it could not be made before: the cuts as the kernel lists them.
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

// probe chooses a pair of nodes across the cut, of which one serves a port if it needs one.
func (p *partition) probe() (from, to *clusters.Node, possible bool) {
	if p.inboundOnly {
		from, to = p.across()
		return from, to, true
	}
	for _, target := range p.targets {
		for _, peer := range p.cuts[target] {
			switch {
			case p.env.server(peer):
				return target, peer, true
			case p.env.server(target):
				return peer, target, true
			}
		}
	}
	return nil, nil, false
}

// rulesGone says whether other cuts are in force on the same nodes once ours is
// gone.
func (p *partition) rulesGone(ctx context.Context) (others bool, err error) {
	for _, node := range p.involved() {
		cuts, err := node.Host.Cuts(ctx)
		if err != nil {
			return false, err
		}
		if slices.Contains(cuts, p.id) {
			return false, fmt.Errorf("%s still has its rules", node.Name)
		}
		others = others || len(cuts) > 0
	}
	return others, nil
}

// ProveHealed shows that our rules are gone and a connection can be made, unless
// another cut is in force on the same nodes.
func (p *partition) ProveHealed(ctx context.Context) (string, error) {
	others, err := p.rulesGone(ctx)
	if err != nil {
		return "", err
	}
	from, to, possible := p.probe()
	if others || !possible {
		return "rules gone", nil
	}
	return poll(ctx, func(ctx context.Context) (string, error) {
		switch err := p.try(ctx, from, to); {
		case errors.Is(err, agent.ErrRefused): // a dead server's refusal has come across, too
			return fmt.Sprintf("rules gone, %s is refused by %s", from.Name, to.Name), nil
		case err != nil:
			return "", fmt.Errorf("%s: %w", from.Name, err)
		case p.inboundOnly:
			return fmt.Sprintf("rules gone, %s is answered by %s", from.Name, to.Name), nil
		}
		return fmt.Sprintf("rules gone, %s connects to %s", from.Name, to.Name), nil
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
