package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// Bounds of packet faults. A smaller effect could not be distinguished from a busy machine, and a larger one
// could not be proven within applyTimeout.
const (
	minDelay = 10 * time.Millisecond
	maxDelay = 3 * time.Second
	minRate  = 500
	maxRate  = 50_000
)

// packet drops, delays or slows down packets between its targets and its peers. It is a partition that lets
// some packets through.
type packet struct {
	partition
	cut agent.Cut // without ID and peers
	// usual is the quickest answer to a connection attempt before the fault; 0 if there was none.
	usual time.Duration
}

func packetLossKind() Kind {
	return packetKind(Kind{
		Name: history.PacketLoss, Summary: "drop a share of the packets between the targets and their peers (nftables)",
		Uses: []Option{UsesFrom, UsesLoss},
		Random: func(rng *rand.Rand, env Environment, step *Step) {
			randomPartition(rng, env, step)
			step.Loss = float64(20+rng.IntN(41)) / 100
		},
	}, agent.Cut{Loss: 0.5})
}

func packetDelayKind() Kind {
	return packetKind(Kind{
		Name: history.PacketDelay, Summary: "delay the packets between the targets and their peers, with jitter (NFQUEUE)",
		Uses: []Option{UsesFrom, UsesDelay},
		Random: func(rng *rand.Rand, env Environment, step *Step) {
			randomPartition(rng, env, step)
			randomDelay(rng, step)
		},
	}, agent.Cut{Delay: minDelay})
}

func slowLinkKind() Kind {
	return packetKind(Kind{
		Name: history.SlowLink, Summary: "limit the bytes per second between the targets and their peers (NFQUEUE)",
		Uses: []Option{UsesFrom, UsesRate},
		Random: func(rng *rand.Rand, env Environment, step *Step) {
			randomPartition(rng, env, step)
			step.Rate = 100 * int64(20+rng.IntN(181))
		},
	}, agent.Cut{Rate: minRate})
}

// packetKind completes a kind of packet fault. The sample is a cut of that kind.
func packetKind(kind Kind, sample agent.Cut) Kind {
	kind.Target, kind.New = roleOne, newPacket
	kind.Can = func(env Environment, node *clusters.Node) error {
		if err := hasNetwork(env, node); err != nil || node.Host == nil {
			return err // only a running node can tell what its kernel offers
		}
		ctx, cancel := context.WithTimeout(context.Background(), applyTimeout)
		defer cancel()
		return node.Host.Offers(ctx, sample)
	}
	return kind
}

func newPacket(env Environment, order Order) (Fault, error) {
	base, err := newCut(env, order)
	if err != nil {
		return nil, err
	}
	delay := order.Step.Delay.Of(env.Lease)
	return &packet{partition: *base, cut: agent.Cut{
		Loss: order.Step.Loss, Delay: delay, Jitter: delay / 4, Rate: order.Step.Rate,
	}}, nil
}

// checkPackets checks the packet fields of a step.
func (s *Step) checkPackets(kind Kind) error {
	switch {
	case kind.uses(UsesLoss) && !(s.Loss > 0 && s.Loss < 1):
		return wrong("loss", "must be a share of the packets, between 0 and 1")
	case !kind.uses(UsesLoss) && s.Loss != 0:
		return wrong("loss", "only for %s", history.PacketLoss)
	case kind.uses(UsesDelay) && s.Delay.neverPositive():
		return wrong("delay", "must be positive")
	case !kind.uses(UsesDelay) && !s.Delay.IsZero():
		return wrong("delay", "only for %s and %s", history.PacketDelay, history.SlowDisk)
	case kind.uses(UsesRate) && (s.Rate < minRate || s.Rate > maxRate):
		return wrong("rate", "must be %d to %d bytes per second", minRate, maxRate)
	case !kind.uses(UsesRate) && s.Rate != 0:
		return wrong("rate", "only for %s", history.SlowLink)
	}
	return nil
}

func (p *packet) Apply(ctx context.Context) (agent.Moment, error) {
	p.measure(ctx)
	return eachNode(p.targets, func(node *clusters.Node) (agent.Moment, error) {
		cut := p.cut
		cut.ID, cut.Peers = p.id, p.addresses(node)
		return node.Host.Cut(ctx, cut)
	})
}

// answers is how many consecutive answers make a measurement.
const answers = 3

// measure stores the quickest answer in usual, because a busy machine delays others.
func (p *packet) measure(ctx context.Context) {
	for range answers {
		took, err := p.answer(ctx, probeTimeout)
		if err == nil && (p.usual == 0 || took < p.usual) {
			p.usual = took
		}
	}
}

func (p *packet) answer(ctx context.Context, timeout time.Duration) (time.Duration, error) {
	from, to := p.across()
	return from.Host.Answer(ctx, net.JoinHostPort(to.IP, closedPort), timeout)
}

// Lengths in bytes of the packets of an attempt to connect and its refusal.
const (
	shortest = 40
	longest  = 80
)

