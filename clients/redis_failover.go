package clients

import "github.com/redis/go-redis/v9"

// FailoverName is the name under which Sentinels know the primary.
const FailoverName = "lock"

// openRedisFailover is the lock of one Redis, on the primary that the Sentinels
// name at the moment.
func openRedisFailover(c Config) (Lock, error) {
	settings := &redis.FailoverOptions{
		MasterName: FailoverName, SentinelAddrs: c.Nodes,
		ContextTimeoutEnabled: c.options.has(callDeadlines),
	}
	if c.options.has(noRetries) {
		settings.MaxRetries = -1
	}
	client := &redisClient{Client: redis.NewFailoverClient(settings)}
	client.Options().Limiter = &client.lost // for which FailoverOptions has no place
	return &redisLock{client: client}, nil
}
