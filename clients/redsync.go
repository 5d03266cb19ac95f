package clients

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"lockcheck/history"
)

// redsyncLock is Redlock as github.com/go-redsync/redsync has it.
type redsyncLock struct {
	clients []*redis.Client
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
		client := newRedisClient(addr, c.Worker)
		lock.clients = append(lock.clients, client)
		pools = append(pools, goredis.NewPool(client))
	}
	lock.redsync = redsync.New(pools...)
	return lock, nil
}

func (l *redsyncLock) quorum() int { return len(l.clients)/2 + 1 }

// Acquire makes one attempt. The library takes a failed one back, and does not say
// whether it could.
func (l *redsyncLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	mutex := l.redsync.NewMutex(a.Key, redsync.WithExpiry(a.TTL),
		redsync.WithGenValueFunc(func() (string, error) { return a.ID, nil }))
	err := mutex.TryLockContext(ctx)
	var taken *redsync.ErrTaken
	switch {
	case errors.As(err, &taken):
		return Grant{}, &BusyError{}
	case err != nil:
		return Grant{}, err
	}
	l.handles.put(a.ID, mutex)
	return Grant{Key: a.Key, ID: a.ID, Until: monotonic(mutex.Until())}, nil
}

// monotonic puts a time that was computed from time.Now on the clock of a
// history.
func monotonic(t time.Time) int64 { return history.Now() + time.Until(t).Nanoseconds() }

// Renew extends by the expiry that the mutex was made with.
func (l *redsyncLock) Renew(ctx context.Context, g Grant, _ time.Duration) (int64, error) {
	mutex, known := l.handles.get(g.ID)
	if !known {
		return 0, ErrNotHeld
	}
	done, err := mutex.ExtendContext(ctx)
	if !done {
		return 0, l.refusal(err)
	}
	return monotonic(mutex.Until()), nil
}

func (l *redsyncLock) Release(ctx context.Context, g Grant) error {
	mutex, known := l.handles.take(g.ID)
	if !known {
		return errNoHandle
	}
	if done, err := mutex.UnlockContext(ctx); !done {
		return l.refusal(err)
	}
	return nil
}

// refusal says what the failure of a release or renewal means: not held, if a
// majority of the servers answered so.
func (l *redsyncLock) refusal(err error) error {
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) || notHeldOn(err) >= l.quorum() {
		return ErrNotHeld
	}
	return fmt.Errorf("no majority: %w", err)
}

// notHeldOn counts the servers that did not know the lock, in the joined errors
// of the library.
func notHeldOn(err error) int {
	if many := joined(err); many != nil {
		n := 0
		for _, e := range many {
			n += notHeldOn(e)
		}
		return n
	}
	var taken *redsync.ErrNodeTaken
	if errors.Is(err, redsync.ErrLockAlreadyExpired) || errors.As(err, &taken) {
		return 1
	}
	return 0
}

// joined returns the parts of a joined error; nil for any other. Until 4.12 the
// library joined errors by a module that is older than errors.Join.
func joined(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	case interface{ WrappedErrors() []error }:
		return e.WrappedErrors()
	}
	return nil
}

func (l *redsyncLock) Close() error {
	var errs []error
	for _, client := range l.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}
