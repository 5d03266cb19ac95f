//go:build !embedded

package clusters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/hashicorp/consul/api"

	"lockcheck/clusters/agent"
)

// consulProbes asks a Consul agent over HTTP.
type consulProbes struct{}

var (
	_ agent.Probes      = consulProbes{}
	_ agent.LeaderProbe = consulProbes{}
)

// client keeps no connections between questions.
func (consulProbes) client(address string) (*api.Client, error) {
	config := api.DefaultNonPooledConfig()
	config.Address = address
	return api.NewClient(config)
}

// Ready needs more than a leader: one that was just elected may still refuse, and sessions are
// made only on an agent that the leader has registered and found healthy.
func (p consulProbes) Ready(ctx context.Context, address string) error {
	client, err := p.client(address)
	if err != nil {
		return err
	}
	leader, err := p.leader(ctx, client)
	if err != nil {
		return err
	}
	if leader == "" {
		return errors.New("there is no leader yet")
	}
	if _, err := client.KV().Put(&api.KVPair{Key: "ready"}, new(api.WriteOptions).WithContext(ctx)); err != nil {
		return err
	}
	return p.registered(ctx, client)
}

// registered wants what sessions need of their agent by default: the check serfHealth, which passes.
func (p consulProbes) registered(ctx context.Context, client *api.Client) error {
	self, err := p.self(ctx, client)
	if err != nil {
		return err
	}
	checks, _, err := client.Health().Node(self.Config.NodeName, (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
	if err != nil {
		return err
	}
	for _, check := range checks {
		if check.CheckID == "serfHealth" && check.Status == api.HealthPassing {
			return nil
		}
	}
	return fmt.Errorf("%s is not registered as healthy yet", self.Config.NodeName)
}

// leader returns the address at which the leader serves the other servers.
func (consulProbes) leader(ctx context.Context, client *api.Client) (string, error) {
	return client.Status().LeaderWithQueryOptions(new(api.QueryOptions).WithContext(ctx))
}

// Clock reads the header of an answer.
func (consulProbes) Clock(ctx context.Context, address string) (time.Time, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v1/status/leader", nil)
	if err != nil {
		return time.Time{}, err
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return time.Time{}, err
	}
	defer answer.Body.Close()
	return dateOf(answer.Header)
}

// consulSelf is the part that we need of what an agent says about itself.
type consulSelf struct {
	Config struct{ Version, NodeName string }
	Member struct{ Addr string }
}

func (consulProbes) self(ctx context.Context, client *api.Client) (self consulSelf, err error) {
	_, err = client.Raw().Query("/v1/agent/self", &self, new(api.QueryOptions).WithContext(ctx))
	return self, err
}

func (p consulProbes) Version(ctx context.Context, address string) (string, error) {
	client, err := p.client(address)
	if err != nil {
		return "", err
	}
	self, err := p.self(ctx, client)
	return self.Config.Version, err
}

// Leads asks for the leader's address, as this server knows it.
func (p consulProbes) Leads(ctx context.Context, address string) (bool, error) {
	client, err := p.client(address)
	if err != nil {
		return false, err
	}
	leader, err := p.leader(ctx, client)
	if err != nil {
		return false, err
	}
	self, err := p.self(ctx, client)
	return leader == net.JoinHostPort(self.Member.Addr, strconv.Itoa(consulRaftPort)), err
}
