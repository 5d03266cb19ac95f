//go:build !embedded

package clusters

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
)

// replicationProbes asks a Redis that is a primary or a replica.
type replicationProbes struct{ redisProbes }

var (
	_ agent.LeaderProbe    = replicationProbes{}
	_ agent.LeaderTransfer = replicationProbes{}
)

// Ready asks whether the server is a primary, or a replica that is connected to one.
func (p replicationProbes) Ready(ctx context.Context, address string) error {
	return p.ask(address, func(c *redis.Client) error { return replicates(ctx, c) })
}

// replicates returns why a replica is not connected to its primary; nil for a primary.
func replicates(ctx context.Context, c *redis.Client) error {
	info, err := c.Info(ctx, "replication").Result()
	if err != nil || infoField(info, "role") == "master" || infoField(info, "master_link_status") == "up" {
		return err
	}
	return errors.New("the replica has no primary")
}

func (p replicationProbes) Leads(ctx context.Context, address string) (leads bool, err error) {
	err = p.ask(address, func(c *redis.Client) error {
		info, err := c.Info(ctx, "replication").Result()
		leads = infoField(info, "role") == "master"
		return err
	})
	return leads, err
}

// TransferLeader asks a Sentinel for SENTINEL FAILOVER, which is how Sentinel's documentation has an operator replace a
// primary. It promotes a replica as if the primary could not be reached. FAILOVER, which first stops writes at the
// primary and waits for the replica, is for servers without Sentinels: Sentinels would fail over again (redis/redis#13118).
func (p replicationProbes) TransferLeader(ctx context.Context, address string) error {
	var sentinels []string
	err := p.ask(address, func(c *redis.Client) error {
		list, err := c.ClientList(ctx).Result()
		sentinels = sentinelsAmong(list)
		return err
	})
	if err != nil {
		return err
	}
	err = errors.New("no Sentinel is connected to the primary")
	for _, sentinel := range sentinels {
		client := redis.NewSentinelClient(redisOptions(sentinel))
		err = errors.Join(client.Failover(ctx, clients.FailoverName).Err(), client.Close())
		var refused redis.Error
		if err == nil || errors.As(err, &refused) { // a refusal is an answer: the others are not asked
			return err
		}
	}
	return err
}

// sentinelsAmong finds the addresses of Sentinels in a primary's answer to CLIENT LIST. A Sentinel names its
// connection for commands sentinel-ID-cmd.
func sentinelsAmong(list string) (addresses []string) {
	for line := range strings.Lines(list) {
		fields := redisFields(strings.Fields(line))
		host, _, err := net.SplitHostPort(fields["addr"])
		if err == nil && strings.HasPrefix(fields["name"], "sentinel-") && strings.HasSuffix(fields["name"], "-cmd") {
			addresses = append(addresses, net.JoinHostPort(host, strconv.Itoa(sentinelPort)))
		}
	}
	return addresses
}

// redisFields is a list such as "ip=10.0.0.4" and "port=6379" by name.
func redisFields(list []string) map[string]string {
	fields := make(map[string]string, len(list))
	for _, field := range list {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
	}
	return fields
}

// sentinelProbes asks a Sentinel.
type sentinelProbes struct{ redisProbes }

var _ agent.LeaderProbe = sentinelProbes{}

// Ready asks for a quorum, and for a replica that could be promoted.
func (p sentinelProbes) Ready(ctx context.Context, address string) error {
	client := redis.NewSentinelClient(redisOptions(address))
	defer client.Close()
	if err := client.CkQuorum(ctx, clients.FailoverName).Err(); err != nil {
		return err
	}
	replicas, err := client.Replicas(ctx, clients.FailoverName).Result()
	if err != nil {
		return err
	}
	for _, replica := range replicas {
		if replica["flags"] == "slave" {
			return nil
		}
	}
	return errors.New("the Sentinel knows no replica that is up")
}

// Leads is false: a Sentinel holds no data.
func (sentinelProbes) Leads(context.Context, string) (bool, error) { return false, nil }
