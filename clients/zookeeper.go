//go:build !embedded

package clients

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// zkLock is the lock recipe of ZooKeeper's documentation. Each attempt has an ephemeral node in a queue, which
// ends with its session. The first node in the queue belongs to the holder.
type zkLock struct {
	sessions
	watch zkWatch
	nodes handles[string] // paths of the nodes of our grants
}

// zkWatch returns a channel that receives an event when the queue changes up to index before. The channel is
// nil if it has changed already.
type zkWatch func(s *zkSession, folder string, queue []string, before int) (<-chan zk.Event, error)

func openZooKeeper(c Config) (Lock, error)     { return newZKLock(c, watchPredecessor) }
func openZooKeeperHerd(c Config) (Lock, error) { return newZKLock(c, watchParent) }

func newZKLock(c Config, watch zkWatch) (Lock, error) {
	lock := &zkLock{sessions: sessions{config: c}, watch: watch}
	if _, err := lock.get(); err != nil {
		return nil, err
	}
	return lock, nil
}

func (l *zkLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	s, err := l.get()
	if err != nil {
		return Grant{}, &NoEffectError{Err: err}
	}
	if _, err := s.connected(ctx); err != nil {
		return Grant{}, &NoEffectError{Err: err}
	}
	node, err := enqueue(ctx, s, a)
	if err != nil {
		return Grant{}, l.failed(ctx, s, a, "", err)
	}
	grant, first, err := l.await(ctx, s, a, node)
	if err != nil {
		return Grant{Wakes: grant.Wakes}, l.failed(ctx, s, a, first, err)
	}
	l.nodes.put(a.ID, folderOf(a.Key)+"/"+node)
	return grant, nil
}

// failed returns an error that states the outcome of a failed attempt. If the attempt may be in the queue, it
// is withdrawn.
func (l *zkLock) failed(ctx context.Context, s *zkSession, a Attempt, first string, cause error) error {
	switch {
	case OutcomeOf(cause) == NoEffect:
		return cause
	case errors.Is(cause, errZKGone), errors.Is(cause, zk.ErrSessionExpired):
		return &NoEffectError{Err: cause} // the node was removed with its session
	}
	return l.withdrawn(ctx, s, a, first, cause)
}

// withdrawn removes a failed attempt from the queue and returns an error that states its outcome.
func (l *zkLock) withdrawn(ctx context.Context, s *zkSession, a Attempt, first string, cause error) error {
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawal)
	defer cancel()
	err := withdraw(fresh, s, a.Key, a.ID)
	switch {
	case err != nil && !errors.Is(err, ErrNotHeld):
		return fmt.Errorf("%w; still in the queue: %w", cause, err)
	case ctx.Err() != nil && first != "" && ownerOf(first) != a.ID:
		return &BusyError{Holder: ownerOf(first)}
	}
	return &NoEffectError{Err: cause}
}

// Release of an attempt that was never granted removes it from the queue. If a removal is not answered, it is
// repeated in the background, like the guaranteed deletes of Apache Curator. Otherwise the live session would
// keep the node, and the lock would stay unavailable.
func (l *zkLock) Release(ctx context.Context, g Grant) error {
	s, err := l.get()
	if err != nil {
		return &NoEffectError{Err: err}
	}
	node, held := l.nodes.take(g.ID)
	if held {
		err = remove(ctx, s, node)
	} else {
		err = withdraw(ctx, s, g.Key, g.ID)
	}
	if err != nil && !errors.Is(err, ErrNotHeld) {
		go func() { _ = withdraw(context.WithoutCancel(ctx), s, g.Key, g.ID) }()
	}
	return err
}

// folderOf returns the parent of the queue's nodes for a lock. The parent is never removed, so its sequence
// numbers never start again.
func folderOf(key string) string { return "/lock-" + key }

