//go:build !embedded

package clients

import "github.com/redis/go-redis/v9"

// openRedisCluster is the lock of one Redis, on the server of a cluster that has the key.
func openRedisCluster(c Config) (Lock, error) {
	lost := new(lostAnswers)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.Nodes, ContextTimeoutEnabled: c.options.has(CallDeadlines),
	})
	client.OnNewNode(func(server *redis.Client) { server.Options().Limiter = lost }) // for which ClusterOptions has no place
	return &redisLock{client: &redisClient{redisCommands: client, lost: lost, tag: ClusterTag}}, nil
}
