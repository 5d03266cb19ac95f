//go:build !embedded

package clients

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// Scripts on a hash with one field. Its name is the holder, and its value is how often the holder has acquired the lock.
var (
	acquireAgainScript = redis.NewScript(`
if redis.call("EXISTS", KEYS[1]) == 1 and redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then
	return redis.call("HKEYS", KEYS[1])[1]
end
redis.call("HINCRBY", KEYS[1], ARGV[1], 1)
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return ""`)
	releaseOnceScript = redis.NewScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return -1 end
local count = redis.call("HINCRBY", KEYS[1], ARGV[1], -1)
if count == 0 then redis.call("DEL", KEYS[1]) end
return count`)
	keepScript = redis.NewScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call("PEXPIRE", KEYS[1], ARGV[2])`)
)

// redisReentrant is a lock that its holder may acquire again, in the manner of Redisson's RLock, but without the latch
// that makes a repeated unlock harmless there. A watchdog renews the lease for as long as the hold count is above 0.
// An acquire ends by the timeouts and retries of the client library, not by a deadline of its caller.
type redisReentrant struct {
	config Config
	client *redisClient
	// renewals is a client of the watchdogs, whose lost answers say nothing about other calls.
	renewals  *redisClient
	watchdogs handles[context.CancelFunc]
}

func openRedisReentrant(c Config) (Lock, error) {
	return openSingleRedis(c, func(client *redisClient) Lock {
		return &redisReentrant{config: c, client: client, renewals: newRedisClient(c.Nodes[0], c.options)}
	})
}

func (l *redisReentrant) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	ctx = context.WithoutCancel(ctx)
	answered := l.config.renewals(a)(true)
	err := l.client.outcome(func() error {
		holder, err := acquireAgainScript.Eval(ctx, l.client, []string{a.Key}, a.ID, a.TTL.Milliseconds()).Text()
		if err == nil && holder != "" {
			return &BusyError{Holder: holder}
		}
		return err
	})
	answered(err)
	if err != nil {
		return Grant{}, err
	}
	if _, watched := l.watchdogs.get(a.ID); !watched {
		watching, stop := context.WithCancel(ctx)
		l.watchdogs.put(a.ID, stop)
		go l.watch(watching, a)
	}
	return Grant{Key: a.Key, ID: a.ID}, nil
}

// watch renews the lease of an attempt every third of the lease, until the lock is gone.
func (l *redisReentrant) watch(ctx context.Context, a Attempt) {
	ticks := time.NewTicker(a.TTL / 3)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		answered := l.config.renewals(a)(false)
		renewed, err := keepScript.Eval(ctx, l.renewals, []string{a.Key}, a.ID, a.TTL.Milliseconds()).Int()
		if err == nil && renewed == 0 {
			err = ErrNotHeld
		}
		answered(err)
		if errors.Is(err, ErrNotHeld) {
			l.stopWatching(a.ID)
			return
		}
	}
}

// stopWatching ends the watchdog of an attempt, if it has one.
func (l *redisReentrant) stopWatching(attempt string) {
	if stop, known := l.watchdogs.take(attempt); known {
		stop()
	}
}

// Release lowers the hold count by one. The watchdog stops when the count is 0.
func (l *redisReentrant) Release(ctx context.Context, g Grant) error {
	left := -1
	err := l.client.outcome(func() (err error) {
		if left, err = releaseOnceScript.Eval(ctx, l.client, []string{g.Key}, g.ID).Int(); err == nil && left < 0 {
			return ErrNotHeld
		}
		return err
	})
	if err == nil && left == 0 || errors.Is(err, ErrNotHeld) {
		l.stopWatching(g.ID)
	}
	return err
}

// Holds implements Asker.
func (l *redisReentrant) Holds(ctx context.Context, g Grant) (bool, error) {
	return l.client.HExists(ctx, g.Key, g.ID).Result()
}

func (l *redisReentrant) Close() error {
	for _, stop := range l.watchdogs.takeAll() {
		stop()
	}
	return errors.Join(l.client.Close(), l.renewals.Close())
}
