package clients

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lockcheck/history"
)

// redlockNodeTimeout bounds one request to one server: "small compared to the total lock auto-release time … in
// the 5-50 milliseconds range".
const redlockNodeTimeout = 50 * time.Millisecond

const sequential = "sequential"

func askSequentially() Option {
	return Option{
		Name: sequential, Adds: "the servers are asked one after the other, as step 2 of the published algorithm says, and not all at once",
	}
}

// redlockServer is one of the independent servers that Redlock uses. Its errors are those of a Lock.
type redlockServer interface {
	set(ctx context.Context, a Attempt) error
	renew(ctx context.Context, g Grant, ttl time.Duration) error
	release(ctx context.Context, g Grant) error
	holds(ctx context.Context, g Grant) (bool, error)
	Close() error
}

// redlock is the algorithm of the Redis documentation ("Distributed Locks with Redis", section The Redlock
// Algorithm). It sends the requests of an attempt to all servers at once, as the section Retry on Failure
// advises. If sequential is set, it sends them one after the other.
type redlock struct {
	servers    []redlockServer
	sequential bool
}

func newRedlock(c Config, dial func(addr string) redlockServer) (Lock, error) {
	if len(c.Nodes) < 3 || len(c.Nodes)%2 == 0 {
		return nil, fmt.Errorf("redlock needs an odd number of servers, at least three, not %d", len(c.Nodes))
	}
	lock := &redlock{sequential: c.options.has(sequential)}
	for _, addr := range c.Nodes {
		lock.servers = append(lock.servers, dial(addr))
	}
	return lock, nil
}

// redlockDrift is what the published client subtracts for clocks with different speeds: 1 % of the TTL, and 2
// ms for the precision of the servers' expiry.
func redlockDrift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

func (l *redlock) quorum() int { return len(l.servers)/2 + 1 }

// each calls f for every server, with the node timeout, and returns the errors in the order of the servers.
func (l *redlock) each(ctx context.Context, f func(context.Context, redlockServer) error) []error {
	errs := make([]error, len(l.servers))
	ask := func(i int) {
		ctx, cancel := context.WithTimeout(ctx, redlockNodeTimeout)
		defer cancel()
		errs[i] = f(ctx, l.servers[i])
	}
	var all sync.WaitGroup
	for i := range l.servers {
		if l.sequential {
			ask(i)
		} else {
			all.Go(func() { ask(i) })
		}
	}
	all.Wait()
	return errs
}

func (l *redlock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	start := history.Now()
	votes := l.each(ctx, func(ctx context.Context, server redlockServer) error {
		return server.set(ctx, a)
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

// takeBack releases a failed attempt on every server, "even those it believed it was not able to lock". It
// returns the number of servers that may still have the attempt. They granted it, or may have granted it, and
// did not confirm its removal.
func (l *redlock) takeBack(ctx context.Context, a Attempt, votes []error) (left int) {
	// A cancelled attempt must be withdrawn all the same.
	ctx = context.WithoutCancel(ctx)
	answers := l.each(ctx, func(ctx context.Context, server redlockServer) error {
		return server.release(ctx, Grant{Key: a.Key, ID: a.ID})
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

// refusal returns why an attempt failed. It names a holder only if a majority named it: a minority may have an
// attempt that never became a holder.
//
// A request of unknown outcome may still reach its server. It cannot make this attempt a holder any more,
// because its caller has given up.
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
	return noEffect("no quorum: %d of %d", won, len(l.servers))
}

func (l *redlock) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	start := history.Now()
	votes := l.each(ctx, func(ctx context.Context, server redlockServer) error {
		return server.renew(ctx, g, ttl)
	})
	until := start + (ttl - redlockDrift(ttl)).Nanoseconds()
	if err := l.majority(votes); err != nil {
		return 0, err
	}
	return until, nil
}

// Release returns ErrNotHeld only if no server could have had the grant. If one server released it, others may
// have been able to get the lock before the rest answered that the lease was over.
func (l *redlock) Release(ctx context.Context, g Grant) error {
	votes := l.each(ctx, func(ctx context.Context, server redlockServer) error {
		return server.release(ctx, g)
	})
	err := l.majority(votes)
	if errors.Is(err, ErrNotHeld) && count(votes, NotHeld) < len(votes) {
		return fmt.Errorf("released on %d of %d servers, %d did not hold it", count(votes, Done), len(votes), count(votes, NotHeld))
	}
	return err
}

// Holds implements Asker. A majority decides: any two majorities share a server, and a server that has dropped
// a grant never has it again.
func (l *redlock) Holds(ctx context.Context, g Grant) (bool, error) {
	err := l.majority(l.each(ctx, func(ctx context.Context, server redlockServer) error {
		holds, err := server.holds(ctx, g)
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
	for _, server := range l.servers {
		errs = append(errs, server.Close())
	}
	return errors.Join(errs...)
}

// majority combines the servers' answers to a release, a renewal or a question.
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

// count returns how many of the errors have the outcome.
func count(errs []error, want Outcome) int {
	n := 0
	for _, err := range errs {
		if OutcomeOf(err) == want {
			n++
		}
	}
	return n
}
