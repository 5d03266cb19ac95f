//go:build !embedded

package clients

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"

	"lockcheck/history"
)

// etcdV3Lock uses the Lock service of the servers, which run the recipe of the client library on behalf of
// their clients. The client owns the lease. Each attempt has its own, which is revoked if the attempt fails.
// That is how the service lets clients withdraw, and how this client determines the outcome of an attempt.
type etcdV3Lock struct {
	client   *clientv3.Client
	renewals *etcdRenewals
	config   Config
	// tokenFromHeader uses the revision in the answer's header as the fencing token.
	tokenFromHeader bool
	// renew renews a lease until ctx ends. It closes the returned channel when it knows that the lease is over.
	renew    func(ctx context.Context, client *clientv3.Client, lease *etcdLease) (over <-chan struct{}, err error)
	attempts handles[*etcdLease]
}

type etcdLease struct {
	id      clientv3.LeaseID
	asked   int64         // before the request for the lease, ns of the history's clock
	ttl     time.Duration // as granted; can be longer than requested
	stop    func()        // ends the renewals
	over    <-chan struct{}
	key     string // in the queue; "" before the grant
	created int64  // create revision of key; 0 if the key was gone when the grant arrived
}

func openEtcdV3Lock(c Config) (Lock, error) {
	return newEtcdV3Lock(c, &etcdV3Lock{renew: renewByKeepAlive})
}

// openEtcdHeaderRevision opens a lock that uses the wrong number as its fencing token.
func openEtcdHeaderRevision(c Config) (Lock, error) {
	return newEtcdV3Lock(c, &etcdV3Lock{renew: renewByKeepAlive, tokenFromHeader: true})
}

func newEtcdV3Lock(c Config, lock *etcdV3Lock) (Lock, error) {
	var err error
	lock.config = c
	lock.client, lock.renewals, err = newEtcdClient(c)
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// renewByKeepAlive leaves the renewals to the library.
func renewByKeepAlive(ctx context.Context, client *clientv3.Client, lease *etcdLease) (<-chan struct{}, error) {
	answers, err := client.KeepAlive(ctx, lease.id)
	if err != nil {
		return nil, err
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range answers {
		}
	}()
	return over, nil
}

var errEtcdLeaseOver = errors.New("the lease was over when the lock was granted")

// Acquire implements Lock. It trusts the answer: whether the lease still lives is for the servers to check.
func (l *etcdV3Lock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	lease, err := l.lease(ctx, a)
	if err != nil {
		return Grant{}, noEffect("lease: %w", err)
	}
	answer, err := v3lockpb.NewLockClient(l.client.ActiveConnection()).
		Lock(ctx, &v3lockpb.LockRequest{Name: []byte(a.Key), Lease: int64(lease.id)})
	if err != nil {
		return Grant{}, l.giveUp(ctx, a, lease, err)
	}
	lease.key = string(answer.Key)
	if lease.created, err = l.createdBy(ctx, lease.key, answer.Header.Revision); err != nil {
		return Grant{}, l.giveUp(ctx, a, lease, err)
	}
	if l.config.options.has(checkKeepAlive) && closed(lease.over) {
		return Grant{}, l.giveUp(ctx, a, lease, errEtcdLeaseOver)
	}
	return l.grant(a, lease, answer.Header.Revision), nil
}

// grant makes a Grant of the answer. If the own key is gone it sets Expired and leaves the judgement to the
// caller. A caller that trusts the answer alone never learns of it.
func (l *etcdV3Lock) grant(a Attempt, lease *etcdLease, revision int64) Grant {
	grant := Grant{Key: a.Key, ID: a.ID, Token: uint64(lease.created), Expired: lease.created == 0}
	if l.tokenFromHeader {
		grant.Token = uint64(revision)
	}
	if l.config.NoKeepAlive {
		grant.Until = lease.asked + lease.ttl.Nanoseconds()
	} else if l.config.options.has(WatchKeepAlive) {
		grant.Lost = lease.over
	}
	return grant
}

// lease requests the lease of an attempt and starts its renewals, which continue while the attempt waits. A
// lease without a key affects no other client. If its answer is lost, it expires by itself.
func (l *etcdV3Lock) lease(ctx context.Context, a Attempt) (*etcdLease, error) {
	lease := &etcdLease{asked: history.Now(), stop: func() {}}
	answer, err := l.renewals.grant(ctx, l.client, a)
	if err != nil {
		return nil, err
	}
	lease.id, lease.ttl = answer.ID, time.Duration(answer.TTL)*time.Second
	l.attempts.put(a.ID, lease)
	if l.config.NoKeepAlive {
		return lease, nil
	}
	background, cancel := context.WithCancel(l.client.Ctx())
	lease.stop = func() {
		cancel()
		l.renewals.forget(lease.id)
	}
	lease.over, err = l.renew(background, l.client, lease)
	return lease, err
}

// createdBy returns the create revision of a key as of a revision; 0 if the key was gone by then. The service
// does not return it, and no other number in its answer is unique to a grant. Any server that has the revision
// may answer. So no leader is needed, and the request does not affect who holds the lock.
func (l *etcdV3Lock) createdBy(ctx context.Context, key string, revision int64) (int64, error) {
	for {
		answer, err := l.client.Get(ctx, key, clientv3.WithRev(revision), clientv3.WithSerializable())
		switch {
		case errors.Is(err, rpctypes.ErrFutureRev) && sleep(ctx, etcdRetry): // another server, which lags behind
		case err != nil || len(answer.Kvs) == 0:
			return 0, err
		default:
			return answer.Kvs[0].CreateRevision, nil
		}
	}
}

// giveUp withdraws an attempt and returns an error that states its outcome.
func (l *etcdV3Lock) giveUp(ctx context.Context, a Attempt, lease *etcdLease, cause error) error {
	lease.stop()
	over := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawal)
	defer cancel()
	if _, err := revokeEtcd(ctx, l.client, lease.id); err != nil {
		return fmt.Errorf("%w; not withdrawn: %w", cause, err)
	}
	l.attempts.take(a.ID)
	if over {
		return &BusyError{}
	}
	return &NoEffectError{Err: cause}
}

