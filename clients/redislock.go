//go:build !embedded

package clients

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"

	"lockcheck/history"
)

// redisLockLib is the lock of github.com/bsm/redislock, used unmodified.
type redisLockLib struct {
	redis   *redisClient
	client  *redislock.Client
	handles handles[*redislock.Lock]
}

func openRedisLockLib(c Config) (Lock, error) {
	return openSingleRedis(c, func(client *redisClient) Lock {
		return &redisLockLib{redis: client, client: redislock.New(client)}
	})
}

// Acquire counts the validity from before the request, because the library ignores how long the answer took. If
// go-redis retries the request, the retry renews what the first try was granted.
func (l *redisLockLib) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	start := history.Now()
	var handle *redislock.Lock
	err := l.redis.outcome(func() (err error) {
		handle, err = l.client.Obtain(ctx, a.Key, a.TTL, nil)
		if errors.Is(err, redislock.ErrNotObtained) {
			return &BusyError{}
		}
		return err
	})
	if err != nil {
		return Grant{}, err
	}
	l.handles.put(a.ID, handle)
	return Grant{Key: a.Key, ID: a.ID, Until: start + a.TTL.Nanoseconds()}, nil
}

func (l *redisLockLib) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	handle, known := l.handles.get(g.ID)
	if !known {
		return 0, ErrNotHeld
	}
	start := history.Now()
	if err := redisLockError(handle.Refresh(ctx, ttl, nil)); err != nil {
		return 0, err
	}
	return start + ttl.Nanoseconds(), nil
}

func (l *redisLockLib) Release(ctx context.Context, g Grant) error {
	return l.handles.release(g.ID, func(handle *redislock.Lock) error {
		return l.redis.outcome(func() error { return redisLockError(handle.Release(ctx)) })
	})
}

// redisLockError translates the library's errors for a lost lock into ErrNotHeld.
func redisLockError(err error) error {
	if errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, redislock.ErrLockNotHeld) {
		return ErrNotHeld
	}
	return err
}

func (l *redisLockLib) Close() error { return l.redis.Close() }
