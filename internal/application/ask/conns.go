package ask

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// carried is how many bytes a connection may carry for one answer: the answer, and what its protocol adds.
const carried = maxSize + 4<<20

// conns are the network connections of one source. They bound what a library reads of one answer, and can be
// closed whatever the library waits for.
type conns struct {
	mu   sync.Mutex
	open map[*conn]bool
	// exceeded is that a connection has carried too much since refill. Libraries keep the error of a connection to
	// themselves.
	exceeded atomic.Bool
}

// conn is one of them.
type conn struct {
	net.Conn
	owner *conns
	left  atomic.Int64 // bytes that it may still carry
}

func newConns() *conns { return &conns{open: make(map[*conn]bool)} }

// dial connects as net.Dialer does.
func (c *conns) dial(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	made := &conn{Conn: raw, owner: c}
	made.left.Store(carried)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[made] = true
	return made, nil
}

// refill lets each connection carry another answer.
func (c *conns) refill() {
	c.exceeded.Store(false)
	c.mu.Lock()
	defer c.mu.Unlock()
	for each := range c.open {
		each.left.Store(carried)
	}
}

// bounded is the error of a library that reads from the connections.
func (c *conns) bounded(err error) error {
	if err != nil && c.exceeded.Load() {
		return errTooLarge
	}
	return err
}

// cut closes all connections.
func (c *conns) cut() {
	c.mu.Lock()
	all := c.open
	c.open = make(map[*conn]bool)
	c.mu.Unlock()
	for each := range all {
		_ = each.Conn.Close()
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		c.owner.exceeded.Store(true)
		return 0, errTooLarge
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.left.Add(-int64(n))
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.owner.mu.Lock()
	delete(c.owner.open, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}
