//go:build !embedded

package clients

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// waitReplicas is how many replicas must have a grant.
	waitReplicas = 1
	// waitLimit is how long the primary waits for the replicas. It is shorter than the deadline of a call.
	waitLimit = 500 * time.Millisecond
)

// errNotReplicated has an Unknown outcome: the key exists, and a replica may still receive it.
var errNotReplicated = errors.New("no replica had it in time")

// redisWait is the lock on one Redis with a replica. A grant or a renewal counts only if WAIT confirms that a
// replica has it.
type redisWait struct {
	redisLock
	primary *redis.Client
}

func openRedisWait(c Config) (Lock, error) {
	lost := new(lostAnswers)
	primary := dialFailover(c, lost)
	return &redisWait{redisLock{client: &redisClient{redisCommands: primary, lost: lost}}, primary}, nil
}

func (l *redisWait) Acquire(ctx context.Context, a Attempt) (grant Grant, err error) {
	err = l.replicated(ctx, func(on *redisLock) error {
		grant, err = on.Acquire(ctx, a)
		return err
	})
	return grant, err
}

func (l *redisWait) Renew(ctx context.Context, g Grant, ttl time.Duration) (until int64, err error) {
	err = l.replicated(ctx, func(on *redisLock) error {
		until, err = on.Renew(ctx, g, ttl)
		return err
	})
	return until, err
}

// replicated makes a change and waits until a replica has it, both on one connection. WAIT covers only the
// writes of its own connection. On a connection to a new primary, it would confirm nothing about a write to the
// former one.
func (l *redisWait) replicated(ctx context.Context, change func(on *redisLock) error) error {
	conn := l.primary.Conn()
	defer conn.Close() //nolint:errcheck // it goes back to its pool
	if err := change(&redisLock{client: &redisClient{redisCommands: conn, lost: l.client.lost}}); err != nil {
		return err
	}
	replicas, err := conn.Wait(ctx, waitReplicas, waitLimit).Result()
	switch {
	case err != nil:
		return fmt.Errorf("WAIT: %v", err) // %v instead of %w, so that OutcomeOf returns Unknown
	case replicas < waitReplicas:
		return errNotReplicated
	}
	return nil
}
