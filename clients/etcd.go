//go:build !embedded

package clients

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"lockcheck/history"
)

// etcdLock is Session and Mutex, or Election, of the client library, used as its documentation shows: one
// session, and a new recipe for each attempt. The lock does not watch the session while it is in use. An
// expired session is replaced before the next attempt.
type etcdLock struct {
	client   *clientv3.Client
	config   Config
	recipe   func(session *concurrency.Session, key string) etcdRecipe
	renewals *etcdRenewals
	// ownSession: each attempt has a session of its own.
	ownSession bool
	attempts   handles[etcdAttempt]

	mu      sync.Mutex
	session *concurrency.Session // nil before the first attempt
}

type etcdAttempt struct {
	session *concurrency.Session
	recipe  etcdRecipe
	granted bool
}

// etcdRecipe is the library's mutex or election for one attempt.
type etcdRecipe interface {
	Lock(ctx context.Context) error
	Unlock(ctx context.Context) error
	// token returns the create revision of the key after a successful Lock. It is the only number that no two
	// grants share.
	token() uint64
	// withdrawn reports whether a Lock that failed has deleted its key again.
	withdrawn() bool
}

type etcdMutex struct{ *concurrency.Mutex }

// token: the library exposes the revision only in the comparison that guards a transaction.
func (m etcdMutex) token() uint64 {
	owner := m.IsOwner()
	return uint64((*etcdserverpb.Compare)(&owner).GetCreateRevision())
}

// withdrawn: Mutex sets its key to a zero byte after it has deleted the real key.
func (m etcdMutex) withdrawn() bool { return m.Key() == "\x00" }

func openEtcd(c Config) (Lock, error) {
	return openEtcdRecipe(c, func(session *concurrency.Session, key string) etcdRecipe {
		return etcdMutex{concurrency.NewMutex(session, key)}
	})
}

func openEtcdRecipe(c Config, recipe func(*concurrency.Session, string) etcdRecipe) (Lock, error) {
	client, renewals, err := newEtcdClient(c)
	if err != nil {
		return nil, err
	}
	client.KV = etcdKV{client.KV}
	own := c.options.has(SessionPerAttempt) || c.NoKeepAlive
	renewals.shared = !own
	return &etcdLock{client: client, config: c, recipe: recipe, renewals: renewals, ownSession: own}, nil
}

// newEtcdClient creates a client with the settings that the library's README shows.
func newEtcdClient(c Config) (*clientv3.Client, *etcdRenewals, error) {
	renewals := &etcdRenewals{config: c}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: c.Nodes, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(renewals.intercept)}, // it only listens
	})
	return client, renewals, err
}

// Acquire implements Lock. The library itself withdraws an attempt that fails, and waits for that without a
// limit. If the withdrawal fails, the attempt stays in the queue for as long as its session lives.
func (l *etcdLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	asked := history.Now()
	session, ttl, err := l.open(ctx, a)
	if err != nil {
		return Grant{}, noEffect("session: %w", err)
	}
	attempt := etcdAttempt{session: session, recipe: l.recipe(session, a.Key)}
	if err := l.lock(ctx, attempt); err != nil {
		return Grant{}, l.failed(ctx, a, attempt, err)
	}
	attempt.granted = true
	l.attempts.put(a.ID, attempt)
	grant := Grant{Key: a.Key, ID: a.ID, Token: attempt.recipe.token()}
	switch {
	case l.config.NoKeepAlive:
		grant.Until = asked + ttl.Nanoseconds()
	case l.config.options.has(watchSession):
		grant.Lost = session.Done()
	}
	return grant, nil
}

