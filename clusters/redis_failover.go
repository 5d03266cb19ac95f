package clusters

import (
	"errors"
	"fmt"
	"strings"

	"lockcheck/clients"
)

const sentinelPort = 26379

// failoverServers are the primary, its replica and the three Sentinels.
const failoverServers = 5

// redisFailoverSpec is a primary with one replica, or a second one as the last server, and three Sentinels. The
// Sentinels promote a replica when two of them have not heard from the primary for a second. Sentinels that
// notice it at the same time may each vote for themselves, and retry after twice the failover timeout. Clients
// know the Sentinels only.
func redisFailoverSpec() Spec {
	return Spec{
		Name: "redis-failover", FailsOver: true, Nodes: failoverServers, Sizes: []int{failoverServers + 1}, Image: "redis", Official: true,
		Server: func(n int) Server {
			switch n {
			case 0:
				return dataServer()
			case 1, failoverServers:
				return dataServer("--replicaof", "primary", "6379")
			}
			return sentinelServer()
		},
	}
}

// dataServer is a server that holds data and replicates it without delay. In its arguments "primary" stands for
// the address of the first server.
func dataServer(args ...string) Server {
	server := redisServer("redis", "--repl-diskless-sync-delay", "0")
	server.Probes, server.Hidden = replicationProbes{redisProbes{version: "redis_version"}}, true
	command := server.Command
	server.Command = func(p Place) []string {
		line := command(p)
		for _, arg := range args {
			line = append(line, strings.ReplaceAll(arg, "primary", p.IPs[0]))
		}
		return line
	}
	return server
}

func sentinelServer() Server {
	server := redisServer("redis")
	server.Program, server.Port, server.Probes, server.Later = "sentinel", sentinelPort, sentinelProbes{redisProbes{version: "redis_version"}}, true
	server.NoClock, server.NoWipe = errSentinelTime, errFirstPrimary
	// A Sentinel writes its state into its configuration file, which must survive a kill.
	server.Files = func(p Place) map[string]string {
		return map[string]string{sentinelFile: sentinelConfig(p.IPs[0])}
	}
	server.Command = func(p Place) []string {
		return []string{"redis-server", p.Folder + "/" + sentinelFile, "--sentinel"}
	}
	return server
}

// errSentinelTime is why a step of a Sentinel's clock cannot be proven.
var errSentinelTime = errors.New("a Sentinel does not tell the time")

// errFirstPrimary is why a Sentinel cannot be restarted with an empty disk.
var errFirstPrimary = errors.New("it would take the first primary for the present one")

const sentinelFile = "sentinel.conf"

func sentinelConfig(primary string) string {
	name := clients.FailoverName
	return fmt.Sprintf("port %d\nbind 0.0.0.0\nprotected-mode no\ndir /tmp\n", sentinelPort) +
		fmt.Sprintf("sentinel monitor %s %s %d 2\n", name, primary, redisPort) +
		fmt.Sprintf("sentinel down-after-milliseconds %s 1000\n", name) +
		fmt.Sprintf("sentinel failover-timeout %s 1500\n", name)
}
