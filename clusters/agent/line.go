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
	// lineLength is how many packets wait in a line at most, both directions
	// together. What comes on top is lost, as with tc netem, whose limit it is too.
	lineLength = 1000
	// headerLength is how much of a packet the kernel shows us: only its length
	// matters.
	headerLength = 20
	// lineBuffer is room for news of all that may wait, of which the kernel
	// loses the packets that it has no room to tell us.
	lineBuffer = 4 << 20
	// hookInput is NF_INET_LOCAL_IN.
	hookInput = 1
)

// line holds the packets of a cut back until they are due. A cut whose agent has
// died delays nothing: the rules let pass what nobody takes.
//
// To TCP a packet that waits here on its way out is one that its own host has not
// sent yet: it does not send it again, and a connection with several of them
// waiting (four, on Linux 6.18) sends no more until one goes on.
type line struct {
	queue    *nfqueue.Nfqueue
	cut      Cut
	in, out  lane
	stop     context.CancelFunc
	deaf     context.CancelFunc
	stopped  <-chan struct{}
	releases sync.WaitGroup
}

// lane is one direction. Its packets keep their order.
type lane struct {
	waiting chan packet
	last    time.Time // when the one before is due
}

type packet struct {
	id  uint32
	due time.Time
}

func openLine(number uint16, cut Cut) (*line, error) {
	queue, err := nfqueue.Open(&nfqueue.Config{
		NfQueue: number, MaxQueueLen: lineLength, MaxPacketLen: headerLength,
		Copymode: nfqueue.NfQnlCopyPacket, AfFamily: unix.AF_INET,
	})
	if err != nil {
		return nil, fmt.Errorf("nfqueue: %w", err)
	}
	stopping, stop := context.WithCancel(context.Background())
	listening, deaf := context.WithCancel(context.Background())
	l := &line{
		queue: queue, cut: cut, stop: stop, deaf: deaf, stopped: stopping.Done(),
		in: lane{waiting: make(chan packet, lineLength)}, out: lane{waiting: make(chan packet, lineLength)},
	}
	if err := l.listen(listening); err != nil {
		l.close()
		return nil, fmt.Errorf("nfqueue: %w", err)
	}
	l.releases.Go(func() { l.release(l.in.waiting) })
	l.releases.Go(func() { l.release(l.out.waiting) })
	return l, nil
}

func (l *line) listen(ctx context.Context) error {
	if err := l.queue.Con.SetReadBuffer(lineBuffer); err != nil {
		return err
	}
	// News that was lost is not worth the end of all others.
	if err := l.queue.SetOption(netlink.NoENOBUFS, true); err != nil {
		return err
	}
	return l.queue.RegisterWithErrorFunc(ctx, l.receive, func(error) int { return 1 })
}

// receive seldom waits: the kernel queues no more packets than a lane holds.
func (l *line) receive(news nfqueue.Attribute) int {
	if news.PacketID == nil || news.Hook == nil {
		return 0
	}
	lane := &l.out
	if *news.Hook == hookInput {
		lane = &l.in
	}
	lane.last = l.cut.due(time.Now(), lane.last, length(news))
	select {
	case lane.waiting <- packet{*news.PacketID, lane.last}:
	case <-l.stopped: // the lane may be full of packets that the kernel has given up
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

func (l *line) release(waiting <-chan packet) {
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
				_ = l.queue.SetVerdict(p.id, nfqueue.NfAccept)
			case <-l.stopped:
				return
			}
		case <-l.stopped:
			return
		}
	}
}

// flush lets go on, in their order, what waits and what we have not been told of.
func (l *line) flush() error {
	l.stop()
	l.releases.Wait()
	return l.queue.SetVerdictBatch(math.MaxInt32, nfqueue.NfAccept)
}

// close ends the line. The kernel drops what is still in it.
func (l *line) close() {
	l.stop()
	l.releases.Wait()
	l.deaf()
	_ = l.queue.Close()
}
