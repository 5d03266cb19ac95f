package nemesis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"lockcheck/clusters"
	"lockcheck/internal/spelling"
)

// Roles that a target may have besides names of nodes. one, minority, majority and all mean servers unless
// "worker" or "workers" follows.
const (
	roleActor     = "actor"    // the worker whose moment a step waited for
	roleHolder    = "holder"   // the worker that has just entered its section
	roleWaiter    = "waiter"   // a worker outside its section; those that ask for the lock come first
	roleLeader    = "leader"   // the server that leads the others, or the replica of an application
	roleFollower  = "follower" // any other server
	roleOne       = "one"
	roleMinority  = "minority"
	roleMajority  = "majority"
	roleAll       = "all"
	roleServers   = "servers"
	roleWorkers   = "workers"
	roleHalves    = "halves" // half of all servers and workers, from the other half
	roleRing      = "ring"   // all servers, each separated from those that are not its neighbours
	roleBridge    = "bridge" // half of the servers from the other half, except one that sees all
	roleOneWorker = "one worker"
)

// Roles lists the roles of a target. "one worker" stands for all roles that may be followed by "worker" or
// "workers".
func Roles() []string {
	return []string{
		roleHolder, roleActor, roleWaiter, roleLeader, roleFollower, roleOne, roleMinority, roleMajority, roleAll,
		roleHalves, roleRing, roleBridge, roleOneWorker,
	}
}

// resolver turns roles into nodes.
type resolver struct {
	env Environment
	rng *rand.Rand
	// actor is the worker that a step waited for; "" if it waited for none. With entered it has just entered
	// its section. inside has the workers in their sections, in the order of entry.
	actor   string
	entered bool
	inside  []string
	leader  *clusters.Node // nil if none is known
	// gone says whether a worker was killed; nil if none was.
	gone func(worker string) bool
	// asks says whether a worker asks for a lock at the moment; nil if none does.
	asks func(worker string) bool
	// can says why a node cannot be a target of the fault; nil if all can. "one" then chooses another node.
	can func(*clusters.Node) error
}

// able lists the nodes that can be a target of the fault. It lists all nodes if none can, so that the reason is
// reported.
func (r resolver) able(nodes []*clusters.Node) []*clusters.Node {
	if r.can == nil {
		return nodes
	}
	able := slices.DeleteFunc(slices.Clone(nodes), func(n *clusters.Node) bool { return r.can(n) != nil })
	if len(able) == 0 {
		return nodes
	}
	return able
}

// workers lists the living workers.
func (r resolver) workers() []*clusters.Node {
	return slices.DeleteFunc(slices.Clone(r.env.Workers), func(n *clusters.Node) bool { return r.gone != nil && r.gone(n.Name) })
}

// nodes lists servers and living workers.
func (r resolver) nodes() []*clusters.Node { return slices.Concat(r.env.Servers, r.workers()) }

// holder is the worker that entered its section last; "" if none is inside.
func (r resolver) holder() string {
	switch {
	case r.entered:
		return r.actor
	case len(r.inside) > 0:
		return r.inside[len(r.inside)-1]
	}
	return ""
}

// busy says whether a worker is inside its section, or is the actor, which may have left its section by now.
func (r resolver) busy(n *clusters.Node) bool {
	return n.Name == r.actor || slices.Contains(r.inside, n.Name)
}

// waiters are the workers outside their sections: those that ask for the lock, or all of them if none asks.
func (r resolver) waiters() []*clusters.Node {
	outside := slices.DeleteFunc(r.workers(), r.busy)
	asking := slices.DeleteFunc(slices.Clone(outside), func(n *clusters.Node) bool { return r.asks == nil || !r.asks(n.Name) })
	if len(asking) == 0 {
		return outside
	}
	return asking
}

// errNobody says that no node has the role at the moment.
var errNobody = errors.New("nobody has this role now")

