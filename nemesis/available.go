package nemesis

import (
	"errors"

	"lockcheck/clusters"
)

// Availability says whether faults of a kind can be had on some servers, and on
// workers beside them; nil for yes, else why not.
type Availability struct {
	Servers, Workers error
}

// Available tells what can be known of that before anything was started: whether
// the kernel and the processor allow it, only a run can tell.
func (k Kind) Available(spec clusters.Spec) Availability {
	servers, workers := spec.Plan(spec.Nodes, 1)
	env := Environment{Servers: servers, Workers: workers}
	return Availability{Servers: k.anyOf(env, servers), Workers: k.anyOf(env, workers)}
}

// errNoServers is why nothing can be done to the servers of a lock without any.
var errNoServers = errors.New("there are none")

// anyOf returns nil if any of the nodes can suffer the fault, else why one cannot.
func (k Kind) anyOf(env Environment, nodes []*clusters.Node) error {
	why := errNoServers
	for _, node := range nodes {
		if why = k.Can(env, node); why == nil {
			return nil
		}
	}
	return why
}
