package clients

import (
	"context"
	"encoding/base32"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// KubernetesToken is by what its API servers know lockcheck.
const KubernetesToken = "lockcheck"

const (
	// KubernetesNamespace is there on every cluster, and has the leases.
	KubernetesNamespace = "default"
	// kubernetesTTLStep is the unit in which a Lease tells how long it lasts.
	kubernetesTTLStep = time.Second
)

// Options of the lock on Kubernetes.
const (
	keepLease    = "keep-lease"
	earlyRenewal = "early-renewal"
)

func kubernetesOptions() []Option {
	return []Option{
		{Name: keepLease, Adds: "without ReleaseOnCancel, as controller-runtime does by default: a leader who ends its term leaves its Lease to run out"},
		{Name: earlyRenewal, Adds: "the renew deadline is a quarter of the lease, as in the example of the library, instead of two thirds, as in Kubernetes itself"},
	}
}

// kubernetesLock is a Lease and the leader election of client-go, with ReleaseOnCancel, as the
// example of the library shows it, and what Kubernetes itself makes of a lease of 15 s: a renew
// deadline of 10 s and a retry period of 2 s.
type kubernetesLock struct {
	client coordinationv1.CoordinationV1Interface
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
		return nil, errors.New("k8s-lease needs servers")
	}
	client, err := coordinationv1.NewForConfig(&rest.Config{
		Host: "https://" + c.Nodes[0], BearerToken: KubernetesToken, UserAgent: c.Worker,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // each server has a certificate of its own making
		Dial:            balanced(c.Nodes, c.number()),
	})
	if err != nil {
		return nil, err
	}
	return &kubernetesLock{client: client, config: c}, nil
}

// balanced does what a load balancer in front of API servers does: a new connection is to one
// that accepts it, each time another first.
func balanced(nodes []string, first int) func(ctx context.Context, network, address string) (net.Conn, error) {
	var connections atomic.Int64
	dialer := net.Dialer{Timeout: balancerTimeout}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		n := (first + int(connections.Add(1))) % len(nodes)
		return firstThatAnswers(&dialer, slices.Concat(nodes[n:], nodes[:n]))(ctx, network, address)
	}
}

// balancerTimeout is how long a load balancer waits for a server.
const balancerTimeout = time.Second

// kubernetesName is a name that a Lease may have.
func kubernetesName(lock string) string {
	return "lock-" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(lock)))
}

// kubernetesLease rounds a lease up to what a Lease can tell.
func kubernetesLease(ttl time.Duration) time.Duration {
	return max((ttl + kubernetesTTLStep - 1).Truncate(kubernetesTTLStep), kubernetesTTLStep)
}

func (l *kubernetesLock) lease(a Attempt) *resourcelock.LeaseLock {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: kubernetesName(a.Key), Namespace: KubernetesNamespace},
		Client:     l.client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: a.ID},
	}
}

// Acquire implements Lock: a candidate of its own for each attempt.
func (l *kubernetesLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	t := &kubernetesTerm{
		record: kubernetesRecord{Interface: l.lease(a)},
		begun:  make(chan struct{}), lost: make(chan struct{}), over: make(chan struct{}),
	}
	lease := kubernetesLease(a.TTL)
	deadline, retry := l.renewal(lease)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &t.record, LeaseDuration: lease, RenewDeadline: deadline, RetryPeriod: retry,
		ReleaseOnCancel: !l.keeps(), Name: a.Key,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: t.begin, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return Grant{}, &NoEffectError{Err: err}
	}
	t.elector = elector
	// The zero Logger drops what the library would write to the standard error.
	t.running, t.end = context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), klog.Logger{}))
	l.terms.put(a.ID, t)
	go func() {
		defer close(t.over)
		elector.Run(t.running)
	}()
	select {
	case <-t.begun:
		return Grant{Key: a.Key, ID: a.ID, Token: t.record.token(), Lost: t.lost}, nil
	case <-ctx.Done():
		return Grant{}, l.givenUp(ctx, a, t)
	}
}

