//go:build !embedded

package clients

import (
	"context"
)

// redisNoExpiry is SET NX without a lease: if the holder dies, the lock is never released.
type redisNoExpiry struct{ client *redisClient }

func openRedisNoExpiry(c Config) (Lock, error) {
	return openSingleRedis(c, func(client *redisClient) Lock { return &redisNoExpiry{client: client} })
}

func (l *redisNoExpiry) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	a.TTL = 0 // go-redis: no expiry
	if err := l.client.set(ctx, a); err != nil {
		return Grant{}, err
	}
	return Grant{Key: a.Key, ID: a.ID}, nil
}

func (l *redisNoExpiry) Release(ctx context.Context, g Grant) error {
	return l.client.release(ctx, g)
}

func (l *redisNoExpiry) Close() error { return l.client.Close() }

// redisUnsafeRelease releases with a plain DEL, whichever client holds the lock by then.
type redisUnsafeRelease struct{ redisLock }

func openRedisUnsafeRelease(c Config) (Lock, error) {
	return openSingleRedis(c, func(client *redisClient) Lock { return &redisUnsafeRelease{redisLock{client: client}} })
}

func (l *redisUnsafeRelease) Release(ctx context.Context, g Grant) error {
	return l.client.outcome(func() error {
		removed, err := l.client.Del(ctx, g.Key).Result()
		if err == nil && removed == 0 {
			return ErrNotHeld
		}
		return err
	})
}
