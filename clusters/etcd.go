package clusters

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"lockcheck/clusters/agent"
)

const (
	etcdPort     = 2379
	etcdPeerPort = 2380
	// etcdToken is the same on all members, because members with different tokens refuse each other.
	etcdToken = "lockcheck"
)

// etcdSpec is one etcd cluster. Its timing is etcd's default, spelt out because the shortest lease follows from
// it: 1.5 election timeouts.
func etcdSpec() Spec {
	return Spec{
		Name: "etcd", Nodes: 3, Sizes: []int{5, 1}, Image: "etcd", Official: true,
		Versions: []string{"3.6.16", "3.5.16", "3.5.15", "3.4.3"},
		Server: func(int) Server {
			return Server{Program: "etcd", Port: etcdPort, Probes: etcdProbes{}, Command: etcdCommand, NoWipe: errMemberForGood}
		},
	}
}

// etcdCommand uses only flags that all versions know.
func etcdCommand(p Place) []string {
	url := func(ip string, port int) string { return fmt.Sprintf("http://%s:%d", ip, port) }
	name := func(n int) string { return fmt.Sprintf("n%d", n+1) }
	var members []string
	for n, ip := range p.IPs {
		members = append(members, name(n)+"="+url(ip, etcdPeerPort))
	}
	return []string{
		"etcd", "--name", name(p.N), "--data-dir", p.Folder + "/etcd",
		"--listen-client-urls", url("0.0.0.0", etcdPort), "--advertise-client-urls", url(p.IPs[p.N], etcdPort),
		"--listen-peer-urls", url("0.0.0.0", etcdPeerPort), "--initial-advertise-peer-urls", url(p.IPs[p.N], etcdPeerPort),
		"--initial-cluster", strings.Join(members, ","), "--initial-cluster-token", etcdToken,
		"--initial-cluster-state", "new",
		"--heartbeat-interval", "100", "--election-timeout", "1000",
	}
}

// etcdProbes asks an etcd server over HTTP, which all versions speak besides gRPC.
type etcdProbes struct{}

var (
	_ agent.Probes         = etcdProbes{}
	_ agent.LeaderProbe    = etcdProbes{}
	_ agent.LeaderTransfer = etcdProbes{}
)

// Ready needs a leader.
func (etcdProbes) Ready(ctx context.Context, address string) error {
	var answer struct {
		Health string `json:"health"`
	}
	if _, err := etcdAsks(address, "/health").ask(ctx, &answer); err != nil {
		return err
	}
	if answer.Health != "true" {
		return fmt.Errorf("its health is %q", answer.Health)
	}
	return nil
}

func (etcdProbes) Clock(ctx context.Context, address string) (time.Time, error) {
	return etcdAsks(address, "/version").date(ctx)
}

func (etcdProbes) Version(ctx context.Context, address string) (string, error) {
	var answer struct {
		Server string `json:"etcdserver"`
	}
	_, err := etcdAsks(address, "/version").ask(ctx, &answer)
	return answer.Server, err
}

// etcdAnswer is the part of the answers about a cluster that the probes use.
type etcdAnswer struct {
	Header struct {
		Member string `json:"member_id"` // of the server that answers
	} `json:"header"`
	Leader  string                `json:"leader"`
	Members []struct{ ID string } `json:"members"`
}

// Leads compares the server's own member ID with the one that it takes for the leader.
func (p etcdProbes) Leads(ctx context.Context, address string) (bool, error) {
	var status etcdAnswer
	err := p.call(ctx, address, "/v3/maintenance/status", "{}", &status)
	return err == nil && status.Leader == status.Header.Member, err
}

// TransferLeader does what "etcdctl move-leader" does, which names the member that is to lead. A member that does not
// follow in time is refused, and the next one is named.
func (p etcdProbes) TransferLeader(ctx context.Context, address string) error {
	var cluster etcdAnswer
	err := p.call(ctx, address, "/v3/cluster/member/list", "{}", &cluster)
	for _, member := range cluster.Members {
		if member.ID == cluster.Header.Member {
			continue
		}
		if err = p.call(ctx, address, "/v3/maintenance/transfer-leadership", `{"targetID": "`+member.ID+`"}`, nil); err == nil {
			return nil
		}
	}
	return err
}

// call calls a method of the gateway to gRPC.
func (etcdProbes) call(ctx context.Context, address, path, body string, answer any) error {
	q := etcdAsks(address, path)
	q.method, q.body = http.MethodPost, body
	_, err := q.ask(ctx, answer)
	return err
}

func etcdAsks(address, path string) question { return question{url: "http://" + address + path} }
