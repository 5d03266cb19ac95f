package clusters

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
)

const (
	natsPort        = 4222
	natsRoutePort   = 6222
	natsMonitorPort = 8222
)

// natsSpec is servers with JetStream, each with a copy of the bucket. A single server is no cluster.
func natsSpec() Spec {
	return Spec{
		Name: "nats", Nodes: 3, Sizes: []int{1}, Image: "nats", Versions: []string{"2.15.2"},
		Server: func(int) Server {
			return Server{Program: "nats", Port: natsPort, Probes: natsProbes{}, Command: natsCommand}
		},
	}
}

// natsCommand does not advertise servers to clients, which may reach the servers by another network than their
// routes.
func natsCommand(p Place) []string {
	command := []string{
		"nats", "--server_name", fmt.Sprintf("n%d", p.N+1),
		"--addr", "0.0.0.0", "--port", strconv.Itoa(natsPort), "--http_port", strconv.Itoa(natsMonitorPort),
		"--jetstream", "--store_dir", p.Folder + "/nats",
	}
	if len(p.IPs) == 1 {
		return command
	}
	var routes []string
	for i, ip := range p.IPs {
		if i != p.N {
			routes = append(routes, natsRoute(ip))
		}
	}
	return append(command, "--cluster_name", "lockcheck", "--cluster", natsRoute(p.IPs[p.N]),
		"--routes", strings.Join(routes, ","), "--no_advertise")
}

func natsRoute(ip string) string { return fmt.Sprintf("nats://%s:%d", ip, natsRoutePort) }

// natsProbes asks the monitoring port of a NATS server.
type natsProbes struct{}

var (
	_ agent.Probes      = natsProbes{}
	_ agent.LeaderProbe = natsProbes{}
)

// Ready: a server is healthy when it knows the meta leader and is up to date in its copies.
func (p natsProbes) Ready(ctx context.Context, address string) error {
	return p.ask(ctx, address, "/healthz", nil)
}

// natsSelf is the part of /varz that the probes use.
type natsSelf struct {
	Version string    `json:"version"`
	Name    string    `json:"server_name"`
	Now     time.Time `json:"now"`
}

func (p natsProbes) self(ctx context.Context, address string) (self natsSelf, err error) {
	return self, p.ask(ctx, address, "/varz", &self)
}

func (p natsProbes) Clock(ctx context.Context, address string) (time.Time, error) {
	self, err := p.self(ctx, address)
	return self.Now, err
}

func (p natsProbes) Version(ctx context.Context, address string) (string, error) {
	self, err := p.self(ctx, address)
	return self.Version, err
}

// natsCopies is the part of /jsz that the probes use.
type natsCopies struct {
	All      *natsGroup `json:"meta_cluster"`
	Accounts []struct {
		Streams []struct {
			Name  string     `json:"name"`
			Group *natsGroup `json:"cluster"`
		} `json:"stream_detail"`
	} `json:"account_details"`
}

// natsGroup is a group of servers that replicate the same data.
type natsGroup struct {
	Leader string `json:"leader"` // server name
}

// Leads says whether the server leads the bucket's group, which need not be the meta leader. Before there is a
// bucket the meta leader counts.
func (p natsProbes) Leads(ctx context.Context, address string) (bool, error) {
	var copies natsCopies
	if err := p.ask(ctx, address, "/jsz?streams=true", &copies); err != nil {
		return false, err
	}
	if copies.All == nil {
		return false, agent.ErrNoLeader
	}
	self, err := p.self(ctx, address)
	return err == nil && copies.leader() == self.Name, err
}

func (c natsCopies) leader() string {
	for _, account := range c.Accounts {
		for _, stream := range account.Streams {
			if stream.Name == clients.NATSStream && stream.Group != nil {
				return stream.Group.Leader
			}
		}
	}
	return c.All.Leader
}

func (natsProbes) ask(ctx context.Context, address, path string, answer any) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	_, err = question{url: "http://" + net.JoinHostPort(host, strconv.Itoa(natsMonitorPort)) + path}.ask(ctx, answer)
	return err
}
