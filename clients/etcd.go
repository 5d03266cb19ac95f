package clients

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"lockcheck/history"
)

// etcdCall bounds one request that waits for nobody but the servers.
const etcdCall = time.Second

// etcdLock is what the locks on etcd have in common. Each attempt has a lease of
// its own: once that is revoked nothing of the attempt is in force, nor can it
// come into force later, whatever became of its requests. A session for all
// attempts of a worker would save two requests an attempt, and leave a lost
// request of an old attempt free to hit a new one.
type etcdLock struct {
	client      *clientv3.Client
	noKeepAlive bool
	// byHeader takes the revision of the answer for a fencing token.
	byHeader bool
	protocol etcdProtocol
	attempts handles[etcdAttempt]
}

// etcdProtocol is a way to lock with a lease.
type etcdProtocol interface {
	// keep renews the lease in the background until its end is called.
	keep(lease *etcdLease) error
	// lock waits for its turn and returns the own key, and the revision of the
	// servers in which the lock was granted.
	lock(ctx context.Context, name string, lease *etcdLease) (key string, granted int64, err error)
	// unlock gives back a lock that was granted.
	unlock(ctx context.Context, attempt etcdAttempt) error
}

// etcdLease is the lease of one attempt.
type etcdLease struct {
	id    clientv3.LeaseID
	asked int64         // before it was asked for, ns of the history's clock
	ttl   time.Duration // as granted, which can be more than was asked for
	// end stops the renewals.
	end func()
	// lost returns what is closed as soon as the client can know that the lease
	// is gone; nil for one that nobody renews.
	lost func() <-chan struct{}
	// session is that of the client library, where it has one.
	session *concurrency.Session
}

// etcdAttempt is one attempt; without a key it has not been granted the lock.
type etcdAttempt struct {
	lease    *etcdLease
	key      string
	revision int64 // in which the own key was created; 0 if it was gone
	granted  int64 // in which the lock was granted
}

func openEtcd(c Config) (Lock, error) {
	lock, err := newEtcdLock(c)
	if err != nil {
		return nil, err
	}
	lock.protocol = &etcdMutex{lock}
	return lock, nil
}

func newEtcdLock(c Config) (*etcdLock, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   c.Nodes,
		DialTimeout: time.Second,
		Logger:      zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: time.Second,
		})},
	})
	if err != nil {
		return nil, err
	}
	return &etcdLock{client: client, noKeepAlive: c.NoKeepAlive}, nil
}

// Acquire implements Lock.
func (l *etcdLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	lease, err := l.lease(ctx, a)
	if err != nil {
		return Grant{}, err
	}
	key, granted, err := l.protocol.lock(ctx, a.Key, lease)
	if err != nil {
		return Grant{}, l.giveUp(ctx, a, lease, err)
	}
	// Neither API returns the revision in which the own key was created, the only
	// number that no two grants share. It is asked for as of the grant: a client that
	// was stopped since must not blame the servers for the end of its lease.
	revision, err := l.created(ctx, key, granted)
	if err != nil {
		return Grant{}, l.giveUp(ctx, a, lease, err)
	}
	return l.grant(ctx, a, etcdAttempt{lease: lease, key: key, revision: revision, granted: granted})
}

var errEtcdLeaseOver = errors.New("the lease ended before the lock could be used")

// grant says what was granted. That the own key is gone is for the caller to
// judge: who trusts the answer alone never learns of it.
func (l *etcdLock) grant(ctx context.Context, a Attempt, granted etcdAttempt) (Grant, error) {
	lease := granted.lease
	grant := Grant{Key: a.Key, ID: a.ID, Token: uint64(granted.revision), Expired: granted.revision == 0}
	if l.byHeader {
		grant.Token = uint64(granted.granted)
	}
	if l.noKeepAlive {
		grant.Until = lease.asked + lease.ttl.Nanoseconds()
	}
	if !grant.Expired {
		grant.Lost = lease.lost()
	}
	select {
	case <-grant.Lost:
		return Grant{}, l.giveUp(ctx, a, lease, errEtcdLeaseOver)
	case <-ctx.Done():
		return Grant{}, l.giveUp(ctx, a, lease, ctx.Err())
	default:
	}
	l.attempts.put(a.ID, granted)
	return grant, nil
}

// lease asks for the lease of an attempt. A lease without a key is none of
// anybody's business: if its answer is lost it runs out.
func (l *etcdLock) lease(ctx context.Context, a Attempt) (*etcdLease, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdCall)
	defer cancel()
	asked := history.Now()
	seconds := int64((a.TTL + time.Second - 1) / time.Second)
	answer, err := l.client.Grant(ctx, seconds)
	if err != nil {
		return nil, &NoEffectError{Err: fmt.Errorf("lease: %w", err)}
	}
	lease := &etcdLease{
		id: answer.ID, asked: asked, ttl: time.Duration(answer.TTL) * time.Second,
		end: func() {}, lost: func() <-chan struct{} { return nil },
	}
	if err := l.protocol.keep(lease); err != nil {
		return nil, &NoEffectError{Err: fmt.Errorf("lease: %w", err)}
	}
	l.attempts.put(a.ID, etcdAttempt{lease: lease})
	return lease, nil
}

