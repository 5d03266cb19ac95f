//go:build !embedded

package clients

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
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
type redisLock struct{ client *redisClient }

func openRedis(c Config) (Lock, error) {
	return openSingleRedis(c, func(client *redisClient) Lock { return &redisLock{client: client} })
}

func openRedlock(c Config) (Lock, error) {
	// The time limit of a request is part of the algorithm, and for go-redis a deadline.
	options := append(slices.Clone(c.options), CallDeadlines)
	return newRedlock(c, func(addr string) redlockServer { return newRedisClient(addr, options) })
}

// openSingleRedis opens a lock that lives on one Redis.
func openSingleRedis(c Config, as func(*redisClient) Lock) (Lock, error) {
	if len(c.Nodes) != 1 {
		return nil, fmt.Errorf("this lock needs one Redis, not %d", len(c.Nodes))
	}
	return as(newRedisClient(c.Nodes[0], c.options)), nil
}

func (l *redisLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	start := history.Now()
	if err := l.client.set(ctx, a); err != nil {
		return Grant{}, err
	}
	return Grant{Key: a.Key, ID: a.ID, Until: start + a.TTL.Nanoseconds()}, nil
}

func (l *redisLock) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	start := history.Now()
	if err := l.client.renew(ctx, g, ttl); err != nil {
		return 0, err
	}
	return start + ttl.Nanoseconds(), nil
}

func (l *redisLock) Release(ctx context.Context, g Grant) error {
	return l.client.release(ctx, g)
}

// Holds implements Asker.
func (l *redisLock) Holds(ctx context.Context, g Grant) (bool, error) {
	return l.client.holds(ctx, g)
}

func (l *redisLock) Close() error { return l.client.Close() }

// redisClient is a client of go-redis, and what must be known of it to tell an outcome.
type redisClient struct {
	redisCommands
	lost *lostAnswers
	// tag comes before the names of all keys; "" for nothing.
	tag string
}

// redisCommands is what the clients of go-redis and a single connection of theirs have in common.
type redisCommands interface {
	redis.Cmdable
	Close() error
}

func newRedisClient(addr string, options optionSet) *redisClient {
	lost := new(lostAnswers)
	return &redisClient{redisCommands: dialRedis(addr, options, lost), lost: lost}
}

// dialRedis has the settings that go-redis has by itself.
func dialRedis(addr string, options optionSet, lost *lostAnswers) *redis.Client {
	settings := &redis.Options{Addr: addr, ContextTimeoutEnabled: options.has(CallDeadlines), Limiter: lost}
	if options.has(noRetries) {
		settings.MaxRetries = -1
	}
	return redis.NewClient(settings)
}

// lostAnswers counts the requests of a client that may have been carried out although
// nobody saw an answer. go-redis sends such a request again and tells of the last answer
// only, which may be to what an earlier one did: a key is taken, by the attempt that asks;
// a lock is not held, because it was just released. go-redis asks a Limiter before each
// request and tells it what came of it; this one limits nothing.
type lostAnswers struct{ n atomic.Int64 }

func (l *lostAnswers) Allow() error { return nil }

func (l *lostAnswers) ReportResult(err error) {
	if err != nil && !harmless(err) {
		l.n.Add(1)
	}
}

// harmless says whether nothing was done about a request: the server answered with an
// error, or it was never sent. Once it is sent go-redis no longer looks at a context but
// for its deadline, which is then a timeout of the connection.
func harmless(err error) bool {
	var answer redis.Error
	var op *net.OpError
	return errors.As(err, &answer) || errors.As(err, &op) && op.Op == "dial" ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, redis.ErrPoolTimeout)
}

// outcome makes a call and classifies its error. What it was refused with is certain only
// if no answer was lost in the meantime.
func (c *redisClient) outcome(call func() error) error {
	before := c.lost.n.Load()
	err := call()
	switch {
	case err == nil:
		return nil
	case c.lost.n.Load() != before:
		return fmt.Errorf("after a lost answer: %v", err) // not %w: of no class
	case OutcomeOf(err) == Unknown && harmless(err):
		return &NoEffectError{Err: err}
	}
	return err
}

// set makes one attempt.
func (c *redisClient) set(ctx context.Context, a Attempt) error {
	return c.outcome(func() error {
		holder, err := c.SetArgs(ctx, c.tag+a.Key, a.ID, redis.SetArgs{Mode: "NX", Get: true, TTL: a.TTL}).Result()
		switch {
		case errors.Is(err, redis.Nil):
			return nil // with GET an empty answer means that there was no holder
		case err == nil:
			return &BusyError{Holder: holder}
		}
		return err
	})
}

// holds asks whether the key is that of the grant.
func (c *redisClient) holds(ctx context.Context, g Grant) (bool, error) {
	holder, err := c.Get(ctx, c.tag+g.Key).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil && holder == g.ID, err
}

// release removes the key if it is that of the grant.
func (c *redisClient) release(ctx context.Context, g Grant) error {
	return c.outcome(func() error { return c.run(ctx, releaseScript, g) })
}

// renew extends the lease if the key is that of the grant. To do so twice is no failure, so
// that a refusal is certain.
func (c *redisClient) renew(ctx context.Context, g Grant, ttl time.Duration) error {
	return c.run(ctx, renewScript, g, ttl.Milliseconds())
}

// run runs an owner-checked script.
func (c *redisClient) run(ctx context.Context, script *redis.Script, g Grant, args ...any) error {
	done, err := script.Eval(ctx, c, []string{c.tag + g.Key}, append([]any{g.ID}, args...)...).Int()
	if err == nil && done == 0 {
		return ErrNotHeld
	}
	return err
}
