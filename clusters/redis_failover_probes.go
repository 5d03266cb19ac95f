//go:build !embedded

package clusters

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
)

// replicationProbes asks a Redis that is a primary or a replica.
type replicationProbes struct{ redisProbes }

var _ agent.LeaderProbe = replicationProbes{}

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
