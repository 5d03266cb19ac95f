// Package nemesis inflicts faults on the nodes of a run by a schedule. For each fault it proves from the target
// that the fault was in force and is gone again, and records both. Each kind of fault is one file and one row
// of Kinds.
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
	// Writes delays writes to the resource. Watch has seen the events of workers and resource. Both are nil in
	// a plan.
	Writes WriteDelayer
	Watch  *Watch
	// Calls stops workers at their calls to the lock service; nil in a plan.
	Calls Catcher
	// Leader asks the application and returns the name of the replica that leads. It waits until one does or ctx ends;
	// its error says why none did. It is nil if servers lead, which are asked themselves.
	Leader func(ctx context.Context) (replica string, err error)
	// Queues: an attempt waits for its turn. Renews: workers renew by explicit calls.
	Queues, Renews bool
	// WallClocks: the workers' clients may look at their wall clocks. Names: nodes are found by their names.
	WallClocks, Names bool
	// Lease is the time after which the lock expires without renewals; 0 for never.
	Lease time.Duration
	// Silence is how long a lock without a lease outlasts its connection when that is cut; 0 for forever.
	Silence time.Duration
	// Pause is the length of pauses in random schedules; 0 for longer than the lease.
	Pause time.Duration
	// Hold is the minimum length of a hold, as far as its lease lasts; 0 if unknown.
	Hold time.Duration
}

// Nodes lists servers and workers.
func (e Environment) Nodes() []*clusters.Node {
	return append(append([]*clusters.Node(nil), e.Servers...), e.Workers...)
}

// leading returns the nodes one of which leads the others, if any does.
func (e Environment) leading() []*clusters.Node {
	if e.Leader != nil {
		return e.Workers
	}
	return e.Servers
}

// server says whether a node is a server.
func (e Environment) server(node *clusters.Node) bool {
	for _, s := range e.Servers {
		if s == node {
			return true
		}
	}
	return false
}

// Fault is one disturbance of chosen targets. Apply is called first, Prove only after an Apply that succeeded,
// Heal in any case, and ProveHealed only after a Heal that succeeded.
type Fault interface {
	// Apply inflicts the fault.
	Apply(ctx context.Context) (agent.Moment, error)
	// Prove reads back from the targets that the fault is in force.
	Prove(ctx context.Context) (evidence string, err error)
	// Heal undoes the fault. It is retried a few times after an error.
	Heal(ctx context.Context) (Healing, error)
	// ProveHealed reads back from the targets that the fault is gone.
	ProveHealed(ctx context.Context) (evidence string, err error)
}

// Healing is what Heal did.
type Healing struct {
	agent.Moment
	// Dropped is how many packets a cut has dropped or held back, or how many operations a disk has failed or held
	// back; nil for other faults, or if unknown.
	Dropped *int64
}

// Order is a step of a schedule with its roles resolved.
type Order struct {
	ID      string
	Step    Step
	Targets []*clusters.Node
	Peers   []*clusters.Node
	// Cuts lists for each target the nodes that a network fault separates it from. Peers are all of these
	// nodes.
	Cuts map[*clusters.Node][]*clusters.Node
}

// Kind describes a kind of fault.
type Kind struct {
	Name    string // as in package history, which defines the kind's effects
	Summary string
	// Target is the default role.
	Target string
	// Uses lists the optional fields of a step that this kind uses.
	Uses []Option
	// OnDisk: the servers must run on disks of package disk.
	OnDisk bool
	// Momentary: the fault may have no duration.
	Momentary bool
	// Can says why the fault cannot be inflicted on a node; nil if it can.
	Can func(env Environment, node *clusters.Node) error
	New func(env Environment, order Order) (Fault, error)
	// Random fills in a step of a random schedule.
	Random func(rng *rand.Rand, env Environment, step *Step)
}

// Option is a field of a step that only some kinds use.
type Option string

const (
	UsesFrom    Option = "from"    // which nodes the targets are separated from
	UsesStep    Option = "step"    // how far a clock is moved
	UsesSpeed   Option = "speed"   // how fast a clock runs
	UsesLoss    Option = "loss"    // which share of the packets is dropped
	UsesDelay   Option = "delay"   // how long packets, or writes to a disk, are held back
	UsesRate    Option = "rate"    // the throughput of a link
	UsesVersion Option = "version" // in which version a server is started again
)

// uses says whether the kind uses the option.
func (k Kind) uses(option Option) bool { return slices.Contains(k.Uses, option) }

// Kinds lists all kinds of faults.
func Kinds() []Kind {
	return []Kind{
		pauseKind(), freezeKind(), killKind(), restartKind(), wipeKind(), crashKind(), powerLossKind(),
		diskFullKind(), fsyncErrorKind(), slowDiskKind(),
		clockKind(), strobeKind(), clockRateKind(), partitionKind(), oneWayKind(),
		packetLossKind(), packetDelayKind(), slowLinkKind(), staleDNSKind(), dnsFailureKind(), delayWriteKind(),
		transferLeaderKind(), removeMemberKind(),
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

// eachNode runs f on all nodes at once. It returns a moment that brackets all calls, and the first error.
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
