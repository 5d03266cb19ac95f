// Package leaselock stands for a lock library for Go. Its lock is a lease at lockcheck's embedded service, over
// HTTP.
package leaselock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"
)

// ErrNotHeld: another client has the lock, or no client has it.
var ErrNotHeld = errors.New("leaselock: not held")

// Client takes locks at one service.
type Client struct{ http http.Client }

// New returns a client of the service behind a Unix socket.
func New(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &Client{http: http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// Lock is a lease that was granted.
type Lock struct {
	Token uint64    // increases with each grant
	Until time.Time // the end of the lease
	owner request
}

type request struct {
	Key string        `json:"key"`
	ID  string        `json:"id"`
	TTL time.Duration `json:"ttl_ns"`
}

// TryLock takes the lock for ttl. It returns ErrNotHeld if another client has it.
func (c *Client) TryLock(ctx context.Context, key, owner string, ttl time.Duration) (*Lock, error) {
	l := &Lock{owner: request{key, owner, ttl}}
	return l, c.call(ctx, "acquire", l)
}

// Extend starts the lease again, for its full length.
func (c *Client) Extend(ctx context.Context, l *Lock) error { return c.call(ctx, "renew", l) }

// Unlock releases the lock.
func (c *Client) Unlock(ctx context.Context, l *Lock) error { return c.call(ctx, "release", l) }

func (c *Client) call(ctx context.Context, method string, l *Lock) error {
	until := time.Now().Add(l.owner.TTL) // taken before the request: the service starts the lease later, so until is never too late
	body, err := json.Marshal(l.owner)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://unix/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var reply struct {
		Done  bool   `json:"done"`
		Token uint64 `json:"token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&reply); err != nil {
		return err
	}
	if !reply.Done {
		return ErrNotHeld
	}
	if reply.Token != 0 {
		l.Token = reply.Token
	}
	l.Until = until
	return nil
}
