package clusters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"lockcheck/clusters/agent"
)

const (
	consulPort     = 8500
	consulRaftPort = 8300
)

// consulSettings differ from the defaults where a run would have to wait. Sessions may be as short as a second
// instead of ten, a server that leaves waits for a second instead of five, and elections use the timing that HashiCorp
// advises for production. What no lock needs is off.
const consulSettings = `
session_ttl_min = "1s"
performance { raft_multiplier = 1, leave_drain_time = "1s" }
log_level = "warn"
disable_update_check = true
connect { enabled = false }
peering { enabled = false }
ports { dns = -1, grpc = -1, grpc_tls = -1, serf_wan = -1 }
`

func consulSpec() Spec {
	return Spec{
		Name: "consul", Nodes: 3, Sizes: []int{1, 5}, Image: "consul", Versions: []string{"1.20.1"}, Official: true,
		Server: func(int) Server {
			return Server{Program: "consul", Port: consulPort, Probes: consulProbes{}, Command: consulCommand}
		},
	}
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

// consulProbes asks a Consul agent over HTTP.
type consulProbes struct{}

var (
	_ agent.LeaderProbe    = consulProbes{}
	_ agent.LeaderTransfer = consulProbes{}
	_ agent.Membership     = consulProbes{}
)

// Ready needs more than a leader. A newly elected leader may still refuse writes. An agent can create sessions
// only once the leader has registered it as healthy (the check serfHealth).
func (p consulProbes) Ready(ctx context.Context, address string) error {
	leader, self, err := p.cluster(ctx, address)
	switch {
	case err != nil:
		return err
	case leader == "":
		return errors.New("there is no leader yet")
	}
	put := consulAsks(address, "/v1/kv/ready")
	put.method = http.MethodPut
	if _, err := put.ask(ctx, nil); err != nil {
		return err
	}
	var checks []struct{ CheckID, Status string }
	if _, err := consulAsks(address, "/v1/health/node/"+self.Config.NodeName+"?consistent").ask(ctx, &checks); err != nil {
		return err
	}
	for _, check := range checks {
		if check.CheckID == "serfHealth" && check.Status == "passing" {
			return nil
		}
	}
	return fmt.Errorf("%s is not registered as healthy yet", self.Config.NodeName)
}

func (consulProbes) Clock(ctx context.Context, address string) (time.Time, error) {
	return consulAsks(address, "/v1/status/leader").date(ctx)
}

// consulSelf is the part of /v1/agent/self that the probes use.
type consulSelf struct {
	Config struct{ Version, NodeName string }
	Member struct{ Addr string }
}

// cluster returns the leader's Raft address as this server knows it, and this server's description of itself.
func (consulProbes) cluster(ctx context.Context, address string) (leader string, self consulSelf, err error) {
	_, err = consulAsks(address, "/v1/status/leader").ask(ctx, &leader)
	if err == nil {
		_, err = consulAsks(address, "/v1/agent/self").ask(ctx, &self)
	}
	return leader, self, err
}

func (p consulProbes) Version(ctx context.Context, address string) (string, error) {
	var self consulSelf
	_, err := consulAsks(address, "/v1/agent/self").ask(ctx, &self)
	return self.Config.Version, err
}

func (p consulProbes) Leads(ctx context.Context, address string) (bool, error) {
	leader, self, err := p.cluster(ctx, address)
	return err == nil && leader == net.JoinHostPort(self.Member.Addr, strconv.Itoa(consulRaftPort)), err
}

// TransferLeader does what "consul operator raft transfer-leader" does, since Consul 1.14. The leader itself chooses
// the server that is to lead.
func (consulProbes) TransferLeader(ctx context.Context, address string) error {
	transfer := consulAsks(address, "/v1/operator/raft/transfer-leader")
	transfer.method = http.MethodPost
	_, err := transfer.ask(ctx, nil)
	return err
}

// Members lists the servers with a vote. A server that has joined gets its vote when it has been stable for 10 s.
func (consulProbes) Members(ctx context.Context, address string) (ips []string, err error) {
	var raft struct {
		Servers []struct {
			Address string
			Voter   bool
		}
	}
	if _, err := consulAsks(address, "/v1/operator/raft/configuration").ask(ctx, &raft); err != nil {
		return nil, err
	}
	for _, server := range raft.Servers {
		if ip, _, err := net.SplitHostPort(server.Address); err == nil && server.Voter {
			ips = append(ips, ip)
		}
	}
	return ips, nil
}

// RemoveMember does what "consul leave" does. That is how a server is to be removed that still runs: if only its Raft
// peer were removed, the leader would add it again. The server ends meanwhile, and its answer may be lost.
func (p consulProbes) RemoveMember(ctx context.Context, address, ip string) error {
	leave := consulAsks(net.JoinHostPort(ip, strconv.Itoa(consulPort)), "/v1/agent/leave")
	leave.method = http.MethodPut
	_, err := leave.ask(ctx, nil)
	if err != nil {
		if ips, asked := p.Members(ctx, address); asked == nil && !slices.Contains(ips, ip) {
			return nil
		}
	}
	return err
}

// AddMember has nothing to do: the leader adds a server that joins.
func (consulProbes) AddMember(context.Context, string, string) error { return nil }

func consulAsks(address, path string) question { return question{url: "http://" + address + path} }