// open returns the session of an attempt, and the lease that was granted to it; 0 for a shared session.
func (l *etcdLock) open(ctx context.Context, a Attempt) (*concurrency.Session, time.Duration, error) {
	if l.ownSession {
		return l.openAlone(ctx, a)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != nil && !closed(l.session.Done()) {
		return l.session, 0, nil
	}
	answered := l.config.renewing(Renewal{Opens: true})
	session, err := concurrency.NewSession(l.client, concurrency.WithTTL(int(wholeSeconds(cmp.Or(l.config.TTL, a.TTL)))))
	answered(err)
	if err != nil {
		return nil, 0, err
	}
	l.session = session
	return session, 0, nil
}

// openAlone creates a session for one attempt. The session outlives the attempt's context.
func (l *etcdLock) openAlone(ctx context.Context, a Attempt) (*concurrency.Session, time.Duration, error) {
	lease, err := l.renewals.grant(ctx, l.client, a)
	if err != nil {
		return nil, 0, err
	}
	session, err := concurrency.NewSession(l.client, concurrency.WithLease(lease.ID), concurrency.WithTTL(int(lease.TTL)))
	if err != nil {
		return nil, 0, err
	}
	if l.config.NoKeepAlive {
		session.Orphan()
	}
	l.attempts.put(a.ID, etcdAttempt{session: session})
	return session, time.Duration(lease.TTL) * time.Second, nil
}

// wholeSeconds rounds a lease up to whole seconds.
func wholeSeconds(ttl time.Duration) int64 { return int64((ttl + time.Second - 1) / time.Second) }

// lock waits for the attempt's turn. With a session of its own it abandons the library's call when ctx ends:
// revoking the lease voids whatever the call does later.
func (l *etcdLock) lock(ctx context.Context, a etcdAttempt) error {
	// With NoKeepAlive the library has closed Done at once, so it means nothing.
	if l.config.options.has(StopWaiting) && !l.config.NoKeepAlive {
		var stop context.CancelFunc
		ctx, stop = untilClosed(ctx, a.session.Done())
		defer stop()
	}
	if !l.ownSession {
		return a.recipe.Lock(ctx)
	}
	return doUntil(ctx, func() error { return a.recipe.Lock(ctx) })
}

// untilClosed returns a context that ends with ctx or when done is closed.
func untilClosed(ctx context.Context, done <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// failed returns an error that states the outcome of a failed attempt.
func (l *etcdLock) failed(ctx context.Context, a Attempt, attempt etcdAttempt, cause error) error {
	over := ctx.Err() != nil
	switch {
	case l.ownSession:
		attempt.session.Orphan()
		defer l.renewals.forget(attempt.session.Lease())
		fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawal)
		defer cancel()
		if _, err := revokeEtcd(fresh, l.client, attempt.session.Lease()); err != nil {
			return fmt.Errorf("%w; not withdrawn: %w", cause, err)
		}
		l.attempts.take(a.ID)
	case errors.Is(cause, concurrency.ErrSessionExpired):
	case !attempt.recipe.withdrawn():
		return cause
	}
	if over {
		return &BusyError{}
	}
	return &NoEffectError{Err: cause}
}

// revokeEtcd revokes a lease and so removes the key under it. If there is no error, both are gone; lived
// reports whether they still existed before.
func revokeEtcd(ctx context.Context, client *clientv3.Client, lease clientv3.LeaseID) (lived bool, err error) {
	_, err = client.Revoke(ctx, lease)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Release implements Lock. Of an attempt that was not granted, the library keeps nothing that could be
// released.
func (l *etcdLock) Release(ctx context.Context, g Grant) error {
	attempt, known := l.attempts.take(g.ID)
	switch {
	case !known && l.ownSession:
		return ErrNotHeld
	case !known:
		return errNoHandle
	case !attempt.granted:
		if _, err := revokeEtcd(ctx, l.client, attempt.session.Lease()); err != nil {
			return err
		}
		return ErrNotHeld
	case l.ownSession:
		defer func() { go l.close(attempt.session) }() // in the background: nothing depends on the rest of the session
	}
	var deleted int64
	err := attempt.recipe.Unlock(context.WithValue(ctx, deletedKeys{}, &deleted))
	switch {
	case err == nil && deleted == 0:
		return ErrNotHeld
	case err != nil && l.config.options.has(retryUnlock):
		go l.unlockAgain(attempt.recipe)
	}
	return err
}

// close ends the session of an attempt.
func (l *etcdLock) close(session *concurrency.Session) {
	_ = session.Close() // otherwise its lease ends by itself
	l.renewals.forget(session.Lease())
}

// unlockAgain calls Unlock until it succeeds or the client is closed.
func (l *etcdLock) unlockAgain(recipe etcdRecipe) {
	for {
		select {
		case <-l.client.Ctx().Done():
			return
		case <-time.After(unlockPause):
		}
		ctx, cancel := context.WithTimeout(l.client.Ctx(), withdrawal)
		err := recipe.Unlock(ctx)
		cancel()
		if err == nil {
			return
		}
	}
}

// unlockPause is the time between two calls of Unlock.
const unlockPause = 100 * time.Millisecond

// deletedKeys is the context key of a counter for the keys that a request deletes.
type deletedKeys struct{}

// etcdKV reads from the answers how many keys were deleted, which the library does not return. It sends no
// requests of its own.
type etcdKV struct{ clientv3.KV }

func (kv etcdKV) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	answer, err := kv.KV.Delete(ctx, key, opts...)
	if deleted, asked := ctx.Value(deletedKeys{}).(*int64); asked && err == nil {
		*deleted = answer.Deleted
	}
	return answer, err
}

// Holds implements Asker.
func (l *etcdLock) Holds(ctx context.Context, g Grant) (bool, error) {
	return etcdHolds(ctx, l.client, g)
}

// etcdHolds: the oldest key in the queue belongs to the holder. Reads of etcd are linearizable unless they are
// marked serializable.
func etcdHolds(ctx context.Context, client *clientv3.Client, g Grant) (bool, error) {
	answer, err := client.Get(ctx, g.Key+"/", clientv3.WithFirstCreate()...)
	if err != nil || len(answer.Kvs) == 0 {
		return false, err
	}
	return uint64(answer.Kvs[0].CreateRevision) == g.Token, nil
}

// Close implements Lock.
func (l *etcdLock) Close() error { return l.client.Close() }
