//go:build !embedded

package clients

import (
	"context"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"lockcheck/history"
)

// openEtcdV3LockRetry is etcd-v3lock with renewals that time out and retry earlier than those of the client
// library.
func openEtcdV3LockRetry(c Config) (Lock, error) {
	return newEtcdV3Lock(c, &etcdV3Lock{renew: renewImpatiently})
}

// etcdRenewer renews a lease. A renewal without an answer is repeated at the next server. A server that is
// stopped, or that waits for a stopped leader, must not cost the lease.
type etcdRenewer struct {
	client     *clientv3.Client
	lease      *etcdLease
	livesUntil atomic.Int64  // the lease lives at least until then, ns
	refused    chan struct{} // closed when the service says that the lease is over
}

const (
	// etcdRenewal bounds one renewal, which a stopped leader leaves unanswered.
	etcdRenewal = 400 * time.Millisecond
	etcdRetry   = 50 * time.Millisecond
)

func renewImpatiently(ctx context.Context, client *clientv3.Client, lease *etcdLease) (<-chan struct{}, error) {
	renewer := &etcdRenewer{client: client, lease: lease, refused: make(chan struct{})}
	renewer.livesUntil.Store(lease.asked + lease.ttl.Nanoseconds())
	go renewer.run(ctx)
	over := make(chan struct{})
	go renewer.watch(ctx, over)
	return over, nil
}

// run renews the lease every third of its length until ctx ends or the lease is gone.
func (r *etcdRenewer) run(ctx context.Context) {
	pause := r.lease.ttl / 3
	for sleep(ctx, pause) {
		switch alive, err := r.renew(ctx); {
		case err != nil:
			pause = etcdRetry
		case !alive:
			close(r.refused)
			return
		default:
			pause = r.lease.ttl / 3
		}
	}
}

// sleep waits for d or the end of ctx, and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (r *etcdRenewer) renew(ctx context.Context) (alive bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, etcdRenewal)
	defer cancel()
	stream, err := etcdserverpb.NewLeaseClient(r.client.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return false, err
	}
	asked := history.Now()
	if err := stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(r.lease.id)}); err != nil {
		return false, err
	}
	answer, err := stream.Recv()
	if err != nil {
		return false, err
	}
	r.livesUntil.Store(asked + answer.TTL*time.Second.Nanoseconds())
	return answer.TTL > 0, nil
}

// watch closes over when the lease may have ended: the service says so, or no renewal was answered for the
// length of the lease. It also does so when ctx ends.
func (r *etcdRenewer) watch(ctx context.Context, over chan<- struct{}) {
	defer close(over)
	for left := r.left(); left > 0; left = r.left() {
		select {
		case <-time.After(left):
		case <-r.refused:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (r *etcdRenewer) left() time.Duration { return time.Duration(r.livesUntil.Load() - history.Now()) }
