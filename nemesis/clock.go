package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// clock moves the wall clock of servers or workers, and back to true time at the end. The monotonic clock and the
// machine's clock never move.
type clock struct {
	targets []*clusters.Node
	step    time.Duration
}

// clockTolerance is how far a clock may be off its target. It covers servers that report whole seconds.
const clockTolerance = 1100 * time.Millisecond

// SmallestClockStep is the smallest step, forward or back, that can be distinguished from no step.
const SmallestClockStep = 2 * clockTolerance

func clockKind() Kind {
	return Kind{
		Name: history.Clock, Summary: "move the wall clock of the target, forward or back, for a while",
		Target: roleOne, Uses: []Option{UsesStep},
		Can:    canMoveClock,
		New:    newClock,
		Random: randomClock,
	}
}

// errWorkerClock is why the wall clock of a worker is left alone.
var errWorkerClock = errors.New("the client of this lock does not look at its wall clock, so nothing would change")

// canMoveClock says why the wall clock of a node cannot be moved. Replicas of an application take the place of workers,
// but on Docker each is started as a server is.
func canMoveClock(env Environment, node *clusters.Node) error {
	if node.Clock == nil && !env.server(node) && node.Server.Program == "" && !env.WallClocks {
		return errWorkerClock
	}
	return node.Clock
}

func newClock(env Environment, order Order) (Fault, error) {
	step := order.Step.Step.Of(env.Lease)
	if step.Abs() < SmallestClockStep {
		return nil, fmt.Errorf("a step of %s is too small to be proven; it needs %s", step, SmallestClockStep)
	}
	return &clock{targets: order.Targets, step: step}, nil
}

// randomClock moves the clock by more than the lease, forward twice as often as back. A forward step ends
// leases early; a step back only lengthens them.
func randomClock(rng *rand.Rand, _ Environment, step *Step) {
	plus := 3*time.Second + time.Duration(rng.Int64N(int64(10*time.Second)))
	step.Step = Span{Leases: 1, Plus: plus}
	if rng.IntN(3) == 0 {
		step.Step = Span{Leases: -1, Plus: -plus}
	}
	step.For = Span{Leases: 1, Plus: time.Second}
}

func (c *clock) Apply(ctx context.Context) (agent.Moment, error) { return c.set(ctx, c.step) }

func (c *clock) Heal(ctx context.Context) (Healing, error) {
	moment, err := c.set(ctx, 0)
	return Healing{Moment: moment}, err
}

func (c *clock) set(ctx context.Context, offset time.Duration) (agent.Moment, error) {
	return eachNode(c.targets, func(node *clusters.Node) (agent.Moment, error) {
		return node.Host.SetClock(ctx, offset)
	})
}

func (c *clock) Prove(ctx context.Context) (string, error) { return c.read(ctx, c.step) }

func (c *clock) ProveHealed(ctx context.Context) (string, error) { return c.read(ctx, 0) }

// read waits until each target reports its time at the wanted offset.
func (c *clock) read(ctx context.Context, want time.Duration) (string, error) {
	return pollEach(ctx, c.targets, func(ctx context.Context, node *clusters.Node) (string, error) {
		reading, err := node.Host.Clock(ctx)
		if err != nil {
			return "", err
		}
		return judgeReading(node.Name, reading, want)
	})
}

func judgeReading(name string, reading agent.Reading, want time.Duration) (string, error) {
	low, high := reading.Offset()
	evidence := fmt.Sprintf("%s tells %s, %+.3f s from true time",
		name, reading.Server.Format("15:04:05.000"), low.Seconds())
	if low > want+clockTolerance || high < want-clockTolerance {
		return "", fmt.Errorf("%s, not %+.3f s", evidence, want.Seconds())
	}
	if low, high := certainOffset(reading); want != 0 && low <= 0 && high >= 0 {
		return "", fmt.Errorf("%s or later, which may be true time: the answer took %.3f s", evidence, reading.After.Sub(reading.Before).Seconds())
	}
	return evidence, nil
}
