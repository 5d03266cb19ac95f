package agent

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/florianl/go-nfqueue/v2"
	"golang.org/x/sys/unix"

	"lockcheck/history"
)

// Message chooses one TCP packet by what it carries. A message that TCP sends in several packets is not recognized
// where it is split.
type Message struct {
	// Contains is what the packet has among its data; nil for any data.
	Contains []byte `json:"contains,omitempty"`
	// Nth counts the packets that fit, from 1. A retransmission is not counted.
	Nth int `json:"nth"`
}

// Sighting is a packet that waits for the cut that holds it back to be healed.
type Sighting struct {
	At       int64 // ns of CLOCK_MONOTONIC
	From, To string
	Bytes    int // of data
}

// heldWait bounds one question whether a message has come, so that it ends before its caller gives up.
const heldWait = 10 * time.Second

// messageQueue lets packets pass and holds one back: the message. If it came from a peer, TCP may send it again; these
// copies are dropped until the message is released.
type messageQueue struct {
	queue    *nfqueue.Nfqueue
	unlisten context.CancelFunc
	want     Message
	came     chan struct{} // closed when the message has come

	mu       sync.Mutex
	next     map[connection]uint32 // by connection: the sequence number behind the data seen so far
	matches  int
	message  segment
	sighting Sighting
	waits    bool // the message has come and is not released
}

// connection is one direction of a TCP connection.
type connection struct{ from, to netip.AddrPort }

// segment is a TCP packet with data.
type segment struct {
	connection
	number uint32 // sequence number of the first byte
	data   []byte
}

func (s segment) end() uint32 { return s.number + uint32(len(s.data)) }

// before compares sequence numbers, which wrap around (RFC 9293, 3.4).
func before(a, b uint32) bool { return int32(a-b) < 0 }

func openMessageQueue(number uint16, want Message) (*messageQueue, error) {
	q := &messageQueue{want: want, came: make(chan struct{}), next: make(map[connection]uint32)}
	q.mu.Lock() // until q.queue is known
	defer q.mu.Unlock()
	var err error
	// A packet for which there is no space passes.
	q.queue, q.unlisten, err = openQueue(nfqueue.Config{NfQueue: number, MaxPacketLen: math.MaxUint16, Flags: nfqueue.NfQaCfgFlagFailOpen}, q.receive)
	return q, err
}

func (q *messageQueue) receive(news nfqueue.Attribute) int {
	if news.PacketID == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	verdict := nfqueue.NfAccept
	if news.Payload != nil {
		if s, is := parseSegment(*news.Payload); is {
			verdict = q.judge(s)
		}
	}
	if verdict != held {
		_ = q.queue.SetVerdict(*news.PacketID, verdict) // refused if the kernel has dropped the packet meanwhile
	}
	return 0
}

// held stands for no verdict yet.
const held = -1

// judge returns the verdict on a packet. The caller has locked q.mu.
func (q *messageQueue) judge(s segment) int {
	if q.waits && s.connection == q.message.connection && before(s.number, q.message.end()) && before(q.message.number, s.end()) {
		return nfqueue.NfDrop
	}
	next, known := q.next[s.connection]
	if known && !before(next, s.end()) {
		return nfqueue.NfAccept // sent again
	}
	q.next[s.connection] = s.end()
	if !bytes.Contains(s.data, q.want.Contains) {
		return nfqueue.NfAccept
	}
	if q.matches++; q.matches != q.want.Nth {
		return nfqueue.NfAccept
	}
	q.message, q.waits = s, true
	q.sighting = Sighting{At: history.Now(), From: s.from.String(), To: s.to.String(), Bytes: len(s.data)}
	close(q.came)
	return held
}

// parseSegment reads an IPv4 packet. It reports false if that is no TCP packet with data.
func parseSegment(packet []byte) (s segment, is bool) {
	const shortestIP, shortestTCP = 20, 20
	if len(packet) < shortestIP || packet[0]>>4 != 4 || packet[9] != unix.IPPROTO_TCP {
		return s, false
	}
	header := int(packet[0]&0xf) * 4
	if header < shortestIP || len(packet) < header+shortestTCP {
		return s, false
	}
	tcp := packet[header:]
	offset := int(tcp[12]>>4) * 4
	if offset < shortestTCP || len(tcp) <= offset {
		return s, false
	}
	address := func(at int) netip.Addr { return netip.AddrFrom4([4]byte(packet[at:])) }
	return segment{
		connection: connection{
			from: netip.AddrPortFrom(address(sourceOffset), binary.BigEndian.Uint16(tcp)),
			to:   netip.AddrPortFrom(address(destinationOffset), binary.BigEndian.Uint16(tcp[2:])),
		},
		number: binary.BigEndian.Uint32(tcp[4:]), data: tcp[offset:],
	}, true
}

// await waits until the message has come. It reports false if it has not come within heldWait.
func (q *messageQueue) await(ctx context.Context) (Sighting, bool) {
	ctx, cancel := context.WithTimeout(ctx, heldWait)
	defer cancel()
	select {
	case <-q.came:
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.sighting, true
	case <-ctx.Done():
		return Sighting{}, false
	}
}

// flush releases the message, and the packets that the kernel has not reported yet.
func (q *messageQueue) flush() error {
	q.mu.Lock()
	q.waits = false
	q.mu.Unlock()
	return q.queue.SetVerdictBatch(math.MaxInt32, nfqueue.NfAccept)
}

// close ends the queue.
func (q *messageQueue) close() {
	q.unlisten()
	_ = q.queue.Close()
}

func (n *Network) awaitHeld(ctx context.Context, id string) (Sighting, bool, error) {
	n.mu.Lock()
	q, is := n.queues[id].(*messageQueue)
	n.mu.Unlock()
	if !is {
		return Sighting{}, false, fmt.Errorf("no cut %q holds a message back", id)
	}
	sighting, came := q.await(ctx)
	return sighting, came, nil
}
