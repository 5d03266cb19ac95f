package clients

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"

	"lockcheck/history"
)

// etcdV3Lock locks by the Lock service of the servers, which run the recipe of
// the client library on behalf of their clients, each in its own version.
type etcdV3Lock struct{ *etcdLock }

func openEtcdV3Lock(c Config) (Lock, error) { return newEtcdV3Lock(c, false) }

// openEtcdHeaderRevision is for a lock that fences by the wrong number.
func openEtcdHeaderRevision(c Config) (Lock, error) { return newEtcdV3Lock(c, true) }

func newEtcdV3Lock(c Config, byHeader bool) (Lock, error) {
	lock, err := newEtcdLock(c)
	if err != nil {
		return nil, err
	}
	lock.byHeader = byHeader
	lock.protocol = &etcdV3Lock{lock}
	return lock, nil
}

// keep renews the lease from now on, also while the attempt waits for its turn.
func (v *etcdV3Lock) keep(lease *etcdLease) error {
	if v.noKeepAlive {
		return nil
	}
	ctx, cancel := context.WithCancel(v.client.Ctx())
	keeper := &etcdKeeper{client: v.client, lease: lease, gone: make(chan struct{})}
	keeper.vouched.Store(lease.asked + lease.ttl.Nanoseconds())
	go keeper.run(ctx)
	lease.end = cancel
	lease.lost = func() <-chan struct{} { return keeper.lost(ctx) }
	return nil
}

// lock trusts the answer, as the service asks of its users: whether the lease
// still lives is for the servers to look at.
func (v *etcdV3Lock) lock(ctx context.Context, name string, lease *etcdLease) (key string, granted int64, err error) {
	answer, err := v3lockpb.NewLockClient(v.client.ActiveConnection()).
		Lock(ctx, &v3lockpb.LockRequest{Name: []byte(name), Lease: int64(lease.id)})
	if err != nil {
		return "", 0, err
	}
	return string(answer.Key), answer.Header.Revision, nil
}

var errEtcdLateUnlock = errors.New("the lease ended while the lock was given back")

// unlock uses the Unlock service, which says that all is well even if the key is
// gone. So it looks for the key before, and afterwards whether the lease still
// lived: then the key was there for as long.
func (v *etcdV3Lock) unlock(ctx context.Context, a etcdAttempt) error {
	switch revision, err := v.created(ctx, a.key, 0); {
	case err != nil:
		return fmt.Errorf("not looked up: %w", err)
	case revision != a.revision:
		go v.discard(a.lease)
		return ErrNotHeld
	}
	_, err := v3lockpb.NewLockClient(v.client.ActiveConnection()).Unlock(ctx, &v3lockpb.UnlockRequest{Key: []byte(a.key)})
	if err != nil {
		go v.discard(a.lease)
		return err
	}
	lived, err := v.revoke(ctx, a.lease)
	if err == nil && !lived {
		err = errEtcdLateUnlock
	}
	return err
}

// etcdKeeper renews a lease. A renewal that is not answered is made again, at the
// next server: a server that is stopped, or waits for a leader that is stopped,
// must not cost the lease.
type etcdKeeper struct {
	client  *clientv3.Client
	lease   *etcdLease
	vouched atomic.Int64  // the lease lives until then at least, ns
	gone    chan struct{} // closed when the service says that the lease is over
}

const (
	// etcdRenewal bounds one renewal, which a stopped leader leaves unanswered.
	etcdRenewal = 400 * time.Millisecond
	etcdRetry   = 50 * time.Millisecond
)

// run renews each third of the lease until ctx is done or the lease is gone.
func (k *etcdKeeper) run(ctx context.Context) {
	pause := k.lease.ttl / 3
	for sleep(ctx, pause) {
		switch alive, err := k.renew(ctx); {
		case err != nil:
			pause = etcdRetry
		case !alive:
			close(k.gone)
			return
		default:
			pause = k.lease.ttl / 3
		}
	}
}

// sleep waits, and says whether the context lasts.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (k *etcdKeeper) renew(ctx context.Context) (alive bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, etcdRenewal)
	defer cancel()
	stream, err := etcdserverpb.NewLeaseClient(k.client.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return false, err
	}
	asked := history.Now()
	if err := stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(k.lease.id)}); err != nil {
		return false, err
	}
	answer, err := stream.Recv()
	if err != nil {
		return false, err
	}
	k.vouched.Store(asked + answer.TTL*time.Second.Nanoseconds())
	return answer.TTL > 0, nil
}

// lost returns what is closed when the service says that the lease is over, or
// has not answered for as long as the lease lasts.
func (k *etcdKeeper) lost(ctx context.Context) <-chan struct{} {
	lost := make(chan struct{})
	if k.left() <= 0 {
		close(lost)
		return lost
	}
	go func() {
		defer close(lost)
		for k.left() > 0 {
			select {
			case <-time.After(k.left()):
			case <-k.gone:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return lost
}

func (k *etcdKeeper) left() time.Duration { return time.Duration(k.vouched.Load() - history.Now()) }
