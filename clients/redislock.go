package clients

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"lockcheck/history"
)

// redisLockLib is the lock of github.com/bsm/redislock as it is.
type redisLockLib struct {
	redis   *redis.Client
	client  *redislock.Client
	handles handles[*redislock.Lock]
}

func openRedisLockLib(c Config) (Lock, error) {
	client, err := openSingleRedis(c)
	if err != nil {
		return nil, err
	}
	return &redisLockLib{redis: client, client: redislock.New(client)}, nil
}

// Acquire promises the lease from the time of the request, as a careful user
// would: the library itself takes no notice of how long the answer took.
func (l *redisLockLib) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	start := history.Now()
	handle, err := l.client.Obtain(ctx, a.Key, a.TTL, nil)
	switch {
	case errors.Is(err, redislock.ErrNotObtained):
		return Grant{}, &BusyError{}
	case err != nil:
		return Grant{}, redisOutcome(err)
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
	err := handle.Refresh(ctx, ttl, nil)
	switch {
	case errors.Is(err, redislock.ErrNotObtained):
		return 0, ErrNotHeld
	case err != nil:
		return 0, redisOutcome(err)
	}
	return start + ttl.Nanoseconds(), nil
}

// errNoHandle is the outcome of taking back an attempt whose answer was lost:
// the library gives no way to do it, and the lock may stay until its lease ends.
var errNoHandle = errors.New("the library has no handle of this attempt")

func (l *redisLockLib) Release(ctx context.Context, g Grant) error {
	handle, known := l.handles.take(g.ID)
	if !known {
		return errNoHandle
	}
	err := handle.Release(ctx)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return ErrNotHeld
	}
	if err != nil {
		return redisOutcome(err)
	}
	return nil
}

func (l *redisLockLib) Close() error { return l.redis.Close() }
