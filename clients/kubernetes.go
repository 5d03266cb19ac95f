//go:build kubernetes

package clients

import (
	"context"
	"encoding/base32"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"lockcheck/history"
)

// kubernetesLock is a Lease with the leader election of client-go, used as the library's example shows, with
// ReleaseOnCancel. Renew deadline and retry period have the same ratios to the lease as in Kubernetes itself:
// 10 s and 2 s for a lease of 15 s.
type kubernetesLock struct {
	lease  func(key, id string) resourcelock.Interface
	config Config
	terms  handles[*kubernetesTerm]
}

func (l *kubernetesLock) keeps() bool { return l.config.options.has(keepLease) }

// renewal returns the renew deadline and the retry period for a lease.
func (l *kubernetesLock) renewal(lease time.Duration) (deadline, retry time.Duration) {
	if l.config.options.has(earlyRenewal) {
		return lease * 15 / 60, lease * 5 / 60
	}
	return lease * 10 / 15, lease * 2 / 15
}

func openKubernetes(c Config) (Lock, error) {
	if c.NoKeepAlive {
		return nil, errors.New("the library always renews its lease")
	}
	if len(c.Nodes) == 0 {
		return nil, errNoServers
	}
	client, err := coordinationv1.NewForConfig(&rest.Config{
		Host: "https://" + c.Nodes[0], BearerToken: KubernetesToken, UserAgent: c.Worker,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // each server has a self-signed certificate
		Dial:            balanced(c.Nodes, c.number()),
	})
	if err != nil {
		return nil, err
	}
	return &kubernetesLock{config: c, lease: func(key, id string) resourcelock.Interface {
		return &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: kubernetesName(key), Namespace: KubernetesNamespace},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: id},
		}
	}}, nil
}

// balanced acts like a load balancer in front of the API servers. Each new connection goes to the next server
// that accepts it.
func balanced(nodes []string, first int) func(ctx context.Context, network, address string) (net.Conn, error) {
	var connections atomic.Int64
	dialer := net.Dialer{Timeout: balancerTimeout}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return firstThatAccepts(&dialer, rotated(nodes, first+int(connections.Add(1))))(ctx, network, address)
	}
}

// balancerTimeout is how long a load balancer waits for a server.
const balancerTimeout = time.Second

// kubernetesName encodes a lock's name so that it is a valid name of a Lease.
func kubernetesName(lock string) string {
	return "lock-" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(lock)))
}

// Acquire implements Lock. Each attempt has a candidate of its own.
func (l *kubernetesLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	t, err := l.candidate(ctx, a)
	if err != nil {
		return Grant{}, &NoEffectError{Err: err}
	}
	l.terms.put(a.ID, t)
	go func() {
		defer close(t.over)
		t.elector.Run(t.running)
	}()
	select {
	case <-t.begun:
		return Grant{Key: a.Key, ID: a.ID, Token: t.record.token(), Lost: t.lost}, nil
	case <-ctx.Done():
		return Grant{}, l.givenUp(ctx, a, t)
	}
}

// candidate creates the elector for an attempt. It runs until the attempt's term ends, which may be after the
// attempt's context.
func (l *kubernetesLock) candidate(ctx context.Context, a Attempt) (*kubernetesTerm, error) {
	t := &kubernetesTerm{
		record: kubernetesRecord{Interface: l.lease(a.Key, a.ID), renewing: l.config.renewals(a)},
		begun:  make(chan struct{}), lost: make(chan struct{}), over: make(chan struct{}),
	}
	lease := time.Duration(max(1, wholeSeconds(a.TTL))) * time.Second
	deadline, retry := l.renewal(lease)
	var err error
	t.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &t.record, LeaseDuration: lease, RenewDeadline: deadline, RetryPeriod: retry,
		ReleaseOnCancel: !l.keeps(), Name: a.Key,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: t.begin, OnStoppedLeading: func() {}},
	})
	// The zero Logger discards what the library would write to standard error.
	t.running, t.end = context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), klog.Logger{}))
	return t, err
}

