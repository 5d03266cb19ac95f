//go:build !embedded

package clients

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"lockcheck/history"
)

// memcachedGone as an expiration time makes a key expire at once.
const memcachedGone = -1

// memcachedAdd is a memcached key that add creates. Its holder releases and renews it with a compare-and-swap
// on what it has read: a plain delete could remove another client's lock.
type memcachedAdd struct{ client *memcache.Client }

// openMemcachedAdd uses the client's default settings.
func openMemcachedAdd(c Config) (Lock, error) {
	if len(c.Nodes) != 1 {
		return nil, fmt.Errorf("this lock needs one memcached, not %d", len(c.Nodes))
	}
	return &memcachedAdd{client: memcache.New(c.Nodes...)}, nil
}

// memcachedTime returns the expiration in seconds with which a key lasts for at least ttl.
func memcachedTime(ttl time.Duration) int32 {
	return int32((ttl+memcachedTick-1)/memcachedTick) + 1
}

func (l *memcachedAdd) Acquire(_ context.Context, a Attempt) (Grant, error) {
	start := history.Now()
	err := l.client.Add(&memcache.Item{Key: a.Key, Value: []byte(a.ID), Expiration: memcachedTime(a.TTL)})
	switch {
	case err == nil:
		return Grant{Key: a.Key, ID: a.ID, Until: start + a.TTL.Nanoseconds()}, nil
	case errors.Is(err, memcache.ErrNotStored):
		return Grant{}, l.busy(a.Key)
	case unsent(err):
		return Grant{}, &NoEffectError{Err: err}
	}
	return Grant{}, err
}

// busy names the current holder, if the key still exists.
func (l *memcachedAdd) busy(key string) error {
	item, err := l.client.Get(key)
	if err != nil {
		return &BusyError{}
	}
	return &BusyError{Holder: string(item.Value)}
}

// unsent reports whether an error means that the server was never reached. The client does not retry requests.
func unsent(err error) bool {
	var slow *memcache.ConnectTimeoutError
	var op *net.OpError
	return errors.As(err, &slow) || errors.As(err, &op) && op.Op == "dial"
}

func (l *memcachedAdd) Release(ctx context.Context, g Grant) error {
	return l.change(ctx, g, memcachedGone)
}

func (l *memcachedAdd) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	start := history.Now()
	if err := l.change(ctx, g, memcachedTime(ttl)); err != nil {
		return 0, err
	}
	return start + ttl.Nanoseconds(), nil
}

// change sets another expiration for the key of a grant. It retries after a concurrent renewal, so that no key
// stays behind.
func (l *memcachedAdd) change(ctx context.Context, g Grant, expiration int32) error {
	for {
		item, err := l.own(g)
		if err != nil {
			return err
		}
		item.Expiration = expiration
		switch err := l.client.CompareAndSwap(item); {
		case errors.Is(err, memcache.ErrCacheMiss):
			return ErrNotHeld
		case errors.Is(err, memcache.ErrCASConflict) && ctx.Err() == nil:
			continue
		default:
			return err
		}
	}
}

// own reads the key of a grant; ErrNotHeld if it belongs to another client.
func (l *memcachedAdd) own(g Grant) (*memcache.Item, error) {
	item, err := l.client.Get(g.Key)
	if errors.Is(err, memcache.ErrCacheMiss) || err == nil && string(item.Value) != g.ID {
		return nil, ErrNotHeld
	}
	return item, err
}

// Holds implements Asker.
func (l *memcachedAdd) Holds(_ context.Context, g Grant) (bool, error) {
	_, err := l.own(g)
	if errors.Is(err, ErrNotHeld) {
		return false, nil
	}
	return err == nil, err
}

func (l *memcachedAdd) Close() error { return l.client.Close() }
