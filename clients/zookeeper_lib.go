package clients

import (
	"context"
	"errors"
	"net"

	"github.com/go-zookeeper/zk"
)

// zooLib is the lock of github.com/go-zookeeper/zk as it is. It can be withdrawn
// only together with its session, and says neither where its node is nor since
// when: so there is no token.
type zooLib struct {
	sessions
	handles handles[zooHandle]
}

type zooHandle struct {
	lock    *zk.Lock
	session *zooSession
}

func openZooKeeperLib(c Config) (Lock, error) {
	lock := &zooLib{sessions: sessions{config: c, dial: net.DialTimeout}}
	if _, err := lock.get(); err != nil {
		return nil, err
	}
	return lock, nil
}

// Acquire gives up the session on any error: the library leaves its node in the
// queue when it fails, and as long as the session lives nobody behind it gets
// the lock.
func (l *zooLib) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	s, err := l.get()
	if err != nil {
		return Grant{}, &NoEffectError{Err: err}
	}
	if _, err := s.connected(ctx); err != nil {
		return Grant{}, &NoEffectError{Err: err}
	}
	lock := zk.NewLock(s.conn, folderOf(a.Key), zk.WorldACL(zk.PermAll))
	_, err = zooCall(ctx, func() (struct{}, error) { return struct{}{}, lock.LockWithData([]byte(a.ID)) })
	if err != nil {
		l.giveUp(s)
		return Grant{}, err
	}
	l.handles.put(a.ID, zooHandle{lock, s})
	_, lost := s.state()
	return Grant{Key: a.Key, ID: a.ID, Lost: lost}, nil
}

// Release gives up the session if the answer was lost: the node may be there.
func (l *zooLib) Release(ctx context.Context, g Grant) error {
	h, known := l.handles.take(g.ID)
	if !known {
		return errNoHandle
	}
	_, err := zooCall(ctx, func() (struct{}, error) { return struct{}{}, h.lock.Unlock() })
	switch {
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrSessionExpired):
		return ErrNotHeld
	case err != nil:
		l.giveUp(h.session)
	}
	return err
}
