package clusters

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// clusterPrimaries is the smallest number of primaries of which a majority remains to elect a successor of
	// one. Each has a replica, because a cluster without all slots serves none.
	clusterPrimaries = 3
	clusterServers   = 2 * clusterPrimaries
	hashSlots        = 16384
	// clusterNodeTimeout is how long a server must not have answered before the others take it for failed, in
	// ms. The default is 15000.
	clusterNodeTimeout = 1000
)

// redisClusterSpec is a cluster of Redis or of its fork: n1 to n3 are primaries, n4 to n6 their replicas. It
// starts like an existing cluster that is restarted: each server finds the members in its file. A program that
// joins the servers by commands would have to reach them from lockcheck's machine, which is not possible
// everywhere.
func redisClusterSpec(program string) Spec {
	return Spec{
		Name: program + "-cluster", FailsOver: true, Nodes: clusterServers, Image: program, Official: true,
		Server: func(int) Server { return clusterServer(program) },
	}
}

func clusterServer(program string) Server {
	server := redisServer(program, "--repl-diskless-sync-delay", "0")
	server.Probes = clusterProbes{redisProbes{version: program + "_version"}}
	server.NoWipe = errFirstLayout
	server.Files = func(p Place) map[string]string { return map[string]string{clusterFile: clusterConfig(p)} }
	command := server.Command
	server.Command = func(p Place) []string {
		return append(command(p),
			"--dir", p.Folder, "--cluster-enabled", "yes", "--cluster-config-file", clusterFile,
			"--cluster-node-timeout", fmt.Sprint(clusterNodeTimeout))
	}
	return server
}

// errFirstLayout is why a server of a cluster cannot be restarted with an empty disk.
var errFirstLayout = errors.New("it would take its first role for the present one")

const clusterFile = "nodes.conf"

// clusterConfig is the nodes file of a server, in the form of CLUSTER NODES.
func clusterConfig(p Place) string {
	var text strings.Builder
	for n, ip := range p.IPs {
		role := "slave " + clusterID(n-clusterPrimaries)
		if n < clusterPrimaries {
			role = "master -"
		}
		if n == p.N {
			role = "myself," + role
		}
		fmt.Fprintf(&text, "%s %s:%d@%d %s 0 0 %d connected", clusterID(n), ip, redisPort, redisPort+10000, role, n%clusterPrimaries+1)
		if n < clusterPrimaries {
			fmt.Fprintf(&text, " %d-%d", hashSlots*n/clusterPrimaries, hashSlots*(n+1)/clusterPrimaries-1)
		}
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "vars currentEpoch %d lastVoteEpoch 0\n", clusterPrimaries)
	return text.String()
}

// clusterID is the ID of the n-th server in the cluster. Redis would choose it at random.
func clusterID(n int) string { return fmt.Sprintf("%040x", n+1) }