// giveUp withdraws an attempt and says what is known of it then.
func (l *etcdLock) giveUp(ctx context.Context, a Attempt, lease *etcdLease, cause error) error {
	lease.end()
	over := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawal)
	defer cancel()
	if _, err := l.revoke(ctx, lease); err != nil {
		return fmt.Errorf("%w; not withdrawn: %w", cause, err)
	}
	l.attempts.take(a.ID)
	if over {
		return &BusyError{}
	}
	return &NoEffectError{Err: cause}
}

// revoke ends the lease and removes the key under it. Without an error neither
// is there any more; lived says that they were until then.
func (l *etcdLock) revoke(ctx context.Context, lease *etcdLease) (lived bool, err error) {
	_, err = l.client.Revoke(ctx, lease.id)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return false, nil
	}
	return err == nil, err
}

// created returns the revision in which a key was created; 0 if it was not there
// at the given revision of the servers, of which 0 is the present one.
func (l *etcdLock) created(ctx context.Context, key string, at int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdCall)
	defer cancel()
	answer, err := l.client.Get(ctx, key, clientv3.WithRev(at))
	if err != nil || len(answer.Kvs) == 0 {
		return 0, err
	}
	return answer.Kvs[0].CreateRevision, nil
}

// Release implements Lock.
func (l *etcdLock) Release(ctx context.Context, g Grant) error {
	attempt, known := l.attempts.take(g.ID)
	if !known {
		return ErrNotHeld
	}
	defer attempt.lease.end()
	if attempt.key == "" || attempt.revision == 0 {
		if _, err := l.revoke(ctx, attempt.lease); err != nil {
			return err
		}
		return ErrNotHeld
	}
	return l.protocol.unlock(ctx, attempt)
}

// Holds implements Asker: the holder has the oldest of the keys in the queue. Reads of
// etcd are linearizable unless they are asked not to be.
func (l *etcdLock) Holds(ctx context.Context, g Grant) (bool, error) {
	answer, err := l.client.Get(ctx, g.Key+"/", clientv3.WithFirstCreate()...)
	if err != nil || len(answer.Kvs) == 0 {
		return false, err
	}
	return uint64(answer.Kvs[0].CreateRevision) == g.Token, nil
}

// Close implements Lock.
func (l *etcdLock) Close() error { return l.client.Close() }

// etcdMutex locks by the recipe of the client library: Session and Mutex.
type etcdMutex struct{ *etcdLock }

// keep makes a session of the lease. It outlives the context of the attempt.
func (m *etcdMutex) keep(lease *etcdLease) error {
	session, err := concurrency.NewSession(m.client,
		concurrency.WithLease(lease.id), concurrency.WithTTL(int(lease.ttl/time.Second)))
	if err != nil {
		return err
	}
	lease.session = session
	if m.noKeepAlive {
		session.Orphan()
		return nil
	}
	lease.end, lease.lost = session.Orphan, session.Done
	return nil
}

// lock leaves Mutex.Lock behind when its time is over: it cleans up without a
// time limit first. What it does later is void once the lease is revoked.
func (m *etcdMutex) lock(ctx context.Context, name string, lease *etcdLease) (key string, granted int64, err error) {
	mutex := concurrency.NewMutex(lease.session, name)
	done := make(chan error, 1)
	go func() { done <- mutex.Lock(ctx) }()
	select {
	case err = <-done:
	case <-lease.lost():
		return "", 0, errEtcdLeaseOver
	case <-ctx.Done():
		return "", 0, ctx.Err()
	}
	if err != nil {
		return "", 0, err
	}
	return mutex.Key(), mutex.Header().Revision, nil
}

// unlock deletes the own key if it is still there: Mutex.Unlock says that all is
// well even if it is not.
func (m *etcdMutex) unlock(ctx context.Context, a etcdAttempt) error {
	answer, err := m.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(a.key), "=", a.revision)).
		Then(clientv3.OpDelete(a.key)).Commit()
	// In the background: nobody waits for what is left of a lease without a key.
	go m.discard(a.lease)
	switch {
	case err != nil:
		return err
	case !answer.Succeeded:
		return ErrNotHeld
	}
	return nil
}

// discard ends a lease that is of no use any more, or lets it run out.
func (l *etcdLock) discard(lease *etcdLease) {
	ctx, cancel := context.WithTimeout(context.Background(), etcdCall)
	defer cancel()
	_, _ = l.revoke(ctx, lease)
}
