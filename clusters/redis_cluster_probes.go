//go:build !embedded

package clusters

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
)

// clusterProbes asks a server of a cluster.
type clusterProbes struct{ redisProbes }

var _ agent.LeaderProbe = clusterProbes{}

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
