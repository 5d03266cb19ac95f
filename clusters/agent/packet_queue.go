package agent

import (
	"context"
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
	// queueLength is how many packets wait in a queue at most, both directions
	// together. What comes on top is lost, as with tc netem, whose limit it is too.
	queueLength = 1000
	// headerLength is how much of a packet the kernel shows us: only its length
	// matters.
	headerLength = 20
	// queueBuffer holds news of all that may wait, of which the kernel
	// loses the packets that it has no space to tell us.
	queueBuffer = 4 << 20
	// hookInput is NF_INET_LOCAL_IN.
	hookInput = 1
)

// packetQueue holds the packets of a cut back until they are due. A cut whose agent has
// died delays nothing: the rules let pass what nobody takes.
//
// To TCP a packet that waits here on its way out is one that its own host has not
// sent yet: it does not send it again, and a connection with several of them
// waiting (four, on Linux 6.18) sends no more until one goes on.
type packetQueue struct {
	queue    *nfqueue.Nfqueue
	cut      Cut
	in, out  direction
	stop     context.CancelFunc
	unlisten context.CancelFunc
	stopped  <-chan struct{}
	releases sync.WaitGroup
}

// direction holds the packets of one direction. They keep their order.
type direction struct {
	waiting chan packet
	last    time.Time // when the one before is due
}

type packet struct {
	id  uint32
	due time.Time
}

func openPacketQueue(number uint16, cut Cut) (*packetQueue, error) {
	queue, err := nfqueue.Open(&nfqueue.Config{
		NfQueue: number, MaxQueueLen: queueLength, MaxPacketLen: headerLength,
		Copymode: nfqueue.NfQnlCopyPacket, AfFamily: unix.AF_INET,
	})
	if err != nil {
		return nil, fmt.Errorf("nfqueue: %w", err)
	}
	stopping, stop := context.WithCancel(context.Background())
	listening, unlisten := context.WithCancel(context.Background())
	q := &packetQueue{
		queue: queue, cut: cut, stop: stop, unlisten: unlisten, stopped: stopping.Done(),
		in: direction{waiting: make(chan packet, queueLength)}, out: direction{waiting: make(chan packet, queueLength)},
	}
	if err := q.listen(listening); err != nil {
		q.close()
		return nil, fmt.Errorf("nfqueue: %w", err)
	}
	q.releases.Go(func() { q.release(q.in.waiting) })
	q.releases.Go(func() { q.release(q.out.waiting) })
	return q, nil
}

func (q *packetQueue) listen(ctx context.Context) error {
	if err := q.queue.Con.SetReadBuffer(queueBuffer); err != nil {
		return err
	}
	// News that was lost is not worth the end of all others.
	if err := q.queue.SetOption(netlink.NoENOBUFS, true); err != nil {
		return err
	}
	return q.queue.RegisterWithErrorFunc(ctx, q.receive, func(error) int { return 1 })
}

// receive seldom waits: the kernel queues no more packets than a direction holds.
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
	case <-q.stopped: // the direction may be full of packets that the kernel has given up
	}
	return 0
}

// length of a packet in bytes.
func length(news nfqueue.Attribute) int64 {
	switch {
	case news.CapLen != nil: // only of those that were not shown in full
		return int64(*news.CapLen)
	case news.Payload != nil:
		return int64(len(*news.Payload))
	}
	return 0
}

// due says when a packet of some bytes goes on, which came behind one that is due
// at last.
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
				// A verdict that the kernel does not take is of a packet that it
				// has given up.
				_ = q.queue.SetVerdict(p.id, nfqueue.NfAccept)
			case <-q.stopped:
				return
			}
		case <-q.stopped:
			return
		}
	}
}

// flush lets go on, in their order, what waits and what the kernel has not reported.
func (q *packetQueue) flush() error {
	q.stop()
	q.releases.Wait()
	return q.queue.SetVerdictBatch(math.MaxInt32, nfqueue.NfAccept)
}

// close ends the queue. The kernel drops what is still in it.
func (q *packetQueue) close() {
	q.stop()
	q.releases.Wait()
	q.unlisten()
	_ = q.queue.Close()
}