// targets resolves a role or a list of names.
func (r resolver) targets(text string) ([]*clusters.Node, error) {
	switch text {
	case roleHolder:
		return r.named(r.holder())
	case roleActor:
		return r.named(r.actor)
	case roleWaiter:
		return r.some(1, r.waiters())
	case roleLeader:
		if r.leader == nil {
			return nil, errNobody
		}
		return []*clusters.Node{r.leader}, nil
	case roleFollower:
		if r.leader == nil {
			return nil, errNobody
		}
		return r.some(1, slices.DeleteFunc(slices.Clone(r.env.leading()), func(n *clusters.Node) bool { return n == r.leader }))
	case roleHalves:
		nodes := r.nodes()
		return r.some(len(nodes)/2, nodes)
	case roleServers:
		return r.some(len(r.env.Servers), r.env.Servers)
	case roleRing:
		return r.atLeast(minRing, r.env.Servers)
	case roleBridge:
		return r.atLeast(minBridge, r.env.Servers)
	case roleWorkers:
		return r.some(len(r.workers()), r.workers())
	}
	if nodes, is, err := r.share(text); is {
		return nodes, err
	}
	return r.listed(text)
}

// namesPattern matches a list of node names.
var namesPattern = regexp.MustCompile(`^[nw][0-9]+( *, *[nw][0-9]+)*$`)

// replicasPattern and servicesPattern are what lists of names look like in a test of an application.
var (
	replicasPattern = regexp.MustCompile(`^[\w.-]+-[0-9]+( *, *[\w.-]+-[0-9]+)*$`)
	servicesPattern = regexp.MustCompile(`^[\w.-]+( *, *[\w.-]+)*$`)
)

// canMean says whether a text is a role, or a list of names that some cluster may have. A text that is nearly a role is
// taken for a misspelt role rather than for a service.
func canMean(text string) bool {
	switch text {
	case roleActor, roleHolder, roleWaiter, roleLeader, roleFollower, roleServers, roleWorkers:
		return true
	}
	named := namesPattern.MatchString(text) || replicasPattern.MatchString(text) ||
		servicesPattern.MatchString(text) && spelling.Nearest(text, roles()) == ""
	return named || shape(text) || rolePattern.MatchString(text)
}

// roles lists the possible targets, for messages.
func roles() []string {
	return []string{
		roleHolder, roleActor, roleWaiter, roleLeader, roleFollower, roleOne, roleOneWorker, roleMinority, roleMajority, roleAll,
		roleServers, roleWorkers, roleHalves, roleRing, roleBridge, "names such as n1 or w2",
	}
}

// workerNames matches a list of worker names.
var workerNames = regexp.MustCompile(`^w[0-9]+( *, *w[0-9]+)*$`)

// MeansWorkers says whether a target means workers only.
func MeansWorkers(target string) bool {
	_, of, _ := strings.Cut(target, " ")
	switch {
	case target == roleHolder, target == roleActor, target == roleWaiter, target == roleWorkers, of == "worker", of == roleWorkers:
		return true
	}
	return workerNames.MatchString(target)
}

// meansOne says whether a target never means more than one node.
func meansOne(target string) bool {
	word, _, _ := strings.Cut(target, " ")
	several := []string{roleMinority, roleMajority, roleAll, roleServers, roleWorkers}
	return !slices.Contains(several, word) && !strings.Contains(target, ",")
}

// shape says whether a role is only for faults between nodes.
func shape(role string) bool { return role == roleHalves || role == roleRing || role == roleBridge }

// atLeast returns all nodes if there are enough of them.
func (r resolver) atLeast(n int, nodes []*clusters.Node) ([]*clusters.Node, error) {
	if len(nodes) < n {
		return nil, fmt.Errorf("it takes %d servers", n)
	}
	return nodes, nil
}

// rolePattern matches the roles that share resolves.
var rolePattern = regexp.MustCompile(`^(one|minority|majority|all)( (server|servers|worker|workers))?$`)