// least is the minimum time of an answer while the fault is in force.
func (p *packet) least() time.Duration {
	return 2 * (p.cut.Delay - p.cut.Jitter + p.carries(shortest))
}

// most is the maximum time of an answer on an otherwise unused link.
func (p *packet) most() time.Duration {
	return 2 * (p.cut.Delay + p.cut.Jitter + p.carries(longest))
}

// carries is how long the link takes for some bytes.
func (p *packet) carries(bytes int64) time.Duration {
	if p.cut.Rate == 0 {
		return 0
	}
	return time.Duration(bytes) * time.Second / time.Duration(p.cut.Rate)
}

// Prove shows that our own connection attempt meets the rules: it is lost at some time, or takes longer than
// before.
func (p *packet) Prove(ctx context.Context) (string, error) {
	evidence, err := p.rules(ctx)
	if err != nil {
		return "", err
	}
	switch {
	case p.usual == 0:
		_, _ = p.answer(ctx, probeTimeout) // it is enough that the rules count it
		evidence += ", and no answer before that could tell more"
	case p.cut.Loss > 0:
		evidence, err = p.proveLoss(ctx)
	default:
		evidence, err = p.proveLate(ctx)
	}
	if err != nil {
		return "", err
	}
	if err := p.countProbe(ctx); err != nil {
		return "", err
	}
	if p.probed == 0 {
		return "", errors.New("no packet of ours has met the rules")
	}
	return evidence, nil
}

// lossTimeout is how long all of our packets may pass before the loss counts as unproven.
const lossTimeout = 10 * time.Second

func (p *packet) proveLoss(ctx context.Context) (string, error) {
	from, to := p.across()
	deadline := time.Now().Add(lossTimeout)
	for attempts := 1; ; attempts++ {
		_, err := p.answer(ctx, probeTimeout)
		if err != nil && !errors.Is(err, agent.ErrNoAnswer) {
			return "", fmt.Errorf("the probe from %s to %s failed: %w", from.Name, to.Name, err)
		}
		lost, err := p.countMet(ctx)
		switch {
		case err != nil:
			return "", err
		case lost > 0:
			return fmt.Sprintf("%s lost a packet in attempt %d to connect to %s", from.Name, attempts, to.Name), nil
		case time.Now().After(deadline):
			return "", fmt.Errorf("%s lost no packet in %d attempts to connect to %s", from.Name, attempts, to.Name)
		}
	}
}

const (
	// otherTraffic is how long our probe may wait behind other packets.
	otherTraffic = 2 * time.Second
	// retransmission is when TCP repeats a connection attempt.
	retransmission = time.Second
)

func (p *packet) proveLate(ctx context.Context) (string, error) {
	from, to := p.across()
	if p.usual >= p.least() {
		return "", fmt.Errorf("%s answered %s only after %s before, too late to tell", to.Name, from.Name, p.usual)
	}
	took, err := p.answer(ctx, p.most()+otherTraffic)
	switch {
	case errors.Is(err, agent.ErrNoAnswer) && p.cut.Rate > 0:
		return fmt.Sprintf("%s does not answer %s within %s, %s before", to.Name, from.Name, p.most()+otherTraffic, readable(p.usual)), nil
	case err != nil:
		return "", fmt.Errorf("the probe from %s to %s failed: %w", from.Name, to.Name, err)
	case took < p.least():
		return "", fmt.Errorf("%s answers %s after %s, sooner than %s", to.Name, from.Name, readable(took), p.least())
	case took >= retransmission:
		// TCP sent the probe again. The second answer belongs to this probe too, so wait for it.
		sleepUntil(ctx, time.Now().Add(p.most()))
	}
	return fmt.Sprintf("%s answers %s after %s, %s before", to.Name, from.Name, readable(took), readable(p.usual)), nil
}

// readable drops insignificant digits.
func readable(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// ProveHealed shows that our rules are gone and that connections are answered faster than possible under the
// fault, unless another cut is in force on the same nodes.
func (p *packet) ProveHealed(ctx context.Context) (string, error) {
	others, err := p.rulesGone(ctx)
	if err != nil {
		return "", err
	}
	if len(others) > 0 || p.usual == 0 {
		return "rules gone", nil
	}
	limit := probeTimeout
	if p.usual < p.least() {
		limit = min(limit, p.least())
	}
	return poll(ctx, func(ctx context.Context) (string, error) { return p.answersWithin(ctx, limit) })
}

// answersWithin reports whether all answers take less than the limit.
func (p *packet) answersWithin(ctx context.Context, limit time.Duration) (string, error) {
	from, to := p.across()
	slowest := time.Duration(0)
	for range answers {
		took, err := p.answer(ctx, probeTimeout)
		if err != nil {
			return "", fmt.Errorf("%s: %w", from.Name, err)
		}
		slowest = max(slowest, took)
	}
	if slowest >= limit {
		return "", fmt.Errorf("%s answers %s only after %s", to.Name, from.Name, readable(slowest))
	}
	return fmt.Sprintf("rules gone, %s answers %s after %s", to.Name, from.Name, readable(slowest)), nil
}
