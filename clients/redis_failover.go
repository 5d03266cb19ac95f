package clients

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// FailoverName is the name under which Sentinels know the primary.
const FailoverName = "lock"

// openRedisFailover is the lock of one Redis, on the primary that the Sentinels
// name at the moment.
func openRedisFailover(c Config) (Lock, error) {
	return &redisLock{client: redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:            FailoverName,
		SentinelAddrs:         c.Nodes,
		ClientName:            c.Worker,
		Protocol:              2,
		MaxRetries:            -1,
		DialerRetries:         1,
		DialTimeout:           time.Second,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	})}, nil
}
