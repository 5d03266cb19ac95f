package clusters

import (
	"fmt"
	"strconv"
)

const (
	consulPort     = 8500
	consulRaftPort = 8300
)

// consulSettings differ from the defaults where a run would wait for them:
// sessions may be as short as a second instead of ten, and elections take the
// time that its makers advise for production. What no lock needs is off.
const consulSettings = `
session_ttl_min = "1s"
performance { raft_multiplier = 1 }
log_level = "warn"
disable_update_check = true
connect { enabled = false }
peering { enabled = false }
ports { dns = -1, grpc = -1, grpc_tls = -1, serf_wan = -1 }
`

func consulSpec() Spec {
	return Spec{
		Name: "consul", Nodes: 3, Sizes: []int{1, 5}, Image: "consul", Versions: []string{"1.20.1"}, Official: true,
		Server: func(int) Server { return consulServer() },
	}
}

func consulServer() Server {
	return Server{Program: "consul", Port: consulPort, Probes: consulProbes{}, Command: consulCommand}
}

func consulCommand(p Place) []string {
	command := []string{
		"consul", "agent", "-server",
		"-node", fmt.Sprintf("n%d", p.N+1), "-bind", p.IPs[p.N], "-client", "0.0.0.0",
		"-data-dir", p.Folder + "/consul", "-bootstrap-expect", strconv.Itoa(len(p.IPs)),
		"-retry-interval", "100ms", "-hcl", consulSettings,
	}
	for i, ip := range p.IPs {
		if i != p.N {
			command = append(command, "-retry-join", ip)
		}
	}
	return command
}
