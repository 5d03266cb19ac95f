package nemesis

import (
	"errors"

	"lockcheck/clusters"
)

// Support says why faults of a kind are not supported on some servers, and on their workers; nil if they are.
type Support struct {
	Servers, Workers error
}

// Support returns what is known before anything is started. Whether the kernel and the processor allow a fault
// only a run can tell.
func (k Kind) Support(spec clusters.Spec) Support {
	servers, workers := spec.Plan(spec.Nodes, 1)
	env := Environment{Servers: servers, Workers: workers}
	return Support{Servers: k.anyOf(env, servers), Workers: k.anyOf(env, workers)}
}

// errNoServers is why a lock without servers supports no fault of servers.
var errNoServers = errors.New("there are none")

// anyOf returns nil if any of the nodes supports the fault, else the reason of the last node.
func (k Kind) anyOf(env Environment, nodes []*clusters.Node) error {
	why := errNoServers
	for _, node := range nodes {
		if why = k.Can(env, node); why == nil {
			return nil
		}
	}
	return why
}
