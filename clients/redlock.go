package clients

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"lockcheck/history"
)

// redlockNodeTimeout bounds one request to one server: "small compared to the
// total lock auto-release time … in the 5-50 milliseconds range".
const redlockNodeTimeout = 50 * time.Millisecond

// redlock is the algorithm of the Redis documentation ("Distributed Locks with
// Redis", section The Redlock Algorithm), with the requests of one attempt sent
// to all servers at the same time, as its section Retry on Failure advises.
type redlock struct{ clients []*redisClient }

func openRedlock(c Config) (Lock, error) {
	if len(c.Nodes) < 3 || len(c.Nodes)%2 == 0 {
		return nil, fmt.Errorf("redlock needs an odd number of servers, at least three, not %d", len(c.Nodes))
	}
	lock := new(redlock)
	// The time limit of a request is part of the algorithm, and for go-redis a deadline.
	options := append(slices.Clone(c.options), callDeadlines)
	for _, addr := range c.Nodes {
		lock.clients = append(lock.clients, newRedisClient(addr, options))
	}
	return lock, nil
}

// redlockDrift is what the published client subtracts for clocks that run at
// different speeds: 1 % of the TTL and 2 ms for the servers' expiry precision.
func redlockDrift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

func (l *redlock) quorum() int { return len(l.clients)/2 + 1 }

// each runs f on every server at once, with the node timeout, and returns the
// errors in the order of the servers.
func (l *redlock) each(ctx context.Context, f func(context.Context, *redisClient) error) []error {
	errs := make([]error, len(l.clients))
	var all sync.WaitGroup
	for i, client := range l.clients {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, redlockNodeTimeout)
			defer cancel()
			errs[i] = f(ctx, client)
		})
	}
	all.Wait()
	return errs
}

func (l *redlock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	start := history.Now()
	votes := l.each(ctx, func(ctx context.Context, client *redisClient) error {
		return client.set(ctx, a)
	})
	until := start + (a.TTL - redlockDrift(a.TTL)).Nanoseconds()
	won := count(votes, Done)
	if won >= l.quorum() && history.Now() < until {
		return Grant{Key: a.Key, ID: a.ID, Until: until}, nil
	}
	if left := l.takeBack(ctx, a, votes); left >= l.quorum() {
		return Grant{}, fmt.Errorf("%d servers may still have this attempt", left)
	}
	return Grant{}, l.refusal(votes, won)
}

// takeBack releases an attempt that failed on every server, "even those it
// believed it was not able to lock". It returns on how many it may be left: they had
// or may have granted it, and did not confirm its removal.
func (l *redlock) takeBack(ctx context.Context, a Attempt, votes []error) (left int) {
	// A cancelled attempt must be taken back all the same.
	ctx = context.WithoutCancel(ctx)
	answers := l.each(ctx, func(ctx context.Context, client *redisClient) error {
		return client.release(ctx, Grant{Key: a.Key, ID: a.ID})
	})
	for i, answer := range answers {
		granted := OutcomeOf(votes[i]) == Done || OutcomeOf(votes[i]) == Unknown
		removed := OutcomeOf(answer) == Done || OutcomeOf(answer) == NotHeld
		if granted && !removed {
			left++
		}
	}
	return left
}

// refusal says why an attempt failed. It names a holder only if a majority did:
// a minority may show an attempt that never became a holder. A request whose
// outcome is unknown may still reach its server, but by itself it can no longer
// make this attempt a holder: its caller has given up.
func (l *redlock) refusal(votes []error, won int) error {
	seen := make(map[string]int)
	for _, err := range votes {
		var busy *BusyError
		if errors.As(err, &busy) {
			seen[busy.Holder]++
		}
	}
	for holder, n := range seen {
		if n >= l.quorum() {
			return &BusyError{Holder: holder}
		}
	}
	if won >= l.quorum() {
		return noEffect("validity over: a majority was locked too late")
	}
	return noEffect("no quorum: %d of %d", won, len(l.clients))
}

func (l *redlock) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	start := history.Now()
	votes := l.each(ctx, func(ctx context.Context, client *redisClient) error {
		return client.renew(ctx, g, ttl)
	})
	until := start + (ttl - redlockDrift(ttl)).Nanoseconds()
	if err := l.majority(votes); err != nil {
		return 0, err
	}
	return until, nil
}

func (l *redlock) Release(ctx context.Context, g Grant) error {
	return l.majority(l.each(ctx, func(ctx context.Context, client *redisClient) error {
		return client.release(ctx, g)
	}))
}

// Holds implements Asker. A majority decides: of two of them one server has answered to
// both, and a server that has let go of a grant never has it again.
func (l *redlock) Holds(ctx context.Context, g Grant) (bool, error) {
	err := l.majority(l.each(ctx, func(ctx context.Context, client *redisClient) error {
		holds, err := client.holds(ctx, g)
		if err == nil && !holds {
			err = ErrNotHeld
		}
		return err
	}))
	if errors.Is(err, ErrNotHeld) {
		return false, nil
	}
	return err == nil, err
}

func (l *redlock) Close() error {
	var errs []error
	for _, client := range l.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}

// majority tells what the answers to a release, a renewal or a question amount to.
func (l *redlock) majority(votes []error) error {
	switch {
	case count(votes, Done) >= l.quorum():
		return nil
	case count(votes, NotHeld) >= l.quorum():
		return ErrNotHeld
	default:
		return fmt.Errorf("%d of %d servers agreed, %d did not hold it",
			count(votes, Done), len(votes), count(votes, NotHeld))
	}
}

// count says how many of the errors have the outcome.
func count(errs []error, want Outcome) int {
	n := 0
	for _, err := range errs {
		if OutcomeOf(err) == want {
			n++
		}
	}
	return n
}
