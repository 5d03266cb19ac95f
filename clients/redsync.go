//go:build !embedded

package clients

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"lockcheck/history"
)

// redsyncLock is Redlock as implemented by github.com/go-redsync/redsync.
type redsyncLock struct {
	clients []*redisClient
	redsync *redsync.Redsync
	handles handles[*redsync.Mutex]
}

func openRedsync(c Config) (Lock, error) {
	if len(c.Nodes) == 0 {
		return nil, errors.New("redsync needs servers")
	}
	lock := new(redsyncLock)
	var pools []redsyncredis.Pool
	for _, addr := range c.Nodes {
		lost := new(lostAnswers)
		commands := dialRedis(addr, c.options, lost)
		lock.clients = append(lock.clients, &redisClient{redisCommands: commands, lost: lost})
		pools = append(pools, goredis.NewPool(commands))
	}
	lock.redsync = redsync.New(pools...)
	return lock, nil
}

func (l *redsyncLock) quorum() int { return len(l.clients)/2 + 1 }

// Acquire makes one attempt. The library withdraws a failed attempt, but does not report whether the withdrawal
// succeeded.
func (l *redsyncLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	mutex := l.redsync.NewMutex(a.Key, redsync.WithExpiry(a.TTL),
		redsync.WithGenValueFunc(func() (string, error) { return a.ID, nil }))
	before := l.lostAnswers()
	err := mutex.TryLockContext(ctx)
	switch {
	case err == nil:
		l.handles.put(a.ID, mutex)
		return Grant{Key: a.Key, ID: a.ID, Until: monotonic(mutex.Until())}, nil
	case l.refusals(err, before) >= l.quorum():
		return Grant{}, &BusyError{}
	}
	return Grant{}, err
}

// lostAnswers returns, for each server, how many answers were lost so far.
func (l *redsyncLock) lostAnswers() []int64 {
	var lost []int64
	for _, client := range l.clients {
		lost = append(lost, client.lost.n.Load())
	}
	return lost
}

// monotonic converts a time that was computed from time.Now to the clock of a history.
func monotonic(t time.Time) int64 { return history.Now() + time.Until(t).Nanoseconds() }

// Renew extends the lease by the expiry with which the mutex was created.
func (l *redsyncLock) Renew(ctx context.Context, g Grant, _ time.Duration) (int64, error) {
	mutex, known := l.handles.get(g.ID)
	if !known {
		return 0, ErrNotHeld
	}
	if done, err := mutex.ExtendContext(ctx); !done {
		// A retry after a successful renewal succeeds, too, so a refusal is certain.
		return 0, l.failure(err, l.lostAnswers())
	}
	return monotonic(mutex.Until()), nil
}

func (l *redsyncLock) Release(ctx context.Context, g Grant) error {
	return l.handles.release(g.ID, func(mutex *redsync.Mutex) error {
		before := l.lostAnswers()
		done, err := mutex.UnlockContext(ctx)
		switch {
		case done:
			return nil
		case l.refusals(err, before) == len(l.clients):
			return ErrNotHeld
		}
		// If one server released the lock, others may have been able to get it before the rest answered that
		// the lease was over.
		return fmt.Errorf("no majority: %w", err)
	})
}

// failure classifies the failure of a renewal: ErrNotHeld if a majority of the servers answered so.
func (l *redsyncLock) failure(err error, before []int64) error {
	if l.refusals(err, before) >= l.quorum() {
		return ErrNotHeld
	}
	return fmt.Errorf("no majority: %w", err)
}

// refusals counts the servers that certainly refused. If a server's answer was lost in the meantime, its
// refusal may result from the first try and does not count.
func (l *redsyncLock) refusals(err error, before []int64) int {
	certain := make(map[int]bool)
	lossy, expired := 0, 0
	for node, now := range l.lostAnswers() {
		certain[node] = now == before[node]
		if now != before[node] {
			lossy++
		}
	}
	refused := make(map[int]bool)
	for _, part := range parts(err) {
		var quorum *redsync.ErrTaken
		var one *redsync.ErrNodeTaken
		switch {
		case errors.As(part, &quorum):
			for _, node := range quorum.Nodes {
				refused[node] = certain[node]
			}
		case errors.As(part, &one):
			refused[one.Node] = certain[one.Node]
		case errors.Is(part, redsync.ErrLockAlreadyExpired):
			expired++ // the library does not name this server
		}
	}
	n := max(0, expired-lossy)
	for _, sure := range refused {
		if sure {
			n++
		}
	}
	return n
}

// parts flattens joined errors. Until 4.12 the library joined errors with a module that is older than
// errors.Join.
func parts(err error) []error {
	var joined []error
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		joined = e.Unwrap()
	case interface{ WrappedErrors() []error }:
		joined = e.WrappedErrors()
	default:
		return []error{err}
	}
	var all []error
	for _, e := range joined {
		all = append(all, parts(e)...)
	}
	return all
}

func (l *redsyncLock) Close() error {
	var errs []error
	for _, client := range l.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}
