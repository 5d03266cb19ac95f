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

// kubernetesLock is a Lease and the leader election of client-go, with ReleaseOnCancel, as the
// example of the library shows it, and what Kubernetes itself makes of a lease of 15 s: a renew
// deadline of 10 s and a retry period of 2 s.
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
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // each server has a certificate of its own making
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

// balanced does what a load balancer in front of API servers does: a new connection is to one
// that accepts it, each time another first.
func balanced(nodes []string, first int) func(ctx context.Context, network, address string) (net.Conn, error) {
	var connections atomic.Int64
	dialer := net.Dialer{Timeout: balancerTimeout}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return firstThatAccepts(&dialer, rotated(nodes, first+int(connections.Add(1))))(ctx, network, address)
	}
}

// balancerTimeout is how long a load balancer waits for a server.
const balancerTimeout = time.Second

// kubernetesName is a name that a Lease may have.
func kubernetesName(lock string) string {
	return "lock-" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(lock)))
}

// Acquire implements Lock: a candidate of its own for each attempt.
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

// candidate makes what runs until the term of an attempt ends, which may be after its context.
func (l *kubernetesLock) candidate(ctx context.Context, a Attempt) (*kubernetesTerm, error) {
	t := &kubernetesTerm{
		record: kubernetesRecord{Interface: l.lease(a.Key, a.ID)},
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
	// The zero Logger drops what the library would write to the standard error.
	t.running, t.end = context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), klog.Logger{}))
	return t, err
}

// givenUp says what is known of an attempt that is over before it was granted.
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
		return &NoEffectError{Err: ctx.Err()} // nobody has answered
	case l.keeps():
		holder = "" // whom the Lease names may have ended its term
	}
	l.terms.take(a.ID)
	return &BusyError{Holder: holder}
}

// Release implements Lock. What the library has not given back is given back by the calls that
// it would make.
func (l *kubernetesLock) Release(ctx context.Context, g Grant) error {
	called := history.Now()
	err := l.terms.release(g.ID, func(t *kubernetesTerm) error { return l.end(ctx, g, t, called) })
	if errors.Is(err, errNoHandle) {
		return ErrNotHeld
	}
	return err
}

// end ends a term of a grant. Its release was called at a time.
func (l *kubernetesLock) end(ctx context.Context, g Grant, t *kubernetesTerm, called int64) error {
	t.end()
	select {
	case <-t.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	if gave, from, at := t.record.gaveBack(); gave {
		if from == g.ID && at < called {
			return ErrNotHeld // the library had done so when it found the lease lost
		}
		return nil
	}
	holder, certain := t.record.holder()
	if certain && holder != g.ID {
		return ErrNotHeld
	}
	return l.giveBack(ctx, &t.record)
}

// errLeaseInDoubt: a write was not answered, and it is not known whether it has been the cause
// of what the Lease says, or may still take effect.
var errLeaseInDoubt = errors.New("a write of the Lease was not answered")

// giveBack ends a lease that is held in the name of a candidate whose elector has ended.
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

// Holds implements Asker. A read without a resource version goes to a majority of etcd. A leader
// who was replaced and finds the Lease empty again begins a new term under the same name.
func (l *kubernetesLock) Holds(ctx context.Context, g Grant) (bool, error) {
	record, _, err := l.lease(g.Key, g.ID).Get(ctx)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && record.HolderIdentity == g.ID && kubernetesToken(record) == g.Token, err
}

// Close implements Lock. Who still leads ends its term, as far as the servers answer at once.
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
	lost    chan struct{} // the library has ended the term
	over    chan struct{} // the library is done with it
}

// begin takes the context that the library gives to what a leader does.
func (t *kubernetesTerm) begin(leading context.Context) {
	context.AfterFunc(leading, func() {
		if t.running.Err() == nil {
			close(t.lost)
		}
	})
	close(t.begun)
}
