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

// releaseScript and renewScript act only if the caller is still the holder, as the documentation of SET
// requires: a plain DEL could remove another client's lock.
var (
	releaseScript = redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)
	renewScript   = redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end return 0`)
)

// redisLock is the lock on one Redis: SET key id NX GET PX ttl.
type redisLock struct{ client *redisClient }

func openRedis(c Config) (Lock, error) {
	return openSingleRedis(c, func(client *redisClient) Lock { return &redisLock{client: client} })
}

func openRedlock(c Config) (Lock, error) {
	// The algorithm includes a timeout for each request, which go-redis respects only with CallDeadlines.
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

// redisClient is a go-redis client with the count of lost answers, which is needed to classify an outcome.
type redisClient struct {
	redisCommands
	lost *lostAnswers
	// tag precedes the names of all keys; "" for none.
	tag string
}

// redisCommands is the common part of go-redis clients and of their single connections.
type redisCommands interface {
	redis.Cmdable
	Close() error
}

func newRedisClient(addr string, options optionSet) *redisClient {
	lost := new(lostAnswers)
	return &redisClient{redisCommands: dialRedis(addr, options, lost), lost: lost}
}

// dialRedis uses go-redis's default settings, except where an option changes them.
func dialRedis(addr string, options optionSet, lost *lostAnswers) *redis.Client {
	settings := &redis.Options{Addr: addr, ContextTimeoutEnabled: options.has(CallDeadlines), Limiter: lost}
	if options.has(noRetries) {
		settings.MaxRetries = -1
	}
	return redis.NewClient(settings)
}

// lostAnswers counts the requests of a client that may have been carried out although no answer arrived.
// go-redis retries such a request and returns only the last answer, which may result from the first try. Then a
// key is taken by the attempt itself, or a lock is not held because it was just released.
//
// It implements Limiter, which go-redis calls before each request and after it with the result. It limits
// nothing.
type lostAnswers struct{ n atomic.Int64 }

func (l *lostAnswers) Allow() error { return nil }

func (l *lostAnswers) ReportResult(err error) {
	if err != nil && !harmless(err) {
		l.n.Add(1)
	}
}

// harmless reports whether a request certainly had no effect: the server answered with an error, or the request
// was never sent. Once a request is sent, go-redis only respects the context's deadline, and reports it as a
// timeout of the connection.
func harmless(err error) bool {
	var answer redis.Error
	var op *net.OpError
	return errors.As(err, &answer) || errors.As(err, &op) && op.Op == "dial" ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, redis.ErrPoolTimeout)
}

// outcome makes a call and classifies its error. A refusal is certain only if no answer was lost in the
// meantime.
func (c *redisClient) outcome(call func() error) error {
	before := c.lost.n.Load()
	err := call()
	switch {
	case err == nil:
		return nil
	case c.lost.n.Load() != before:
		return fmt.Errorf("after a lost answer: %v", err) // %v instead of %w, so that OutcomeOf returns Unknown
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
			return nil // with GET, an empty answer means that there was no holder
		case err == nil:
			return &BusyError{Holder: holder}
		}
		return err
	})
}

// holds reports whether the key belongs to the grant.
func (c *redisClient) holds(ctx context.Context, g Grant) (bool, error) {
	holder, err := c.Get(ctx, c.tag+g.Key).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil && holder == g.ID, err
}

// release removes the key if it belongs to the grant.
func (c *redisClient) release(ctx context.Context, g Grant) error {
	return c.outcome(func() error { return c.run(ctx, releaseScript, g) })
}

// renew extends the lease if the key belongs to the grant. A retry after a successful renewal succeeds, too, so
// a refusal is always certain.
func (c *redisClient) renew(ctx context.Context, g Grant, ttl time.Duration) error {
	return c.run(ctx, renewScript, g, ttl.Milliseconds())
}

// run runs a script that checks the owner; ErrNotHeld if it did nothing.
func (c *redisClient) run(ctx context.Context, script *redis.Script, g Grant, args ...any) error {
	done, err := script.Eval(ctx, c, []string{c.tag + g.Key}, append([]any{g.ID}, args...)...).Int()
	if err == nil && done == 0 {
		return ErrNotHeld
	}
	return err
}
