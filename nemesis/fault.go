// Package nemesis inflicts faults on the nodes of a run by a schedule. It proves from
// the target that each was in force and is gone again, and records all of it. A fault is
// one file and one row of the table.
package nemesis

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
)

// Environment is what the nemesis can act on.
type Environment struct {
	Servers []*clusters.Node
	Workers []*clusters.Node
	// Writes holds back writes to the resource, and Watch has seen what the workers and
	// the resource said; nil in a plan.
	Writes WriteDelayer
	Watch  *Watch
	// Calls stops workers at their calls to the lock service; nil in a plan.
	Calls Catcher
	// Queues: an attempt waits for its turn. Renews: a worker renews by calls of its own.
	Queues, Renews bool
	// Lease is the time after which the lock can end by itself; 0 for never.
	Lease time.Duration
	// Silence is after which time a lock without a lease ends with a connection that is cut; 0 for
	// never.
	Silence time.Duration
	// Pause is how long the pauses of random schedules last; 0 for longer than the lease.
	Pause time.Duration
	// Hold is how long every hold lasts at least, as far as its lease does; 0 if nobody knows.
	Hold time.Duration
}

// Nodes lists servers and workers.
func (e Environment) Nodes() []*clusters.Node {
	return append(append([]*clusters.Node(nil), e.Servers...), e.Workers...)
}

// server tells servers from workers.
func (e Environment) server(node *clusters.Node) bool {
	for _, s := range e.Servers {
		if s == node {
			return true
		}
	}
	return false
}

// Fault is one disturbance of chosen targets. Its methods are called in this order: Prove only
// after an Apply that succeeded, Heal in any case, and ProveHealed after a Heal that did.
type Fault interface {
	// Apply inflicts it.
	Apply(ctx context.Context) (agent.Moment, error)
	// Prove reads back from the targets that it is in force.
	Prove(ctx context.Context) (evidence string, err error)
	// Heal undoes it. After an error it is called again, some times.
	Heal(ctx context.Context) (Healing, error)
	// ProveHealed reads back from the targets that it is gone.
	ProveHealed(ctx context.Context) (evidence string, err error)
}

// Healing is what Heal did.
type Healing struct {
	agent.Moment
	// Dropped is how many packets a cut has dropped or held back; nil for other
	// faults.
	Dropped *int64
}

// Order is a step of a schedule with its roles resolved.
type Order struct {
	ID      string
	Step    Step
	Targets []*clusters.Node
	Peers   []*clusters.Node
	// Cuts names for each target the nodes that a fault of the network keeps it
	// apart from; Peers are all of them.
	Cuts map[*clusters.Node][]*clusters.Node
}

// Kind describes a kind of fault.
type Kind struct {
	Name    string // as in package history, which says what effects it has
	Summary string
	// Target is the role that is hit when none is named.
	Target string
	// Uses lists what a step says of faults of this kind, apart from whom, when and for
	// how long.
	Uses []Option
	// Momentary: it may last no time at all.
	Momentary bool
	// Can says why the fault cannot be inflicted on a node; nil if it can.
	Can func(env Environment, node *clusters.Node) error
	New func(env Environment, order Order) (Fault, error)
	// Random completes a step of a random schedule.
	Random func(rng *rand.Rand, env Environment, step *Step)
}

// Option is something that a step says only of some kinds of faults.
type Option string

const (
	UsesFrom  Option = "from"  // whom the targets are kept apart from
	UsesStep  Option = "step"  // how far a clock is moved
	UsesSpeed Option = "speed" // how fast a clock runs
	UsesLoss  Option = "loss"  // which share of the packets is lost
	UsesDelay Option = "delay" // how long packets are held back
	UsesRate  Option = "rate"  // how much a link carries
)

// uses says whether steps of this kind say something.
func (k Kind) uses(option Option) bool { return slices.Contains(k.Uses, option) }

// Kinds lists all kinds of faults.
func Kinds() []Kind {
	return []Kind{
		pauseKind(), freezeKind(), killKind(), wipeKind(), crashKind(),
		clockKind(), strobeKind(), clockRateKind(), partitionKind(), oneWayKind(),
		packetLossKind(), packetDelayKind(), slowLinkKind(), delayWriteKind(),
	}
}

// KindByName finds a kind in Kinds.
func KindByName(name string) (Kind, bool) {
	for _, kind := range Kinds() {
		if kind.Name == name {
			return kind, true
		}
	}
	return Kind{}, false
}

// KindNames lists the names in Kinds.
func KindNames() []string {
	var names []string
	for _, kind := range Kinds() {
		names = append(names, kind.Name)
	}
	return names
}

// eachNode runs f on all nodes at once and returns the moment that brackets
// all of it, and the first error.
func eachNode(nodes []*clusters.Node, f func(*clusters.Node) (agent.Moment, error)) (agent.Moment, error) {
	type result struct {
		moment agent.Moment
		err    error
	}
	results := make(chan result, len(nodes))
	for _, node := range nodes {
		go func() {
			moment, err := f(node)
			results <- result{moment, err}
		}()
	}
	var whole agent.Moment
	var failed error
	for range nodes {
		r := <-results
		if whole.From == 0 || r.moment.From != 0 && r.moment.From < whole.From {
			whole.From = r.moment.From
		}
		whole.To = max(whole.To, r.moment.To)
		if failed == nil {
			failed = r.err
		}
	}
	return whole, failed
}
