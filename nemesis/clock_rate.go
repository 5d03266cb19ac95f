package nemesis

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// clockRate lets the wall clock of servers run fast or slow, and puts it back to true time
// at the end. The monotonic clock and the clock of the machine stay as they are.
type clockRate struct {
	targets []*clusters.Node
	speed   float64 // seconds that the clock tells a second
}

// Bounds of the speed of a clock. A clock that is nearer to true speed than NTP slews one
// (500 ppm) could not be told from a true one within the time of a proof.
const (
	minSpeed     = 0.1
	maxSpeed     = 10.0
	minDeviation = 0.0004
)

func clockRateKind() Kind {
	kind := clockKind()
	kind.Name, kind.Summary = history.ClockRate, "let the wall clock of a server run fast or slow for a while"
	kind.Uses = []Option{UsesSpeed}
	kind.New = func(_ Environment, order Order) (Fault, error) {
		return &clockRate{targets: order.Targets, speed: order.Step.Speed}, nil
	}
	// Twice as fast ends leases after half of their time, half as fast keeps them twice as long.
	kind.Random = func(rng *rand.Rand, _ Environment, step *Step) {
		step.Speed = []float64{0.5, 2, 2}[rng.IntN(3)]
		step.For = Span{Leases: 2, Plus: time.Second}
	}
	return kind
}

// checkSpeed tells what is wrong with what a step says of the speed of a clock.
func (s *Step) checkSpeed(kind Kind) error {
	switch {
	case !kind.uses(UsesSpeed) && s.Speed != 0:
		return wrong("speed", "only for %s", history.ClockRate)
	case kind.uses(UsesSpeed) && !(s.Speed >= minSpeed && s.Speed <= maxSpeed):
		return wrong("speed", "must be %g to %g seconds a second", minSpeed, maxSpeed)
	case kind.uses(UsesSpeed) && math.Abs(s.Speed-1) < minDeviation:
		return wrong("speed", "must be %g off true speed at least, or it could not be proven", minDeviation)
	}
	return nil
}

func (c *clockRate) Apply(ctx context.Context) (agent.Moment, error) { return c.set(ctx, c.speed) }

func (c *clockRate) Heal(ctx context.Context) (Healing, error) {
	moment, err := c.set(ctx, 1)
	return Healing{Moment: moment}, err
}

func (c *clockRate) set(ctx context.Context, speed float64) (agent.Moment, error) {
	return eachNode(c.targets, func(node *clusters.Node) (agent.Moment, error) {
		return node.Host.SetClockRate(ctx, speed)
	})
}

// Prove asks each server for its time again and again, until it has told two times that are
// certainly not those of a true clock: any two, for some answers come late.
func (c *clockRate) Prove(ctx context.Context) (string, error) {
	told := make(map[*clusters.Node][]agent.Reading)
	return pollEach(ctx, c.targets, func(ctx context.Context, node *clusters.Node) (string, error) {
		last, err := node.Host.Clock(ctx)
		if err != nil {
			return "", err
		}
		err = fmt.Errorf("%s was asked only once", node.Name)
		for _, first := range told[node] {
			var evidence string
			if evidence, err = judgeSpeed(node.Name, first, last, c.speed); err == nil {
				return evidence, nil
			}
		}
		told[node] = append(told[node], last)
		return "", err
	})
}

// speedTolerance is how far the speed of a clock may be off the one that was asked for: the
// monotonic clock that it is compared with is slewed, too.
const speedTolerance = 0.0001

// judgeSpeed says how fast a clock ran between two readings, by the monotonic clock of the
// host. It is an error as long as that could be true speed, and if it is not the wanted one.
func judgeSpeed(name string, first, last agent.Reading, want float64) (string, error) {
	told := last.Server.Sub(first.Server)
	unsure := unit(first.Server, last.Server)
	least, most := time.Duration(last.Asked.From-first.Asked.To), time.Duration(last.Asked.To-first.Asked.From)
	if least <= 0 {
		return "", fmt.Errorf("%s: asked only once", name)
	}
	low, high := (told-unsure).Seconds()/most.Seconds(), (told+unsure).Seconds()/least.Seconds()
	evidence := fmt.Sprintf("%s told %.6f s within %.6f s: %.4f to %.4f s a second", name, told.Seconds(), most.Seconds(), low, high)
	if low > want+speedTolerance || high < want-speedTolerance {
		return "", fmt.Errorf("%s, not %g", evidence, want)
	}
	if low <= 1 && high >= 1 {
		return "", fmt.Errorf("%s, which may be true speed", evidence)
	}
	return evidence, nil
}

// unit is the one in which servers told some times: the largest of which all of them are whole numbers, or
// that they are in the middle of. Servers cut off what is below their unit, or a probe has put back
// half of it, so that each of them looked at its clock at most one unit from what it told. Times that happen to
// be such of a larger unit only make this too careful.
func unit(told ...time.Time) time.Duration {
	for _, unit := range []time.Duration{time.Second, time.Millisecond} {
		if !slices.ContainsFunc(told, func(t time.Time) bool { return t.Nanosecond()%int(unit/2) != 0 }) {
			return unit
		}
	}
	return time.Microsecond
}

// ProveHealed waits until each server itself tells the true time, as exactly as it can be asked.
func (c *clockRate) ProveHealed(ctx context.Context) (string, error) {
	return pollEach(ctx, c.targets, func(ctx context.Context, node *clusters.Node) (string, error) {
		reading, err := node.Host.Clock(ctx)
		if err != nil {
			return "", err
		}
		return judgeTrue(node.Name, reading)
	})
}

// certainOffset is how far the clock of a server is ahead of true time, at least and at most, whatever
// it may have cut off.
func certainOffset(reading agent.Reading) (low, high time.Duration) {
	low, high = reading.Offset()
	after := unit(reading.Server)
	before := time.Duration(reading.Server.Nanosecond() % int(after)) // half a unit, or nothing
	return low - before, high + after - before
}

func judgeTrue(name string, reading agent.Reading) (string, error) {
	low, high := reading.Offset()
	evidence := fmt.Sprintf("%s tells %s, %+.6f to %+.6f s from true time",
		name, reading.Server.Format("15:04:05.000000"), low.Seconds(), high.Seconds())
	if low, high := certainOffset(reading); low > 0 || high < 0 {
		return "", fmt.Errorf("%s", evidence)
	}
	return evidence, nil
}
