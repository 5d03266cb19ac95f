package clusters

import (
	"context"
	"errors"
	"fmt"
)

// Plan returns the servers and workers of a run without starting them. It is known before a run which faults a
// node supports, except for what depends on its machine.
func (s Spec) Plan(servers, workers int) (serverNodes, workerNodes []*Node) {
	for i := range servers {
		node := &Node{Name: s.nodeName(i), Server: s.Server(i), Clock: errEmbeddedClock}
		if s.WallClock {
			node.Clock = nil
		}
		if s.OnDocker() {
			node.setNetwork(plannedIP)
			node.Versions = s.versionsOf(i)
			node.Clock, node.Again = node.Server.NoClock, func(context.Context) error { return errOnlyPlanned }
		}
		serverNodes = append(serverNodes, node)
	}
	for i := range workers {
		node := &Node{Name: fmt.Sprintf("w%d", i+1)}
		if s.OnDocker() {
			node.setNetwork(plannedIP)
		}
		workerNodes = append(workerNodes, node)
	}
	return serverNodes, workerNodes
}

// versionsOf lists the versions in which a server can be started again: those of the spec's own image.
func (s Spec) versionsOf(n int) []string {
	if s.Server(n).Recipe != "" || s.own != nil {
		return nil
	}
	return s.Versions
}

// plannedIP is an address for documentation (RFC 5737), which no host has.
const plannedIP = "192.0.2.1"

var errOnlyPlanned = errors.New("it was never started")

// setNetwork gives a node what every container in a network has: an address and a freezer.
func (n *Node) setNetwork(ip string) { n.IP, n.freezer = ip, new(freezer) }
