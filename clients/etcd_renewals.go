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
	owners sync.Map // of each lease that belongs to an attempt: a Renewal, by clientv3.LeaseID
}

const etcdKeepAliveMethod = "/etcdserverpb.Lease/LeaseKeepAlive"

// own says which attempt a lease belongs to.
func (r *etcdRenewals) own(lease clientv3.LeaseID, a Attempt) {
	r.owners.Store(lease, Renewal{Key: a.Key, ID: a.ID})
}

func (r *etcdRenewals) renewing(lease clientv3.LeaseID) (answered func(error)) {
	known, _ := r.owners.Load(lease)
	renewal, _ := known.(Renewal)
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
	if request, is := m.(*etcdserverpb.LeaseKeepAliveRequest); is {
		lease := clientv3.LeaseID(request.ID)
		answered := s.renewals.renewing(lease)
		s.mu.Lock()
		s.open[lease] = append(s.open[lease], answered)
		s.mu.Unlock()
	}
	return s.ClientStream.SendMsg(m)
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
	s.open[lease] = waiting[1:]
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
