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

// clockRate lets the wall clock of servers run fast or slow, and sets it to true time at the end. The monotonic
// clock and the machine's clock never move.
type clockRate struct {
	targets []*clusters.Node
	speed   float64 // seconds of the clock per second
}

// Bounds of a clock's speed. NTP slews clocks by up to 500 ppm. A smaller deviation than minDeviation could not
// be distinguished from true speed within the time of a proof.
const (
	minSpeed     = 0.1
	maxSpeed     = 10.0
	minDeviation = 0.0004
)

func clockRateKind() Kind {
	kind := clockKind()
	kind.Name, kind.Summary = history.ClockRate, "let the wall clock of the target run fast or slow for a while"
	kind.Uses = []Option{UsesSpeed}
	kind.New = func(_ Environment, order Order) (Fault, error) {
		return &clockRate{targets: order.Targets, speed: order.Step.Speed}, nil
	}
	// Double speed ends leases after half of their time, half speed lengthens them to twice their time.
	kind.Random = func(rng *rand.Rand, _ Environment, step *Step) {
		step.Speed = []float64{0.5, 2, 2}[rng.IntN(3)]
		step.For = Span{Leases: 2, Plus: time.Second}
	}
	return kind
}

// checkSpeed checks the field speed of a step.
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

// Prove reads each server's clock repeatedly until two of the readings cannot come from a true clock. Any two
// readings count, because some answers come late.
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

// speedTolerance is how far the measured speed may be off the wanted one. The monotonic clock of the comparison
// is slewed, too.
const speedTolerance = 0.0001

// judgeSpeed computes the speed of a clock between two readings, relative to the host's monotonic clock. It is
// an error if that may be true speed, or is not the wanted speed.
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

// unit is the unit in which a server reports its time: the largest of which all the given times are whole
// multiples, or midpoints. A server truncates to its unit, and a probe may have added half of it. So the server
// read its clock at most one unit from the reported time. Times that happen to fit a larger unit only make the
// proof stricter.
func unit(told ...time.Time) time.Duration {
	for _, unit := range []time.Duration{time.Second, time.Millisecond} {
		if !slices.ContainsFunc(told, func(t time.Time) bool { return t.Nanosecond()%int(unit/2) != 0 }) {
			return unit
		}
	}
	return time.Microsecond
}

// ProveHealed waits until each server reports true time, as exactly as it can be read.
func (c *clockRate) ProveHealed(ctx context.Context) (string, error) {
	return pollEach(ctx, c.targets, func(ctx context.Context, node *clusters.Node) (string, error) {
		reading, err := node.Host.Clock(ctx)
		if err != nil {
			return "", err
		}
		return judgeTrue(node.Name, reading)
	})
}

// certainOffset bounds how far a server's clock is ahead of true time, including what the server may have
// truncated.
func certainOffset(reading agent.Reading) (low, high time.Duration) {
	low, high = reading.Offset()
	after := unit(reading.Server)
	before := time.Duration(reading.Server.Nanosecond() % int(after)) // half a unit if the probe added it, else 0
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
