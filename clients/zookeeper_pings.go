//go:build !embedded

package clients

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"
)

// zkPings is a connection of the client library that reports what keeps the session alive: the first packet, which opens
// the session or takes it over, and pings. The library writes each packet with one call.
type zkPings struct {
	net.Conn
	renewing func(Renewal) (answered func(error))

	deadline time.Time // of writes

	mu      sync.Mutex
	greeted bool          // the first packet was sent
	waiting []func(error) // renewals without an answer; they are answered in order

	head     [zkHead]byte // of the packet that is being read
	got      int          // how much of the head was read
	left     uint32       // how much of the packet remains after the head
	welcomed bool         // the answer to the first packet was read
}

// Each packet begins with its length. Then the first one has a version, and in an answer the timeout of the session, which
// is 0 if the session is gone. Later ones have a number, which is -2 for every ping (ClientCnxn.PING_XID).
const (
	zkHead        = 12
	zkSessionID   = 20 // where the first packet has the session, 0 for a new one
	zkPing        = ^uint32(1)
	zkLength      = 4
	zkAfterNumber = 8
)

var errZKClosed = errors.New("the connection has ended")

func (c *zkPings) Write(packet []byte) (int, error) {
	switch {
	case !c.greeted && len(packet) >= zkSessionID+8:
		c.greeted = true
		c.ask(Renewal{Opens: binary.BigEndian.Uint64(packet[zkSessionID:]) == 0})
	case len(packet) >= zkAfterNumber && binary.BigEndian.Uint32(packet[zkLength:]) == zkPing:
		c.ask(Renewal{})
	}
	return c.Conn.Write(packet)
}

// SetWriteDeadline implements net.Conn.
func (c *zkPings) SetWriteDeadline(t time.Time) error {
	c.deadline = t
	return c.Conn.SetWriteDeadline(t)
}

// ask reports a renewal. The time for which it waits there does not count against the deadline of the write.
func (c *zkPings) ask(r Renewal) {
	began := time.Now()
	answered := c.renewing(r)
	if !c.deadline.IsZero() {
		_ = c.Conn.SetWriteDeadline(c.deadline.Add(time.Since(began))) // if it fails, the write fails too
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, answered)
}

func (c *zkPings) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	c.follow(into[:n])
	return n, err
}

// follow looks for answers to renewals in what was read.
func (c *zkPings) follow(data []byte) {
	for len(data) > 0 {
		if c.left > 0 {
			skipped := min(int(c.left), len(data))
			c.left, data = c.left-uint32(skipped), data[skipped:]
			continue
		}
		copied := copy(c.head[c.got:], data)
		c.got, data = c.got+copied, data[copied:]
		if c.got < zkHead {
			return
		}
		c.got, c.left = 0, max(zkHead-zkLength, binary.BigEndian.Uint32(c.head[:]))-(zkHead-zkLength)
		c.packet()
	}
}

// packet handles the head of a packet.
func (c *zkPings) packet() {
	number, timeout := binary.BigEndian.Uint32(c.head[zkLength:]), binary.BigEndian.Uint32(c.head[zkAfterNumber:])
	switch {
	case !c.welcomed && timeout == 0:
		c.answer(ErrNotHeld)
	case !c.welcomed, number == zkPing:
		c.answer(nil)
	}
	c.welcomed = true
}

func (c *zkPings) answer(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) > 0 {
		c.waiting[0](err)
		c.waiting = c.waiting[1:]
	}
}

func (c *zkPings) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, answered := range c.waiting {
		answered(errZKClosed)
	}
	c.waiting = nil
	return c.Conn.Close()
}
