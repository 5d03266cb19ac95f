//go:build !embedded

package clients

import (
	"context"
	"time"
)

// natsDelete releases with a Delete that requires no revision, so it removes the key of whichever client holds
// the lock by then.
type natsDelete struct{ *natsLock }

func openNATSDelete(c Config) (Lock, error) {
	return openNATSAs(c, func(l *natsLock) Lock { return natsDelete{l} })
}

func (l natsDelete) Release(ctx context.Context, g Grant) error {
	l.revisions.take(g.ID)
	return natsOutcome(l.kv.Delete(ctx, natsKey(g.Key)))
}

// natsUpdate renews with the library's Update, after which the key has no TTL.
type natsUpdate struct{ *natsLock }

func openNATSUpdate(c Config) (Lock, error) {
	return openNATSAs(c, func(l *natsLock) Lock { return natsUpdate{l} })
}

func (l natsUpdate) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	return l.renewBy(ctx, g, natsLease(ttl), func(revision uint64) (uint64, error) {
		return l.kv.Update(ctx, natsKey(g.Key), []byte(g.ID), revision)
	})
}

// natsFraction requests leases that are not rounded up to whole seconds.
type natsFraction struct{ *natsLock }

func openNATSFraction(c Config) (Lock, error) {
	return openNATSAs(c, func(l *natsLock) Lock { return natsFraction{l} })
}

func (l natsFraction) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	return l.create(ctx, a, a.TTL)
}

func (l natsFraction) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	return l.renewFor(ctx, g, ttl)
}