// Release implements Lock.
func (l *etcdV3Lock) Release(ctx context.Context, g Grant) error {
	lease, known := l.attempts.take(g.ID)
	if !known {
		return ErrNotHeld
	}
	defer lease.stop()
	if lease.key != "" && lease.created != 0 {
		return l.unlock(ctx, lease)
	}
	if _, err := revokeEtcd(ctx, l.client, lease.id); err != nil {
		return err
	}
	return ErrNotHeld
}

var errEtcdLateUnlock = errors.New("the lease ended while the lock was given back")

// unlock uses the Unlock service, and then revokes the lease. The service reports success even if the key is
// gone. The key was there if the lease still lives after Unlock. The key was not there if a server lacked it
// before Unlock.
func (l *etcdV3Lock) unlock(ctx context.Context, lease *etcdLease) error {
	gone := l.gone(ctx, lease)
	_, err := v3lockpb.NewLockClient(l.client.ActiveConnection()).Unlock(ctx, &v3lockpb.UnlockRequest{Key: []byte(lease.key)})
	if gone || err != nil {
		go l.discard(lease)
	}
	switch {
	case gone:
		return ErrNotHeld
	case err != nil:
		return err
	}
	lived, err := revokeEtcd(ctx, l.client, lease.id)
	if err == nil && !lived {
		return errEtcdLateUnlock
	}
	return err
}

// gone reports whether the key of a grant is gone according to any one server. A server that lags behind may
// not have seen the key's creation yet, so its revision is checked.
func (l *etcdV3Lock) gone(ctx context.Context, lease *etcdLease) bool {
	answer, err := l.client.Get(ctx, lease.key, clientv3.WithSerializable())
	return err == nil && len(answer.Kvs) == 0 && answer.Header.Revision >= lease.created
}

// discard revokes a lease that is no longer needed, or lets it expire.
func (l *etcdV3Lock) discard(lease *etcdLease) {
	ctx, cancel := context.WithTimeout(context.Background(), lease.ttl)
	defer cancel()
	_, _ = revokeEtcd(ctx, l.client, lease.id)
}

// Holds implements Asker.
func (l *etcdV3Lock) Holds(ctx context.Context, g Grant) (bool, error) {
	return etcdHolds(ctx, l.client, g)
}

// Close implements Lock.
func (l *etcdV3Lock) Close() error { return l.client.Close() }
