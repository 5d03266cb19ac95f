package clients

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"

	"lockcheck/history"
)

// consulDial bounds how long a server may take to accept a connection.
const consulDial = time.Second

// consulLock is api.Lock of Consul's own client. Two things are done in its
// place, by the calls that it would make: the session is made here, because
// the library cannot ask for no lock delay and tells nobody the session's name,
// without which a failed attempt cannot be taken back; and the lock is released
// here, because Unlock drops the answer whether it was still held.
//
// Each attempt has a session of its own, as it has in the library by default:
// to end it is what makes certain that an attempt was taken back.
type consulLock struct {
	config    Config
	transport *http.Transport
	servers   []*api.Client
	// turn chooses the server. One is used until it fails, as an application uses
	// the one agent beside it.
	turn     atomic.Uint32
	attempts handles[*consulAttempt]
	open     context.Context // until Close
	stop     context.CancelFunc
}

// consulAttempt is an attempt that may have left something behind.
type consulAttempt struct {
	key, session string
	until        int64              // end of a session that nobody renews, ns; 0 for one that is kept alive
	client       *api.Client        // its requests can be ended together
	cancel       context.CancelFunc // ends them, and the renewal
}

func openConsul(c Config) (Lock, error) {
	if len(c.Nodes) == 0 {
		return nil, errors.New("consul needs servers")
	}
	lock := &consulLock{config: c, transport: api.DefaultConfig().Transport}
	lock.open, lock.stop = context.WithCancel(context.Background())
	lock.transport.DialContext = (&net.Dialer{Timeout: consulDial, KeepAlive: 30 * time.Second}).DialContext
	for _, address := range c.Nodes {
		client, err := newConsulClient(address, lock.transport)
		if err != nil {
			return nil, err
		}
		lock.servers = append(lock.servers, client)
	}
	// Names of workers are numbered: their sums spread them over the servers.
	for _, letter := range []byte(c.Worker) {
		lock.turn.Add(uint32(letter))
	}
	return lock, nil
}

func newConsulClient(address string, transport http.RoundTripper) (*api.Client, error) {
	return api.NewClient(&api.Config{Address: address, HttpClient: &http.Client{Transport: transport}})
}

// endingWith gives requests a context, for a library that gives them none.
type endingWith struct {
	ctx       context.Context
	transport http.RoundTripper
}

func (e endingWith) RoundTrip(r *http.Request) (*http.Response, error) {
	return e.transport.RoundTrip(r.WithContext(e.ctx))
}

// server returns the number of the server that is asked at present.
func (l *consulLock) server() int { return int(l.turn.Load()) % len(l.servers) }

func (l *consulLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	attempt, err := l.begin(ctx, a)
	if err != nil {
		l.turn.Add(1)
		// Without a session nothing was asked of the lock yet.
		return Grant{}, &NoEffectError{Err: err}
	}
	l.attempts.put(a.ID, attempt)
	grant, err := attempt.acquire(ctx, a)
	if err != nil {
		return Grant{}, l.giveUp(ctx, a.ID, attempt, err)
	}
	return grant, nil
}

// begin makes the session of an attempt and keeps it alive.
func (l *consulLock) begin(ctx context.Context, a Attempt) (*consulAttempt, error) {
	server := l.server()
	asked := history.Now()
	session, err := createConsulSession(ctx, l.servers[server], a, l.config.LockDelay)
	if err != nil {
		return nil, err
	}
	background, cancel := context.WithCancel(l.open)
	client, err := newConsulClient(l.config.Nodes[server], endingWith{ctx: background, transport: l.transport})
	if err != nil {
		cancel()
		return nil, err
	}
	attempt := &consulAttempt{key: a.Key, session: session, client: client, cancel: cancel}
	if l.config.NoKeepAlive {
		attempt.until = asked + a.TTL.Nanoseconds()
		return attempt, nil
	}
	options := new(api.WriteOptions).WithContext(background)
	go func() { _ = client.Session().RenewPeriodic(a.TTL.String(), session, options, nil) }()
	return attempt, nil
}

// createConsulSession always sends the lock delay. SessionEntry leaves out one
// of zero, which to Consul means 15 s.
func createConsulSession(ctx context.Context, client *api.Client, a Attempt, delay time.Duration) (string, error) {
	request := map[string]string{"Name": a.ID, "TTL": a.TTL.String(), "LockDelay": max(0, delay).String()}
	var answer struct{ ID string }
	_, err := client.Raw().Write("/v1/session/create", request, &answer, new(api.WriteOptions).WithContext(ctx))
	return answer.ID, err
}