// anyOf resolves like targets, but resolves a role that only the run can resolve to all nodes that may have it.
func (r resolver) anyOf(text string) ([]*clusters.Node, error) {
	switch text {
	case roleHolder, roleActor, roleWaiter:
		return r.env.Workers, nil
	case roleLeader, roleFollower:
		return r.env.leading(), nil
	}
	return r.targets(text)
}

// share resolves "one", "majority workers" and the like.
func (r resolver) share(text string) (nodes []*clusters.Node, is bool, err error) {
	word, of, _ := strings.Cut(text, " ")
	from := r.env.Servers
	switch of {
	case "", "server", roleServers:
	case "worker", roleWorkers:
		from = r.workers()
	default:
		return nil, false, nil
	}
	sizes := map[string]int{
		roleOne: 1, roleMinority: (len(from) - 1) / 2, roleMajority: len(from)/2 + 1, roleAll: len(from),
	}
	size, is := sizes[word]
	if !is {
		return nil, false, nil
	}
	if word == roleOne {
		from = r.able(from)
	}
	nodes, err = r.some(size, from)
	return nodes, true, err
}

// some chooses n of the nodes at random and keeps their order.
func (r resolver) some(n int, from []*clusters.Node) ([]*clusters.Node, error) {
	if n == 0 || n > len(from) {
		return nil, errNobody
	}
	chosen := r.rng.Perm(len(from))[:n]
	slices.Sort(chosen)
	var nodes []*clusters.Node
	for _, i := range chosen {
		nodes = append(nodes, from[i])
	}
	return nodes, nil
}

func (r resolver) named(name string) ([]*clusters.Node, error) {
	if name == "" {
		return nil, errNobody
	}
	return r.listed(name)
}

// UnknownNodeError names a target that a cluster does not have.
type UnknownNodeError struct {
	Name  string
	Known []string // nodes of the cluster
}

func (e *UnknownNodeError) Error() string {
	return fmt.Sprintf("there is neither a node nor a role %q (the nodes are %s)", e.Name, strings.Join(e.Known, ", "))
}

// listed resolves a list of names.
func (r resolver) listed(text string) ([]*clusters.Node, error) {
	var nodes []*clusters.Node
	for _, name := range strings.Split(text, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(r.env.Nodes(), func(n *clusters.Node) bool { return n.Name == name })
		if i < 0 {
			e := &UnknownNodeError{Name: name}
			for _, node := range r.env.Nodes() {
				e.Known = append(e.Known, node.Name)
			}
			return nil, e
		}
		nodes = append(nodes, r.env.Nodes()[i])
	}
	return nodes, nil
}

// cuts resolves the nodes that each target of a step is separated from; nil unless the fault is one between
// nodes. No node is separated from itself.
func (r resolver) cuts(step Step, targets []*clusters.Node) (map[*clusters.Node][]*clusters.Node, error) {
	if kind, _ := KindByName(step.Fault); !kind.uses(UsesFrom) {
		return nil, nil
	}
	switch {
	case len(targets) == 0: // a role of servers in a cluster without servers
		return nil, errNobody
	case step.From == "" && step.Target == roleRing:
		return ring(targets), nil
	case step.From == "" && step.Target == roleBridge:
		return bridge(targets, r.rng.IntN(len(targets))), nil
	}
	var named []*clusters.Node // all targets are separated from these
	if step.From != "" {
		var err error
		if named, err = r.targets(step.From); err != nil {
			return nil, err
		}
	}
	cuts := make(map[*clusters.Node][]*clusters.Node)
	for _, target := range targets {
		cuts[target] = without(r.peers(step, target, named), targets)
	}
	return cuts, nil
}

// peers are the nodes that a target is separated from.
func (r resolver) peers(step Step, target *clusters.Node, named []*clusters.Node) []*clusters.Node {
	switch {
	case step.From != "":
		return named
	case step.Target == roleHalves:
		return r.nodes()
	case r.env.server(target):
		return r.workers()
	default:
		return r.env.Servers
	}
}

func without(nodes, some []*clusters.Node) []*clusters.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *clusters.Node) bool { return slices.Contains(some, n) })
}
