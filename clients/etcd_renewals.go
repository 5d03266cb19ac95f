//go:build !embedded

package clients

import (
	"context"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// etcdRenewals reports the renewals that the client library sends in the background, as an interceptor of the streams
// on which it sends them.
type etcdRenewals struct {
	config Config
	// shared: a lease without an owner is that of the session that serves all attempts.
	shared bool
	owners sync.Map // of leases that belong to an attempt: a Renewal, by clientv3.LeaseID
}

const etcdKeepAliveMethod = "/etcdserverpb.Lease/LeaseKeepAlive"

// grant requests a lease for an attempt.
func (r *etcdRenewals) grant(ctx context.Context, client *clientv3.Client, a Attempt) (*clientv3.LeaseGrantResponse, error) {
	answered := r.config.renewing(Renewal{Key: a.Key, ID: a.ID, Opens: true})
	lease, err := client.Grant(ctx, wholeSeconds(a.TTL))
	if err == nil {
		r.owners.Store(lease.ID, Renewal{Key: a.Key, ID: a.ID})
	}
	answered(err)
	return lease, err
}

// forget is called when the lease of an attempt is no longer needed.
func (r *etcdRenewals) forget(lease clientv3.LeaseID) { r.owners.Delete(lease) }

func (r *etcdRenewals) renewing(lease clientv3.LeaseID) (answered func(error)) {
	owner, owned := r.owners.Load(lease)
	renewal, _ := owner.(Renewal)
	if !owned && !r.shared {
		return func(error) {}
	}
	return r.config.renewing(renewal)
}

func (r *etcdRenewals) intercept(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, stream grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	opened, err := stream(ctx, desc, conn, method, options...)
	if err != nil || method != etcdKeepAliveMethod {
		return opened, err
	}
	return &etcdKeepAlive{ClientStream: opened, renewals: r, open: make(map[clientv3.LeaseID][]func(error))}, nil
}

// etcdKeepAlive is a stream of renewals. The answers for a lease arrive in the order of its requests.
type etcdKeepAlive struct {
	grpc.ClientStream
	renewals *etcdRenewals

	mu   sync.Mutex
	open map[clientv3.LeaseID][]func(error) // renewals without an answer
}

func (s *etcdKeepAlive) SendMsg(m any) error {
	request, is := m.(*etcdserverpb.LeaseKeepAliveRequest)
	if !is {
		return s.ClientStream.SendMsg(m)
	}
	lease := clientv3.LeaseID(request.ID)
	answered := s.renewals.renewing(lease)
	s.mu.Lock()
	s.open[lease] = append(s.open[lease], answered)
	s.mu.Unlock()
	err := s.ClientStream.SendMsg(m)
	if err != nil {
		s.broken(err)
	}
	return err
}

func (s *etcdKeepAlive) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		s.broken(err)
		return err
	}
	if answer, is := m.(*etcdserverpb.LeaseKeepAliveResponse); is {
		s.answered(answer)
	}
	return nil
}

func (s *etcdKeepAlive) answered(answer *etcdserverpb.LeaseKeepAliveResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease := clientv3.LeaseID(answer.ID)
	waiting := s.open[lease]
	if len(waiting) == 0 {
		return
	}
	if s.open[lease] = waiting[1:]; len(waiting) == 1 {
		delete(s.open, lease)
	}
	if answer.TTL > 0 {
		waiting[0](nil)
	} else {
		waiting[0](ErrNotHeld)
	}
}

// broken completes the renewals whose answers cannot arrive any more.
func (s *etcdKeepAlive) broken(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, waiting := range s.open {
		for _, answered := range waiting {
			answered(err)
		}
	}
	clear(s.open)
}
