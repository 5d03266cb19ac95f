//go:build !embedded

package clients

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Scripts on a hash with one field. Its name is the holder, and its value is how often the holder has acquired the lock.
var (
	acquireAgainScript = redis.NewScript(`
if redis.call("EXISTS", KEYS[1]) == 1 and redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then
	return {redis.call("HKEYS", KEYS[1])[1], redis.call("PTTL", KEYS[1])}
end
redis.call("HINCRBY", KEYS[1], ARGV[1], 1)
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return {"", 0}`)
	releaseOnceScript = redis.NewScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return -1 end
local count = redis.call("HINCRBY", KEYS[1], ARGV[1], -1)
if count == 0 then
	redis.call("DEL", KEYS[1])
	redis.call("PUBLISH", ARGV[2], ARGV[1])
end
return count`)
	keepScript = redis.NewScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call("PEXPIRE", KEYS[1], ARGV[2])`)
)

// redisReentrant is a lock that its holder may acquire again, in the manner of Redisson's RLock, but without the latch
// that makes a repeated unlock harmless there. A watchdog renews the lease for as long as the hold count is above 0.
// A request ends by the timeouts and retries of the client library, not by a deadline of its caller.
type redisReentrant struct {
	config Config
	client *redisClient
	// renewals is a client of the watchdogs, whose lost answers say nothing about other calls.
	renewals  *redisClient
	watchdogs handles[context.CancelFunc]
	// subscriber is a client for subscriptions; nil if a refused attempt does not wait.
	subscriber *redis.Client
}

func openRedisReentrant(c Config) (Lock, error) {
	return openSingleRedis(c, func(client *redisClient) Lock {
		l := &redisReentrant{config: c, client: client, renewals: newRedisClient(c.Nodes[0], c.options)}
		if c.options.has(subscribe) {
			l.subscriber = redis.NewClient(&redis.Options{Addr: c.Nodes[0], Dialer: dialUnlessSilent})
		}
		return l
	})
}

// subscriptionSilence is how long a server may leave a ping unacknowledged before its connection counts as dead.
// Redisson closes a connection whose ping is not answered (pingConnectionInterval, 30 s by default). go-redis pings a
// subscription every 3 s and does not wait for the answer, so without this limit the kernel would keep a dead
// connection for a quarter of an hour.
const subscriptionSilence = 3 * time.Second

// dialUnlessSilent connects to a server, and has the kernel close the connection when the server falls silent.
func dialUnlessSilent(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: subscriptionSilence, Control: limitSilence(subscriptionSilence)}
	return dialer.DialContext(ctx, network, addr)
}

func (l *redisReentrant) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	left, err := l.try(ctx, a)
	if l.subscriber != nil && OutcomeOf(err) == Busy {
		err = l.await(ctx, a, left, err)
	}
	if err != nil {
		return Grant{}, err
	}
	if _, watched := l.watchdogs.get(a.ID); !watched {
		watching, stop := context.WithCancel(context.WithoutCancel(ctx))
		l.watchdogs.put(a.ID, stop)
		go l.watch(watching, a)
	}
	return Grant{Key: a.Key, ID: a.ID}, nil
}

// try asks for the lock once. If it is refused, left is the rest of the holder's lease.
func (l *redisReentrant) try(ctx context.Context, a Attempt) (left time.Duration, err error) {
	ctx = context.WithoutCancel(ctx)
	answered := l.config.renewals(a)(true)
	err = l.client.outcome(func() error {
		answer, err := acquireAgainScript.Eval(ctx, l.client, []string{a.Key}, a.ID, a.TTL.Milliseconds()).Slice()
		if err != nil {
			return err
		}
		if holder := answer[0].(string); holder != "" {
			left = time.Duration(answer[1].(int64)) * time.Millisecond
			return &BusyError{Holder: holder}
		}
		return nil
	})
	answered(err)
	return left, err
}

// await waits in the manner of Redisson's RLock after a refused attempt. It subscribes to the releases of the lock and
// tries again when the subscription is confirmed. Then it tries after each message, and when the lease that the last
// refusal named is over. A message that is published while the connection is down is lost, because the server keeps
// none.
func (l *redisReentrant) await(ctx context.Context, a Attempt, left time.Duration, refusal error) error {
	over := time.After(left)
	subscription := l.subscriber.Subscribe(ctx, releasesOf(a.Key))
	defer func() { go subscription.Close() }() // it waits for an attempt to reconnect
	messages := subscription.ChannelWithSubscriptions()
	for confirmed := false; ; {
		select {
		case <-ctx.Done():
			return refusal
		case <-over:
		case message := <-messages:
			_, isConfirmation := message.(*redis.Subscription)
			reconnected := isConfirmation && confirmed
			confirmed = confirmed || isConfirmation
			if reconnected && !l.config.options.has(retryOnReconnect) {
				continue
			}
		}
		if left, refusal = l.try(ctx, a); OutcomeOf(refusal) != Busy {
			return refusal
		}
		over = time.After(left)
	}
}

// releasesOf is the channel on which releases of a lock are published.
func releasesOf(key string) string { return "releases:" + key }

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
		if left, err = releaseOnceScript.Eval(ctx, l.client, []string{g.Key}, g.ID, releasesOf(g.Key)).Int(); err == nil && left < 0 {
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
	errs := []error{l.client.Close(), l.renewals.Close()}
	if l.subscriber != nil {
		errs = append(errs, l.subscriber.Close())
	}
	return errors.Join(errs...)
}