// givenUp returns the outcome of an attempt that ended before it was granted.
func (l *kubernetesLock) givenUp(ctx context.Context, a Attempt, t *kubernetesTerm) error {
	t.end()
	select {
	case <-t.over:
	case <-time.After(withdrawal):
		return ctx.Err()
	}
	holder, certain := t.record.holder()
	switch {
	case !certain && t.record.asked(), holder == a.ID:
		return ctx.Err()
	case !certain:
		l.terms.take(a.ID)
		return &NoEffectError{Err: ctx.Err()} // no server has answered
	case l.keeps():
		holder = "" // the holder named in the Lease may have ended its term
	}
	l.terms.take(a.ID)
	return &BusyError{Holder: holder}
}

// Release implements Lock. If the library has not released the Lease, Release makes the calls that the library
// would make.
func (l *kubernetesLock) Release(ctx context.Context, g Grant) error {
	called := history.Now()
	err := l.terms.release(g.ID, func(t *kubernetesTerm) error { return l.end(ctx, g, t, called) })
	if errors.Is(err, errNoHandle) {
		return ErrNotHeld
	}
	return err
}

// end ends the term of a grant; called is when Release was called.
func (l *kubernetesLock) end(ctx context.Context, g Grant, t *kubernetesTerm, called int64) error {
	t.end()
	select {
	case <-t.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	if gave, from, at := t.record.gaveBack(); gave {
		if from == g.ID && at < called {
			return ErrNotHeld // the library had released it already, when it found the lease lost
		}
		return nil
	}
	holder, certain := t.record.holder()
	if certain && holder != g.ID {
		return ErrNotHeld
	}
	return l.giveBack(ctx, &t.record)
}

// errLeaseInDoubt: a write was not answered. It may have caused the current content of the Lease, or may still
// take effect.
var errLeaseInDoubt = errors.New("a write of the Lease was not answered")

// giveBack releases a Lease that still names a candidate whose elector has ended.
func (l *kubernetesLock) giveBack(ctx context.Context, record *kubernetesRecord) error {
	_, certain := record.holder()
	now, _, err := record.Get(ctx)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return err
	case (err != nil || now.HolderIdentity != record.Identity()) && !certain:
		return errLeaseInDoubt
	case err != nil || now.HolderIdentity != record.Identity():
		return ErrNotHeld
	case l.keeps():
		return nil
	}
	return record.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: now.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: metav1.Now(), AcquireTime: metav1.Now(),
	})
}

// Holds implements Asker. A read without a resource version is served by a majority of etcd. The token is
// compared as well: a leader that was replaced, and finds the Lease empty again, begins a new term under the
// same name.
func (l *kubernetesLock) Holds(ctx context.Context, g Grant) (bool, error) {
	record, _, err := l.lease(g.Key, g.ID).Get(ctx)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && record.HolderIdentity == g.ID && kubernetesToken(record) == g.Token, err
}

// Close implements Lock. It ends all terms, and waits for the duration withdrawal until the servers have
// answered.
func (l *kubernetesLock) Close() error {
	terms := l.terms.takeAll()
	for _, t := range terms {
		t.end()
	}
	patience := time.After(withdrawal)
	for _, t := range terms {
		select {
		case <-t.over:
		case <-patience:
			return nil
		}
	}
	return nil
}

// kubernetesTerm is one attempt, and the term that it leads to.
type kubernetesTerm struct {
	record  kubernetesRecord
	elector *leaderelection.LeaderElector
	running context.Context // until the term is to end
	end     context.CancelFunc
	begun   chan struct{}
	lost    chan struct{} // closed when the library has ended the term
	over    chan struct{} // closed when the elector has returned
}

// begin receives the context that the library passes to the leader's work.
func (t *kubernetesTerm) begin(leading context.Context) {
	context.AfterFunc(leading, func() {
		if t.running.Err() == nil {
			close(t.lost)
		}
	})
	close(t.begun)
}
