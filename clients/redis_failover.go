//go:build !embedded

package clients

import "github.com/redis/go-redis/v9"

// openRedisFailover is the lock on one Redis, at the primary that the Sentinels currently name.
func openRedisFailover(c Config) (Lock, error) {
	lost := new(lostAnswers)
	return &redisLock{client: &redisClient{redisCommands: dialFailover(c, lost), lost: lost}}, nil
}

func dialFailover(c Config, lost *lostAnswers) *redis.Client {
	settings := &redis.FailoverOptions{
		MasterName: FailoverName, SentinelAddrs: c.Nodes,
		ContextTimeoutEnabled: c.options.has(CallDeadlines),
	}
	if c.options.has(noRetries) {
		settings.MaxRetries = -1
	}
	client := redis.NewFailoverClient(settings)
	client.Options().Limiter = lost // FailoverOptions has no field for a Limiter
	return client
}
