package clusters

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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
			return Server{Program: "etcd", Port: etcdPort, Probes: etcdProbes{}, Command: etcdCommand, Files: etcdFiles, NoWipe: errMemberForGood}
		},
	}
}

const etcdFile = "etcd.yaml"

func etcdCommand(p Place) []string {
	return []string{"etcd", "--config-file", p.Folder + "/" + etcdFile}
}

// etcdFiles uses only settings that all versions know. They are in a file because a container that is started again
// keeps its arguments, and a member that was added anew must not start as one of a new cluster. With such a file etcd
// 3.4.3 has no gateway for the probes unless the file asks for it, as it has by default without a file.
func etcdFiles(p Place) map[string]string {
	name := func(n int) string { return fmt.Sprintf("n%d", n+1) }
	state := "new"
	if p.Joining {
		state = "existing"
	}
	var members []string
	for n, ip := range p.IPs {
		members = append(members, name(n)+"="+etcdURL(ip, etcdPeerPort))
	}
	return map[string]string{etcdFile: strings.Join([]string{
		"name: " + name(p.N), "data-dir: " + p.Folder + "/etcd",
		"listen-client-urls: " + etcdURL("0.0.0.0", etcdPort), "advertise-client-urls: " + etcdURL(p.IPs[p.N], etcdPort),
		"listen-peer-urls: " + etcdURL("0.0.0.0", etcdPeerPort), "initial-advertise-peer-urls: " + etcdURL(p.IPs[p.N], etcdPeerPort),
		"initial-cluster: " + strings.Join(members, ","), "initial-cluster-token: " + etcdToken,
		"initial-cluster-state: " + state,
		"heartbeat-interval: 100", "election-timeout: 1000", "enable-grpc-gateway: true", "",
	}, "\n")}
}

func etcdURL(ip string, port int) string { return fmt.Sprintf("http://%s:%d", ip, port) }

// etcdProbes asks an etcd server over HTTP, which all versions speak besides gRPC.
type etcdProbes struct{}

var (
	_ agent.Probes         = etcdProbes{}
	_ agent.LeaderProbe    = etcdProbes{}
	_ agent.LeaderTransfer = etcdProbes{}
	_ agent.Membership     = etcdProbes{}
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
	Leader  string       `json:"leader"`
	Members []etcdMember `json:"members"`
}

type etcdMember struct {
	ID       string   `json:"ID"`
	PeerURLs []string `json:"peerURLs"`
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

// Members lists the members that the server itself knows, without asking its leader.
func (p etcdProbes) Members(ctx context.Context, address string) (ips []string, err error) {
	var cluster etcdAnswer
	if err := p.call(ctx, address, "/v3/cluster/member/list", "{}", &cluster); err != nil {
		return nil, err
	}
	for _, member := range cluster.Members {
		for _, peer := range member.PeerURLs {
			where, err := url.Parse(peer)
			if err != nil {
				return nil, err
			}
			ips = append(ips, where.Hostname())
		}
	}
	return ips, nil
}

// RemoveMember does what "etcdctl member remove" does. The server refuses until every member has been connected for 5 s.
func (p etcdProbes) RemoveMember(ctx context.Context, address, ip string) error {
	var cluster etcdAnswer
	if err := p.call(ctx, address, "/v3/cluster/member/list", "{}", &cluster); err != nil {
		return err
	}
	for _, member := range cluster.Members {
		if slices.Contains(member.PeerURLs, etcdURL(ip, etcdPeerPort)) {
			return p.call(ctx, address, "/v3/cluster/member/remove", `{"ID": "`+member.ID+`"}`, nil)
		}
	}
	return nil
}

// AddMember does what "etcdctl member add" does.
func (p etcdProbes) AddMember(ctx context.Context, address, ip string) error {
	if ips, err := p.Members(ctx, address); err != nil || slices.Contains(ips, ip) {
		return err
	}
	return p.call(ctx, address, "/v3/cluster/member/add", `{"peerURLs": ["`+etcdURL(ip, etcdPeerPort)+`"]}`, nil)
}

// call calls a method of the gateway to gRPC.
func (etcdProbes) call(ctx context.Context, address, path, body string, answer any) error {
	q := etcdAsks(address, path)
	q.method, q.body = http.MethodPost, body
	_, err := q.ask(ctx, answer)
	return err
}

func etcdAsks(address, path string) question { return question{url: "http://" + address + path} }
