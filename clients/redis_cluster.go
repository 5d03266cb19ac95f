package clients

import "github.com/redis/go-redis/v9"

// ClusterTag stands before the names of all keys in a Redis Cluster. It is a hash tag: all keys
// are in its slot, so that one server at a time has them.
const ClusterTag = "{lock}"

// redisClusterOptions lacks what go-redis does not offer for a cluster: without being sent
// again a request does not follow its key to another server either.
func redisClusterOptions() []Option {
	options := redisOptions()
	return options[1:]
}

// openRedisCluster is the lock of one Redis, on the server of a cluster that has the key.
func openRedisCluster(c Config) (Lock, error) {
	lost := new(lostAnswers)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.Nodes, ContextTimeoutEnabled: c.options.has(callDeadlines),
	})
	client.OnNewNode(func(server *redis.Client) { server.Options().Limiter = lost }) // for which ClusterOptions has no place
	return &redisLock{client: &redisClient{redisCommands: client, lost: lost, tag: ClusterTag}}, nil
}