// enqueue creates a node at the end of the queue and returns its name: the attempt's ID, a suffix for readers,
// and ten digits of sequence. With the ID, the node can be found if the answer to its creation is lost.
func enqueue(ctx context.Context, s *zkSession, a Attempt) (string, error) {
	folder := folderOf(a.Key)
	name := a.ID
	if a.Shared {
		name += zkReader
	}
	create := func() (string, error) {
		return s.conn.Create(folder+"/"+name+"-", []byte(a.ID), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	}
	path, err := callUntil(ctx, create)
	if errors.Is(err, zk.ErrNoNode) {
		if err := makeFolder(ctx, s, folder); err != nil {
			return "", &NoEffectError{Err: err}
		}
		path, err = callUntil(ctx, create)
	}
	switch {
	case err == nil:
		return strings.TrimPrefix(path, folder+"/"), nil
	case zkUnsent(err):
		return "", &NoEffectError{Err: err}
	case !zkUnanswered(err):
		return "", err
	}
	queue, err := queueOf(ctx, s, a.Key)
	if err != nil {
		return "", err
	}
	for _, node := range queue {
		if ownerOf(node) == a.ID {
			return node, nil
		}
	}
	return "", noEffect("the request to queue was lost")
}

// makeFolder creates the parent of the queue unless it exists.
func makeFolder(ctx context.Context, s *zkSession, folder string) error {
	_, err := zkRead(ctx, s, func() (string, error) {
		return s.conn.Create(folder, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	})
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// await waits until the node has its turn. It also returns the first node of the last queue that it read. No
// such view of the queue is older than the own node.
func (l *zkLock) await(ctx context.Context, s *zkSession, a Attempt, node string) (g Grant, first string, err error) {
	g.Key, g.ID = a.Key, a.ID
	for {
		if g.Lost, err = s.connected(ctx); err != nil {
			return g, first, err
		}
		queue, err := zkRead(ctx, s, func() ([]string, error) { return children(s, a.Key) })
		if err != nil {
			return g, first, err
		}
		at := slices.Index(queue, node)
		if at < 0 {
			return g, first, errZKGone
		}
		first = queue[0]
		if before := ahead(queue, at); before >= 0 {
			woken, err := l.awaitChange(ctx, s, folderOf(a.Key), queue, before)
			if woken {
				g.Wakes++
			}
			if err != nil {
				return g, first, err
			}
			continue
		}
		if g.Token, err = tokenOf(ctx, s, folderOf(a.Key)+"/"+node); err != nil {
			return g, first, err
		}
		if !closed(g.Lost) {
			return g, first, nil
		}
	}
}

// errZKGone: the node no longer exists, because its session expired.
var errZKGone = errors.New("the session ran out while it waited")

// awaitChange waits until the place in the queue may have changed, and reports whether a notification of the service
// woke it up.
func (l *zkLock) awaitChange(ctx context.Context, s *zkSession, folder string, queue []string, before int) (woken bool, err error) {
	event, err := zkRead(ctx, s, func() (<-chan zk.Event, error) { return l.watch(s, folder, queue, before) })
	if err != nil || event == nil {
		return false, err
	}
	select {
	case e := <-event:
		return e.Err == nil, e.Err // the library sets Err if the session has ended
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// watchPredecessor wakes only one waiter for each node that is removed.
func watchPredecessor(s *zkSession, folder string, queue []string, before int) (<-chan zk.Event, error) {
	// GetW, because ExistsW would leave a watch behind if the node does not exist.
	_, _, event, err := s.conn.GetW(folder + "/" + queue[before])
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return event, err
}

// watchParent wakes every waiter for each node that is created or removed.
func watchParent(s *zkSession, folder string, queue []string, _ int) (<-chan zk.Event, error) {
	now, _, event, err := s.conn.ChildrenW(folder)
	if err == nil && !slices.Contains(now, queue[0]) {
		return nil, nil
	}
	return event, err
}

// tokenOf returns the ID of the transaction that created a node (czxid). Later nodes in the queue have higher
// ones.
func tokenOf(ctx context.Context, s *zkSession, path string) (uint64, error) {
	stat, err := zkRead(ctx, s, func() (*zk.Stat, error) {
		exists, stat, err := s.conn.Exists(path)
		if err == nil && !exists {
			err = errZKGone
		}
		return stat, err
	})
	if err != nil {
		return 0, err
	}
	return uint64(stat.Czxid), nil
}

// queueOf returns the queue after a sync, so that no earlier request can still change it. Without the sync, a
// new server could lag behind what a lost server had done for this session.
func queueOf(ctx context.Context, s *zkSession, key string) ([]string, error) {
	return zkRead(ctx, s, func() ([]string, error) {
		if _, err := s.conn.Sync(folderOf(key)); err != nil {
			return nil, err
		}
		queue, err := children(s, key)
		if errors.Is(err, zk.ErrNoNode) {
			return nil, nil
		}
		return queue, err
	})
}

// children returns the queue for a lock, the holder first.
func children(s *zkSession, key string) ([]string, error) {
	names, _, err := s.conn.Children(folderOf(key))
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(sequenceOf(a), sequenceOf(b)) })
	return names, err
}

// zkSequence is how many digits of sequence the service appends to a name.
const zkSequence = 10

func sequenceOf(node string) string { return node[max(0, len(node)-zkSequence):] }
func ownerOf(node string) string    { return strings.TrimSuffix(queued(node), zkReader) }
func isReader(node string) bool     { return strings.HasSuffix(queued(node), zkReader) }
func queued(node string) string     { return node[:max(0, len(node)-zkSequence-1)] }

// zkReader marks the nodes of readers. No attempt's ID ends with it.
const zkReader = "-r"

// ahead returns the index of the node for which the node at index at waits; -1 if that node has the lock. A
// writer waits for the node before it, a reader for the last writer before it ("Shared Locks" in ZooKeeper's
// recipes).
func ahead(queue []string, at int) int {
	before := at - 1
	for isReader(queue[at]) && before >= 0 && isReader(queue[before]) {
		before--
	}
	return before
}

// withdraw removes the node of an attempt. It returns ErrNotHeld unless the attempt had its turn, because only
// then was it a holder.
func withdraw(ctx context.Context, s *zkSession, key, id string) error {
	queue, err := queueOf(ctx, s, key)
	if err != nil {
		return err
	}
	for at, node := range queue {
		if ownerOf(node) != id {
			continue
		}
		if err := remove(ctx, s, folderOf(key)+"/"+node); err != nil || ahead(queue, at) < 0 {
			return err
		}
		return ErrNotHeld
	}
	return ErrNotHeld
}

// errZKWho: after a lost answer it is unknown which request removed the node.
var errZKWho = errors.New("the node is gone, by an earlier request or because the session ran out")

// remove removes a node; ErrNotHeld if it was gone already.
func remove(ctx context.Context, s *zkSession, path string) error {
	asked := false
	for {
		if _, err := s.connected(ctx); err != nil {
			return err
		}
		err := doUntil(ctx, func() error { return s.conn.Delete(path, -1) })
		switch {
		case errors.Is(err, zk.ErrNoNode) && asked:
			return errZKWho
		case errors.Is(err, zk.ErrNoNode):
			return ErrNotHeld
		case !zkUnanswered(err):
			return err
		}
		asked = asked || !zkUnsent(err)
	}
}
