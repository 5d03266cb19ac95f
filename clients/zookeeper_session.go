//go:build !embedded

package clients

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// zkSession is a session with ZooKeeper. A worker uses one for all its attempts, as users do: opening a session
// is a write that a majority must store. The library sends a ping every third of the timeout, and looks for
// another server after two thirds without an answer.
type zkSession struct {
	conn      *zk.Conn
	abandoned chan struct{} // closed when giveUp has abandoned the session

	mu   sync.Mutex
	up   chan struct{} // closed while a server serves the session
	down chan struct{} // closed when that server is lost
}

// openZKSession returns at once. The library connects in the background.
func openZKSession(c Config) (*zkSession, error) {
	if c.NoKeepAlive {
		return nil, errors.New("the library always keeps a session alive")
	}
	ttl := cmp.Or(c.TTL, zkTTL)
	if ttl < ZooKeeperMinTTL || ttl > ZooKeeperMaxTTL {
		return nil, fmt.Errorf("the servers give sessions of %s to %s, not %s", ZooKeeperMinTTL, ZooKeeperMaxTTL, ttl)
	}
	s := &zkSession{abandoned: make(chan struct{}), up: make(chan struct{}), down: make(chan struct{})}
	close(s.down)
	var err error
	s.conn, _, err = zk.Connect(c.Nodes, ttl, zk.WithEventCallback(s.observe), zk.WithDialer(c.dialZK),
		zk.WithLogger(SilentZooKeeper{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	return s, nil
}

// dialZK opens a connection as the library does by default.
func (c Config) dialZK(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &zkPings{Conn: conn, renewing: c.renewing}, nil
}

// SilentZooKeeper keeps the library from writing to standard error.
type SilentZooKeeper struct{}

func (SilentZooKeeper) Printf(string, ...any) {}

// observe handles each change of the connection. The library calls it before any waiting call returns.
func (s *zkSession) observe(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.State {
	case zk.StateHasSession:
		s.down = make(chan struct{})
		close(s.up)
	case zk.StateDisconnected, zk.StateExpired:
		if !closed(s.down) {
			close(s.down)
			s.up = make(chan struct{})
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// errGivenUp is the outcome of calls on an abandoned session.
var errGivenUp = errors.New("the session was given up")

// connected waits until a server serves the session, and returns a channel that is closed when that server is
// lost.
func (s *zkSession) connected(ctx context.Context) (lost <-chan struct{}, err error) {
	for {
		up, down := s.state()
		switch {
		case closed(s.abandoned):
			return nil, errGivenUp
		case closed(up):
			return down, nil
		}
		select {
		case <-up:
		case <-s.abandoned:
		case <-ctx.Done():
			return nil, fmt.Errorf("no connection: %w", ctx.Err())
		}
	}
}

func (s *zkSession) state() (up, down <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up, s.down
}

// zkRead repeats an idempotent request until a server answers it.
func zkRead[T any](ctx context.Context, s *zkSession, request func() (T, error)) (T, error) {
	for {
		if _, err := s.connected(ctx); err != nil {
			var none T
			return none, err
		}
		value, err := callUntil(ctx, request)
		if !zkUnanswered(err) {
			return value, err
		}
	}
}

// zkUnanswered reports whether an error comes from the client itself: no server answered.
func zkUnanswered(err error) bool {
	var broken net.Error
	return zkUnsent(err) || errors.Is(err, zk.ErrConnectionClosed) ||
		errors.As(err, &broken) && !errors.Is(err, context.DeadlineExceeded)
}

// zkUnsent reports whether the request was certainly not carried out.
func zkUnsent(err error) bool {
	return errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved)
}

// sessions keeps the current session of a worker, and replaces it after giveUp. If the servers end a session,
// the library itself opens a new one on the same connection.
type sessions struct {
	config Config

	mu      sync.Mutex
	current *zkSession
}

func (s *sessions) get() (*zkSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		opened, err := openZKSession(s.config)
		if err != nil {
			return nil, err
		}
		s.current = opened
	}
	return s.current, nil
}

// giveUp abandons a session whose state is in doubt, together with any request that is still in flight. The
// session ends at once if a server can be reached, otherwise when its timeout has passed.
func (s *sessions) giveUp(session *zkSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == session {
		s.current = nil
	}
	if !closed(session.abandoned) {
		close(session.abandoned)
		go session.conn.Close() // it may wait for an answer that never comes
	}
}

// Holds implements Asker: the first node of the queue belongs to the holder. No node can get in front of it, so
// it is enough that the node exists when it is read.
func (s *sessions) Holds(ctx context.Context, g Grant) (bool, error) {
	session, err := s.get()
	if err != nil {
		return false, err
	}
	for {
		queue, err := queueOf(ctx, session, g.Key)
		if err != nil || len(queue) == 0 {
			return false, err
		}
		holder, err := zkRead(ctx, session, func() ([]byte, error) {
			data, _, err := session.conn.Get(folderOf(g.Key) + "/" + queue[0])
			return data, err
		})
		if !errors.Is(err, zk.ErrNoNode) {
			return err == nil && string(holder) == g.ID, err
		}
	}
}

func (s *sessions) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		close(s.current.abandoned)
		s.current.conn.Close()
		s.current = nil
	}
	return nil
}
