//go:build !embedded

package clients

import "github.com/redis/go-redis/v9"

// openRedisCluster is the lock on one Redis, at the server of a cluster that owns the key.
func openRedisCluster(c Config) (Lock, error) {
	lost := new(lostAnswers)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.Nodes, ContextTimeoutEnabled: c.options.has(CallDeadlines),
	})
	client.OnNewNode(func(server *redis.Client) { server.Options().Limiter = lost }) // ClusterOptions has no field for a Limiter
	return &redisLock{client: &redisClient{redisCommands: client, lost: lost, tag: ClusterTag}}, nil
}