var (
	// errConsulStopped is what became of an attempt whose context ended.
	errConsulStopped = errors.New("the attempt was stopped")
	// errConsulLost: the session ended before the fencing token could be read.
	errConsulLost = errors.New("the lock was lost at once")
)

// acquire ends all requests with ctx: the library looks at its stop channel only
// between queries, each of which may take 15 s, or for ever if the server is stopped.
func (t *consulAttempt) acquire(ctx context.Context, a Attempt) (Grant, error) {
	goOn := context.AfterFunc(ctx, t.cancel)
	grant, err := t.await(ctx, a)
	if !goOn() {
		return Grant{}, errConsulStopped
	}
	return grant, err
}

// await waits in the library, and reads the token of what it was granted.
func (t *consulAttempt) await(ctx context.Context, a Attempt) (Grant, error) {
	lost, err := t.lock(ctx, a)
	if err != nil {
		return Grant{}, err
	}
	options := &api.QueryOptions{RequireConsistent: true}
	pair, _, err := t.client.KV().Get(a.Key, options.WithContext(ctx))
	switch {
	case err != nil:
		return Grant{}, err
	case pair == nil || pair.Session != t.session:
		return Grant{}, errConsulLost
	}
	return Grant{Key: a.Key, ID: a.ID, Token: pair.LockIndex, Until: t.until, Lost: lost}, nil
}

func (t *consulAttempt) lock(ctx context.Context, a Attempt) (<-chan struct{}, error) {
	lock, err := t.client.LockOpts(&api.LockOptions{
		Key: a.Key, Value: []byte(a.ID), Session: t.session, SessionTTL: a.TTL.String(),
	})
	if err != nil {
		return nil, err
	}
	lost, err := lock.Lock(ctx.Done())
	if err == nil && lost == nil {
		return nil, errConsulStopped
	}
	return lost, err
}

// giveUp takes back an attempt that came to nothing. The lock is released first:
// the end of a session that still holds it begins a lock delay. Without its
// session a request of the attempt that is still on its way will be refused.
func (l *consulLock) giveUp(ctx context.Context, id string, t *consulAttempt, cause error) error {
	stopped := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawal)
	defer cancel()
	client := l.servers[l.server()]
	_, _ = t.unlock(ctx, client)
	if err := t.end(ctx, client); err != nil {
		// Whoever takes this attempt back, or makes the next, asks another server.
		l.turn.Add(1)
		return fmt.Errorf("%w, and could not be taken back: %w", cause, err)
	}
	l.attempts.take(id)
	if stopped {
		return &BusyError{}
	}
	return &NoEffectError{Err: cause}
}

func (l *consulLock) Release(ctx context.Context, g Grant) error {
	t, known := l.attempts.take(g.ID)
	if !known {
		return errNoHandle
	}
	client := l.servers[l.server()]
	held, err := t.unlock(ctx, client)
	end := t.end(ctx, client)
	switch {
	case err != nil:
		l.turn.Add(1)
		return err // without an answer the end of the session may have released it
	case held:
		return nil // a session that could not be ended runs out
	case end != nil:
		return end
	default:
		return ErrNotHeld
	}
}

// Holds implements Asker. A server that does not answer is not asked the next time.
func (l *consulLock) Holds(ctx context.Context, g Grant) (bool, error) {
	options := &api.QueryOptions{RequireConsistent: true}
	pair, _, err := l.servers[l.server()].KV().Get(g.Key, options.WithContext(ctx))
	if err != nil {
		l.turn.Add(1)
		return false, err
	}
	return pair != nil && pair.Session != "" && pair.LockIndex == g.Token, nil
}

// unlock releases the key and says whether the session held it.
func (t *consulAttempt) unlock(ctx context.Context, client *api.Client) (held bool, err error) {
	pair := &api.KVPair{Key: t.key, Session: t.session, Flags: api.LockFlagValue}
	held, _, err = client.KV().Release(pair, new(api.WriteOptions).WithContext(ctx))
	return held, err
}

// end ends the session and all that goes on in the background for it.
func (t *consulAttempt) end(ctx context.Context, client *api.Client) error {
	defer t.cancel()
	_, err := client.Session().Destroy(t.session, new(api.WriteOptions).WithContext(ctx))
	return err
}

// Close ends what is still alive in the background; the sessions run out.
func (l *consulLock) Close() error {
	l.stop()
	l.transport.CloseIdleConnections()
	return nil
}
