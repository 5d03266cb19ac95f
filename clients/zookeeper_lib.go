//go:build !embedded

package clients

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// zkLib is the lock of github.com/go-zookeeper/zk, used as its godoc shows: Lock, then Unlock, in the process's
// only session. The library exposes neither the path nor the czxid of its node, so there is no token. A waiting
// attempt cannot be cancelled.
type zkLib struct {
	sessions
	locks handles[zkGrant]
}

type zkGrant struct {
	lock    *zk.Lock
	session *zkSession
}

func openZooKeeperLib(c Config) (Lock, error) {
	lock := &zkLib{sessions: sessions{config: c}}
	if _, err := lock.get(); err != nil {
		return nil, err
	}
	return lock, nil
}

func (l *zkLib) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	s, err := l.get()
	if err != nil {
		return Grant{}, &NoEffectError{Err: err}
	}
	lock := zk.NewLock(s.conn, folderOf(a.Key), zk.WorldACL(zk.PermAll))
	err = l.call(ctx, s, func() error { return lock.LockWithData([]byte(a.ID)) })
	switch {
	case errors.Is(err, zk.ErrSessionExpired):
		return Grant{}, &NoEffectError{Err: err} // the node was removed with the session
	case err != nil:
		return Grant{}, err
	}
	l.locks.put(a.ID, zkGrant{lock, s})
	grant := Grant{Key: a.Key, ID: a.ID}
	if l.config.options.has(WatchConnection) {
		_, grant.Lost = s.state()
	}
	return grant, nil
}

func (l *zkLib) Release(ctx context.Context, g Grant) error {
	h, known := l.locks.take(g.ID)
	if !known {
		return errNoHandle
	}
	err := l.call(ctx, h.session, h.lock.Unlock)
	if zkNotThere(err) {
		return ErrNotHeld
	}
	return err
}

// zkNotThere reports whether an error means that the node of an attempt is gone.
func zkNotThere(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired)
}

// call calls the library. After an error the library may have left a node behind, which blocks the lock for as
// long as the session lives. The option newSessionOnError ends that session, also when ctx ends first.
func (l *zkLib) call(ctx context.Context, s *zkSession, request func() error) error {
	if !l.config.options.has(newSessionOnError) {
		return request()
	}
	err := doUntil(ctx, request)
	if err != nil && !zkNotThere(err) {
		l.giveUp(s)
	}
	return err
}
