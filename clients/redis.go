package clients

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"lockcheck/history"
)

// releaseScript and renewScript act only if the caller still is the holder, as
// the documentation of SET asks: a plain DEL would remove somebody else's lock.
var (
	releaseScript = redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)
	renewScript   = redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end return 0`)
)

// redisLock is the lock of one Redis: SET key id NX GET PX ttl.
type redisLock struct{ client *redis.Client }

func openRedis(c Config) (Lock, error) {
	client, err := openSingleRedis(c)
	if err != nil {
		return nil, err
	}
	return &redisLock{client: client}, nil
}

// openSingleRedis is for the locks that live on one Redis.
func openSingleRedis(c Config) (*redis.Client, error) {
	if len(c.Nodes) != 1 {
		return nil, fmt.Errorf("this lock needs one Redis, not %d", len(c.Nodes))
	}
	return newRedisClient(c.Nodes[0], c.Worker), nil
}

func (l *redisLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	start := history.Now()
	if err := redisSet(ctx, l.client, a); err != nil {
		return Grant{}, err
	}
	return Grant{Key: a.Key, ID: a.ID, Until: start + a.TTL.Nanoseconds()}, nil
}

func (l *redisLock) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	start := history.Now()
	if err := redisRun(ctx, l.client, renewScript, g, ttl.Milliseconds()); err != nil {
		return 0, err
	}
	return start + ttl.Nanoseconds(), nil
}

func (l *redisLock) Release(ctx context.Context, g Grant) error {
	return redisRun(ctx, l.client, releaseScript, g)
}

// Holds implements Asker.
func (l *redisLock) Holds(ctx context.Context, g Grant) (bool, error) {
	return redisHolds(ctx, l.client, g)
}

func (l *redisLock) Close() error { return l.client.Close() }

// newRedisClient never retries: go-redis would send SET NX again after a lost
// reply, see its own key, call that a failure and leak the lock until its TTL.
func newRedisClient(addr, name string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                  addr,
		ClientName:            name,
		Protocol:              2,
		MaxRetries:            -1,
		DialerRetries:         1,
		DialTimeout:           time.Second,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	})
}

// redisSet makes one attempt on one server.
func redisSet(ctx context.Context, client *redis.Client, a Attempt) error {
	holder, err := client.SetArgs(ctx, a.Key, a.ID, redis.SetArgs{Mode: "NX", Get: true, TTL: a.TTL}).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil // with GET an empty answer means that there was no holder
	case err != nil:
		return redisOutcome(err)
	default:
		return &BusyError{Holder: holder}
	}
}

// redisHolds asks one server whether the key is that of the grant.
func redisHolds(ctx context.Context, client *redis.Client, g Grant) (bool, error) {
	holder, err := client.Get(ctx, g.Key).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil && holder == g.ID, err
}

// redisRun runs an owner-checked script on one server.
func redisRun(ctx context.Context, client *redis.Client, script *redis.Script, g Grant, args ...any) error {
	done, err := script.Eval(ctx, client, []string{g.Key}, append([]any{g.ID}, args...)...).Int()
	switch {
	case err != nil:
		return redisOutcome(err)
	case done == 0:
		return ErrNotHeld
	}
	return nil
}

// redisOutcome marks the errors after which nothing can have happened: the
// server answered with an error, or no connection was made.
func redisOutcome(err error) error {
	var answer redis.Error
	var op *net.OpError
	if errors.As(err, &answer) || errors.As(err, &op) && op.Op == "dial" {
		return &NoEffectError{Err: err}
	}
	return err
}
