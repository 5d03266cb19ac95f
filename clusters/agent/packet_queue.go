package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/florianl/go-nfqueue/v2"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const (
	// queueLength bounds the packets that wait in a queue, both directions together. Further packets are lost,
	// as with tc netem, which has the same limit.
	queueLength = 1000
	// headerLength is how much of each packet the kernel copies to us. Only the packet's length matters.
	headerLength = 20
	// queueBuffer has space for notices of all packets that may wait, with their headers. The kernel drops a
	// packet when there is no space for its notice.
	queueBuffer = 4 << 20
	// hookInput is NF_INET_LOCAL_IN.
	hookInput = 1
)

// packetQueue holds the packets of a cut back until they are due. If the agent dies the cut delays nothing,
// because the rules let packets pass when no process reads the queue.
//
// To TCP, an outbound packet that waits here is one that its own host has not sent yet. TCP does not retransmit
// it. A connection with several such packets (four, on Linux 6.18) sends nothing more until one is released.
type packetQueue struct {
	queue    *nfqueue.Nfqueue
	cut      Cut
	in, out  direction
	stop     context.CancelFunc
	unlisten context.CancelFunc
	stopped  <-chan struct{}
	releases sync.WaitGroup
}

// direction holds the packets of one direction, in their order.
type direction struct {
	waiting chan packet
	last    time.Time // when the previous packet is due
}

type packet struct {
	id  uint32
	due time.Time
}

func openPacketQueue(number uint16, cut Cut) (*packetQueue, error) {
	stopping, stop := context.WithCancel(context.Background())
	q := &packetQueue{
		cut: cut, stop: stop, stopped: stopping.Done(),
		in: direction{waiting: make(chan packet, queueLength)}, out: direction{waiting: make(chan packet, queueLength)},
	}
	var err error
	if q.queue, q.unlisten, err = openQueue(nfqueue.Config{NfQueue: number, MaxPacketLen: headerLength}, q.receive); err != nil {
		stop()
		return nil, err
	}
	q.releases.Go(func() { q.release(q.in.waiting) })
	q.releases.Go(func() { q.release(q.out.waiting) })
	return q, nil
}

// openQueue receives notices of the packets in a queue until unlisten.
func openQueue(config nfqueue.Config, receive nfqueue.HookFunc) (queue *nfqueue.Nfqueue, unlisten context.CancelFunc, err error) {
	config.MaxQueueLen, config.Copymode, config.AfFamily = queueLength, nfqueue.NfQnlCopyPacket, unix.AF_INET
	queue, err = nfqueue.Open(&config)
	if err != nil {
		return nil, nil, fmt.Errorf("nfqueue: %w", err)
	}
	ctx, unlisten := context.WithCancel(context.Background())
	err = errors.Join(
		queue.Con.SetReadBuffer(queueBuffer),
		queue.SetOption(netlink.NoENOBUFS, true), // a lost notice must not end the stream of notices
	)
	if err == nil {
		err = queue.RegisterWithErrorFunc(ctx, receive, func(error) int { return 1 })
	}
	if err != nil {
		unlisten()
		return nil, nil, fmt.Errorf("nfqueue: %w", errors.Join(err, queue.Close()))
	}
	return queue, unlisten, nil
}

// receive seldom blocks: the kernel queues no more packets than a direction holds.
func (q *packetQueue) receive(news nfqueue.Attribute) int {
	if news.PacketID == nil || news.Hook == nil {
		return 0
	}
	way := &q.out
	if *news.Hook == hookInput {
		way = &q.in
	}
	way.last = q.cut.due(time.Now(), way.last, length(news))
	select {
	case way.waiting <- packet{*news.PacketID, way.last}:
	case <-q.stopped: // the direction may be full of packets that the kernel has dropped
	}
	return 0
}

// length returns the length of a packet in bytes.
func length(news nfqueue.Attribute) int64 {
	switch {
	case news.CapLen != nil: // set only if the packet was not copied in full
		return int64(*news.CapLen)
	case news.Payload != nil:
		return int64(len(*news.Payload))
	}
	return 0
}

// due returns when a packet of a length in bytes goes on. last is when the packet before it is due.
func (c Cut) due(now, last time.Time, bytes int64) time.Time {
	at := now.Add(c.Delay)
	if c.Jitter > 0 {
		at = at.Add(rand.N(2*c.Jitter+1) - c.Jitter)
	}
	if at.Before(last) {
		at = last
	}
	if c.Rate > 0 {
		at = at.Add(time.Duration(bytes) * time.Second / time.Duration(c.Rate))
	}
	return at
}

func (q *packetQueue) release(waiting <-chan packet) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case p := <-waiting:
			timer.Reset(time.Until(p.due))
			select {
			case <-timer.C:
				// The kernel refuses a verdict for a packet that it has dropped meanwhile.
				_ = q.queue.SetVerdict(p.id, nfqueue.NfAccept)
			case <-q.stopped:
				return
			}
		case <-q.stopped:
			return
		}
	}
}

// flush releases, in their order, all waiting packets, and those that the kernel has not reported yet.
func (q *packetQueue) flush() error {
	q.stop()
	q.releases.Wait()
	return q.queue.SetVerdictBatch(math.MaxInt32, nfqueue.NfAccept)
}

// close ends the queue. The kernel drops the packets that are still in it.
func (q *packetQueue) close() {
	q.stop()
	q.releases.Wait()
	q.unlisten()
	_ = q.queue.Close()
}
