package nemesis

import (
	"errors"

	"lockcheck/clusters"
)

// Support says whether faults of a kind are supported on some servers, and on
// workers next to them; nil for yes, else why not.
type Support struct {
	Servers, Workers error
}

// Support tells what can be known of that before anything was started: whether
// the kernel and the processor allow it, only a run can tell.
func (k Kind) Support(spec clusters.Spec) Support {
	servers, workers := spec.Plan(spec.Nodes, 1)
	env := Environment{Servers: servers, Workers: workers}
	return Support{Servers: k.anyOf(env, servers), Workers: k.anyOf(env, workers)}
}

// errNoServers is why nothing can be done to the servers of a lock without any.
var errNoServers = errors.New("there are none")

// anyOf returns nil if any of the nodes can be a target of the fault, else why one cannot.
func (k Kind) anyOf(env Environment, nodes []*clusters.Node) error {
	why := errNoServers
	for _, node := range nodes {
		if why = k.Can(env, node); why == nil {
			return nil
		}
	}
	return why
}
