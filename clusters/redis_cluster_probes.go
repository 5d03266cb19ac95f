//go:build !embedded

package clusters

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
)

// clusterProbes asks a server of a cluster.
type clusterProbes struct{ redisProbes }

var (
	_ agent.LeaderProbe    = clusterProbes{}
	_ agent.LeaderTransfer = clusterProbes{}
)

// Ready asks whether all slots are served, as this server knows it, and whether a replica is connected to its
// primary.
func (p clusterProbes) Ready(ctx context.Context, address string) error {
	return p.ask(address, func(c *redis.Client) error {
		info, err := c.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		if infoField(info, "cluster_state") != "ok" {
			return errors.New("the cluster does not serve all slots")
		}
		return replicates(ctx, c)
	})
}

// Leads asks whether the server owns the keys of the lock. It redirects for a key that another server owns, and
// serves none when it is cut off.
func (p clusterProbes) Leads(ctx context.Context, address string) (leads bool, err error) {
	err = p.ask(address, func(c *redis.Client) error {
		var refused redis.Error
		err := c.Exists(ctx, clients.ClusterTag).Err()
		leads = err == nil
		if errors.As(err, &refused) {
			return nil
		}
		return err
	})
	return leads, err
}

// TransferLeader asks a replica of the primary for CLUSTER FAILOVER, which only a replica carries out. The primary first
// stops writes and waits until the replica has everything.
func (p clusterProbes) TransferLeader(ctx context.Context, address string) error {
	var replica string
	err := p.ask(address, func(c *redis.Client) error {
		info, err := c.Info(ctx, "replication").Result()
		replica = replicaIn(infoField(info, "slave0"))
		return err
	})
	switch {
	case err != nil:
		return err
	case replica == "":
		return errors.New("no replica is connected to the primary")
	}
	return p.ask(replica, func(c *redis.Client) error { return c.ClusterFailover(ctx).Err() })
}

// replicaIn returns the address of a replica in a field of INFO such as "ip=10.0.0.4,port=6379,state=online"; "" for
// none.
func replicaIn(field string) string {
	values := redisFields(strings.Split(field, ","))
	if values["ip"] == "" {
		return ""
	}
	return net.JoinHostPort(values["ip"], values["port"])
}
