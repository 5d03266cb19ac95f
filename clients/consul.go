//go:build !embedded

package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"
)

// consulLeastDelay replaces a lock delay of zero. The library omits a zero, for which Consul uses 15 s, so 1 ms
// is the shortest delay that it can request.
const consulLeastDelay = time.Millisecond

// consulLock is api.Lock of Consul's own client, used as its godoc shows: LockOpts with a session that the
// library creates, renews and destroys, an attempt bounded by LockTryOnce and LockWaitTime, and Unlock. Each
// worker uses one server, as an application uses its local agent.
type consulLock struct {
	config    Config
	transport *http.Transport
	servers   []*api.Client // for this package's own requests
	turn      atomic.Uint32 // selects the server
	attempts  handles[*consulAttempt]
	open      context.Context // until Close
	stop      context.CancelFunc
}

type consulAttempt struct {
	lock *api.Lock
	wire *consulWire
	lost <-chan struct{} // nil before the lock is granted
}

func openConsul(c Config) (Lock, error) {
	lock, err := newConsulLock(c)
	if err != nil {
		return nil, err // returning lock would make an interface that is not nil
	}
	return lock, nil
}

func newConsulLock(c Config) (*consulLock, error) {
	if len(c.Nodes) == 0 {
		return nil, errors.New("consul needs servers")
	}
	if c.NoKeepAlive {
		return nil, errors.New("the library always keeps its session alive")
	}
	lock := &consulLock{config: c, transport: api.DefaultConfig().Transport}
	lock.open, lock.stop = context.WithCancel(context.Background())
	for _, address := range c.Nodes {
		client, err := newConsulClient(address, lock.transport)
		if err != nil {
			return nil, err
		}
		lock.servers = append(lock.servers, client)
	}
	// Worker names are numbered, so the sums of their letters spread the workers over the servers.
	for _, letter := range []byte(c.Worker) {
		lock.turn.Add(uint32(letter))
	}
	return lock, nil
}

func newConsulClient(address string, transport http.RoundTripper) (*api.Client, error) {
	return api.NewClient(&api.Config{Address: address, HttpClient: &http.Client{Transport: transport}})
}

// server returns the index of the server that is used at present.
func (l *consulLock) server() int { return int(l.turn.Load()) % len(l.servers) }

func (l *consulLock) withdraws() bool { return l.config.options.has(withdrawOption) }

// lockDelay returns a delay that the library can request: for a zero it would get Consul's default.
func (l *consulLock) lockDelay() time.Duration {
	if l.config.LockDelay == nil {
		return consulLeastDelay
	}
	return max(*l.config.LockDelay, consulLeastDelay)
}

func (l *consulLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	t, err := l.prepare(ctx, a)
	if err != nil {
		return Grant{}, &NoEffectError{Err: err}
	}
	if l.withdraws() {
		defer context.AfterFunc(ctx, t.wire.end)()
	}
	l.attempts.put(a.ID, t)
	grant, err := t.acquire(ctx, a)
	if err == nil && l.withdraws() && ctx.Err() != nil {
		err = errConsulLost // the session is not renewed any more
	}
	if err != nil && OutcomeOf(err) != Busy && l.withdraws() {
		err = l.giveUp(ctx, a.Key, t, err)
	}
	if outcome := OutcomeOf(err); outcome == Busy || outcome == NoEffect {
		l.attempts.take(a.ID)
	}
	return grant, err
}

// prepare creates the library's lock for an attempt. Each attempt has a client of its own, so its requests can
// be distinguished from those of others. All clients share the connections.
func (l *consulLock) prepare(ctx context.Context, a Attempt) (*consulAttempt, error) {
	wire := newConsulWire(l.open, l.transport, "acquire", l.config.renewals(a))
	client, err := newConsulClient(l.config.Nodes[l.server()], wire)
	if err != nil {
		return nil, err
	}
	options := &api.LockOptions{
		Key: a.Key, Value: []byte(a.ID), SessionName: a.ID, SessionTTL: a.TTL.String(),
		LockDelay: l.lockDelay(),
	}
	if deadline, limited := ctx.Deadline(); limited {
		options.LockTryOnce = true
		options.LockWaitTime = max(time.Until(deadline), time.Millisecond)
	}
	if l.config.options.has(monitorRetries) {
		options.MonitorRetries = 5 // as Terraform does
	}
	lock, err := client.LockOpts(options)
	return &consulAttempt{lock: lock, wire: wire}, err
}