// givenUp says what is known of an attempt that is over before it was granted.
func (l *kubernetesLock) givenUp(ctx context.Context, a Attempt, t *kubernetesTerm) error {
	t.end()
	select {
	case <-t.over:
	case <-time.After(withdrawal):
		return ctx.Err()
	}
	if t.record.mayHold() {
		return ctx.Err()
	}
	l.terms.take(a.ID)
	if l.keeps() {
		return &BusyError{} // whom the Lease names may have ended its term
	}
	return &BusyError{Holder: t.elector.GetLeader()}
}

// Release implements Lock. An attempt that the library does not take back is taken back by the
// calls that the library would make.
func (l *kubernetesLock) Release(ctx context.Context, g Grant) error {
	t, known := l.terms.take(g.ID)
	if !known {
		return ErrNotHeld
	}
	t.end()
	select {
	case <-t.over:
	case <-ctx.Done():
		l.terms.put(g.ID, t)
		return ctx.Err()
	}
	switch {
	case t.record.gaveBack():
		return nil
	case !t.elector.IsLeader():
		return ErrNotHeld
	case l.keeps():
		return nil
	}
	err := withdrawLease(ctx, l.lease(Attempt{Key: g.Key, ID: g.ID}))
	if err != nil && !errors.Is(err, ErrNotHeld) {
		l.terms.put(g.ID, t)
	}
	return err
}

// withdrawLease ends a lease that is held in this name.
func withdrawLease(ctx context.Context, lease *resourcelock.LeaseLock) error {
	record, _, err := lease.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return ErrNotHeld
	case err != nil:
		return err
	case record.HolderIdentity != lease.Identity():
		return ErrNotHeld
	}
	return lease.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: metav1.Now(), AcquireTime: metav1.Now(),
	})
}

// Holds implements Asker. A read without a resource version goes to a majority of etcd.
func (l *kubernetesLock) Holds(ctx context.Context, g Grant) (bool, error) {
	record, _, err := l.lease(Attempt{Key: g.Key, ID: g.ID}).Get(ctx)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && record.HolderIdentity == g.ID, err
}

// Close implements Lock. Who still leads gives up its term.
func (l *kubernetesLock) Close() error {
	for _, t := range l.terms.takeAll() {
		t.end()
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

// kubernetesRecord keeps what the library does not tell: what it has written last, and whether
// a write after that may have had its effect.
type kubernetesRecord struct {
	resourcelock.Interface
	mu      sync.Mutex
	written resourcelock.LeaderElectionRecord
	doubt   bool
}

func (r *kubernetesRecord) Create(ctx context.Context, written resourcelock.LeaderElectionRecord) error {
	return r.wrote(written, r.Interface.Create(ctx, written))
}

func (r *kubernetesRecord) Update(ctx context.Context, written resourcelock.LeaderElectionRecord) error {
	return r.wrote(written, r.Interface.Update(ctx, written))
}

func (r *kubernetesRecord) wrote(written resourcelock.LeaderElectionRecord, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch status := apierrors.APIStatus(nil); {
	case err == nil:
		r.written, r.doubt = written, false
	case !errors.As(err, &status) || status.Status().Code >= 500:
		r.doubt = true
	}
	return err
}

// token counts the terms of a Lease from 1, and the library from 0.
func (r *kubernetesRecord) token() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return uint64(r.written.LeaderTransitions) + 1
}

// mayHold says whether the lease may be in its name, as far as it has written.
func (r *kubernetesRecord) mayHold() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doubt || r.written.HolderIdentity != ""
}

// gaveBack says whether its last write took the name of a holder away.
func (r *kubernetesRecord) gaveBack() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.doubt && r.written.HolderIdentity == "" && r.written.LeaseDurationSeconds != 0
}
