package clusters

import (
	"context"
	"fmt"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
)

// sessionUser is one client of a lock whose library keeps a session alive.
type sessionUser struct {
	t       *testing.T
	lock    clients.Lock
	name    string
	attempt int
}

// openSession opens a lock by its name.
func openSession(t *testing.T, name string, config clients.Config) *sessionUser {
	t.Helper()
	lock, err := mustLock(t, name).Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	return &sessionUser{t: t, lock: lock, name: config.Worker}
}

// acquire waits for the lock as long as ctx lasts.
func (u *sessionUser) acquire(ctx context.Context, key string, ttl time.Duration) (clients.Grant, error) {
	u.attempt++
	return u.lock.Acquire(ctx, clients.Attempt{Key: key, ID: fmt.Sprintf("%s-%d", u.name, u.attempt), TTL: ttl})
}

// held waits for the lock, and must get it.
func (u *sessionUser) held(key string, ttl time.Duration) clients.Grant {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	grant, err := u.acquire(ctx, key, ttl)
	if err != nil {
		u.t.Fatalf("%s acquires %s: %v", u.name, key, err)
	}
	return grant
}

// refused waits for a lock that it must not get. On a busy machine the time may be over
// before it has a session.
func (u *sessionUser) refused(key string) {
	u.t.Helper()
	clustertest.Eventually(u.t, patience, func() error {
		ctx, cancel := context.WithTimeout(u.t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := u.acquire(ctx, key, time.Minute)
		switch clients.OutcomeOf(err) {
		case clients.Done:
			u.t.Fatalf("%s acquires %s, which is held", u.name, key)
		case clients.Busy:
			return nil
		}
		return fmt.Errorf("%s acquires %s: %w, want busy", u.name, key, err)
	})
}

// released gives a grant back and wants the outcome.
func (u *sessionUser) released(grant clients.Grant, want clients.Outcome) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), 5*time.Second)
	defer cancel()
	if err := u.lock.Release(ctx, grant); clients.OutcomeOf(err) != want {
		u.t.Errorf("%s releases %s: %v, want outcome %d", u.name, grant.ID, err, want)
	}
}

// notified waits until the library tells that the lock is lost.
func (u *sessionUser) notified(grant clients.Grant) {
	u.t.Helper()
	select {
	case <-grant.Lost:
	case <-time.After(patience):
		u.t.Errorf("%s was not notified that %s is gone", u.name, grant.ID)
	}
}

// kept makes sure that the library takes the lock for held.
func (u *sessionUser) kept(grant clients.Grant) {
	u.t.Helper()
	select {
	case <-grant.Lost:
		u.t.Errorf("%s was notified that %s is gone", u.name, grant.ID)
	default:
	}
}