// errConsulLost: the lock was lost before the library had read its lock index.
var errConsulLost = errors.New("granted, but lost before its index was read")

// acquire waits in the library, and then for the first read of the library's watch on the key. That read has
// the token of the grant. A late grant is still a grant, so only the end of the watch ends the wait, not the
// context.
func (t *consulAttempt) acquire(ctx context.Context, a Attempt) (Grant, error) {
	lost, err := t.lock.Lock(ctx.Done())
	t.lost = lost
	switch {
	case err == nil && lost == nil:
		return Grant{}, &BusyError{}
	case err != nil && !t.wire.asked.Load():
		return Grant{}, &NoEffectError{Err: err}
	case err != nil:
		return Grant{}, err
	}
	select {
	case <-lost:
	case <-t.wire.tokenRead:
	}
	if token := t.wire.token.Load(); token != 0 {
		return Grant{Key: a.Key, ID: a.ID, Token: token, Lost: lost}, nil
	}
	return Grant{}, errConsulLost
}

// errConsulAbandoned: the library had reported the loss of the lock, so the program does not unlock it.
var errConsulAbandoned = errors.New("the lost lock is abandoned")

// isLost reports whether the library has reported the loss of the lock.
func (t *consulAttempt) isLost() bool {
	select {
	case <-t.lost:
		return true
	default:
		return false
	}
}

func (l *consulLock) Release(ctx context.Context, g Grant) error {
	t, known := l.attempts.take(g.ID)
	if !known {
		return errNoHandle
	}
	if l.config.options.has(abandonLost) && t.isLost() {
		return &NoEffectError{Err: errConsulAbandoned}
	}
	if l.withdraws() {
		defer context.AfterFunc(ctx, t.wire.end)()
	}
	err := t.lock.Unlock()
	switch {
	case err == nil && t.wire.held.Load():
		return nil
	case err == nil:
		return ErrNotHeld
	case !l.withdraws():
		return err
	}
	held, unlock, end := l.withdraw(ctx, g.Key, t)
	switch {
	case held:
		return nil
	case errors.Is(err, api.ErrLockNotHeld) && unlock == nil && end == nil:
		return ErrNotHeld // the lock was never granted
	}
	return errors.Join(err, unlock, end)
}

// giveUp withdraws a failed attempt and returns an error that states its outcome.
func (l *consulLock) giveUp(ctx context.Context, key string, t *consulAttempt, cause error) error {
	stopped := ctx.Err() != nil
	_, _, err := l.withdraw(ctx, key, t)
	switch {
	case err != nil && t.wire.asked.Load():
		return fmt.Errorf("%w, and could not be taken back: %w", cause, err)
	case stopped && !errors.Is(err, errConsulNoSession):
		return &BusyError{}
	}
	return &NoEffectError{Err: cause}
}

// errConsulNoSession: the servers have not confirmed a session.
var errConsulNoSession = errors.New("there is no session")

// withdraw cancels all requests of an attempt and destroys its session, so that a request still in flight will
// be refused. The lock is released first, because destroying a session that still holds it starts a lock delay.
// After a failure the worker uses the next server.
func (l *consulLock) withdraw(ctx context.Context, key string, t *consulAttempt) (held bool, unlock, end error) {
	t.wire.end()
	defer func() {
		if unlock != nil || end != nil {
			l.turn.Add(1)
		}
	}()
	client, session := l.servers[l.server()], t.wire.session.Load().(string)
	if session == "" {
		return false, nil, errConsulNoSession
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawal)
	defer cancel()
	options := new(api.WriteOptions).WithContext(ctx)
	held, _, unlock = client.KV().Release(&api.KVPair{Key: key, Session: session, Flags: api.LockFlagValue}, options)
	_, end = client.Session().Destroy(session, options)
	return held, unlock, end
}

// Holds implements Asker. After a failure the worker uses the next server.
func (l *consulLock) Holds(ctx context.Context, g Grant) (bool, error) {
	options := &api.QueryOptions{RequireConsistent: true}
	pair, _, err := l.servers[l.server()].KV().Get(g.Key, options.WithContext(ctx))
	if err != nil {
		l.turn.Add(1)
		return false, err
	}
	return pair != nil && pair.Session != "" && pair.LockIndex == g.Token, nil
}

// Close ends background requests. The sessions expire by themselves.
func (l *consulLock) Close() error {
	l.stop()
	l.transport.CloseIdleConnections()
	return nil
}
