//go:build !embedded

package clients

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/go-zookeeper/zk"
)

// zkSession is one session with ZooKeeper. A worker has one for all of its
// attempts, as users have it: to open one is a write that a majority must store.
// The library pings each third of the timeout, and looks for another server when
// it had no answer for two thirds.
type zkSession struct {
	conn *zk.Conn
	over chan struct{} // closed when it was given up

	mu   sync.Mutex
	up   chan struct{} // closed while a server serves the session
	down chan struct{} // closed when that server is lost
}

// openZKSession returns at once; the library connects in the background.
func openZKSession(c Config) (*zkSession, error) {
	if c.NoKeepAlive {
		return nil, errors.New("the library always keeps a session alive")
	}
	ttl := cmp.Or(c.TTL, zkTTL)
	if ttl < ZooKeeperMinTTL || ttl > ZooKeeperMaxTTL {
		return nil, fmt.Errorf("the servers give sessions of %s to %s, not %s", ZooKeeperMinTTL, ZooKeeperMaxTTL, ttl)
	}
	s := &zkSession{over: make(chan struct{}), up: make(chan struct{}), down: make(chan struct{})}
	close(s.down)
	var err error
	s.conn, _, err = zk.Connect(c.Nodes, ttl, zk.WithEventCallback(s.observe),
		zk.WithLogger(SilentZooKeeper{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	return s, nil
}

// SilentZooKeeper keeps the library from writing on the standard error output.
type SilentZooKeeper struct{}

func (SilentZooKeeper) Printf(string, ...any) {}

// observe is told of each change of the connection, before any caller of the
// library is.
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

// errGivenUp is the outcome of what is asked of a session that was given up.
var errGivenUp = errors.New("the session was given up")

// connected waits until a server serves the session, and returns a channel that
// is closed when that one is lost.
func (s *zkSession) connected(ctx context.Context) (lost <-chan struct{}, err error) {
	for {
		up, down := s.state()
		switch {
		case closed(s.over):
			return nil, errGivenUp
		case closed(up):
			return down, nil
		}
		select {
		case <-up:
		case <-s.over:
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

// zkRead makes a request that may be made twice, until it is answered.
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

// zkUnanswered says whether an error is the client's own: no server answered.
func zkUnanswered(err error) bool {
	var broken net.Error
	return zkUnsent(err) || errors.Is(err, zk.ErrConnectionClosed) ||
		errors.As(err, &broken) && !errors.Is(err, context.DeadlineExceeded)
}

// zkUnsent says whether the request certainly was not carried out.
func zkUnsent(err error) bool {
	return errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved)
}

// sessions keeps the one session of a worker, and replaces it when it was given up. The
// library itself opens a new one on the same connection when the servers ended it.
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

// giveUp ends a session about which something is in doubt, and everything with
// it that may still be under way: at once if the servers can be told, when its
// timeout has passed if not.
func (s *sessions) giveUp(session *zkSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == session {
		s.current = nil
	}
	if !closed(session.over) {
		close(session.over)
		go session.conn.Close() // it may wait for an answer that never comes
	}
}

// Holds implements Asker: the holder's attempt is in the first node of the queue. No node
// can come before that one, so it is enough that it is there when it is read.
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
		close(s.current.over)
		s.current.conn.Close()
		s.current = nil
	}
	return nil
}
