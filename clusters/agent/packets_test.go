package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// peer is the far end of the links under test, here the near end: two addresses of loopback.
const peer, here = "127.0.0.11", "127.0.0.1"

// link is a pair of datagram sockets. Only the calling thread may use it, because that thread is in the network
// under test.
type link struct {
	near, far         int
	nearPort, farPort unix.Sockaddr
}

func newLink() (*link, error) {
	near, nearPort, err := datagramSocket(here)
	if err != nil {
		return nil, err
	}
	far, farPort, err := datagramSocket(peer)
	if err != nil {
		return nil, errors.Join(err, unix.Close(near))
	}
	return &link{near, far, nearPort, farPort}, nil
}

func (l *link) close() { _, _ = unix.Close(l.near), unix.Close(l.far) }

func datagramSocket(ip string) (int, unix.Sockaddr, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, err
	}
	address := unix.SockaddrInet4{Addr: [4]byte(net.ParseIP(ip).To4())}
	limit := unix.NsecToTimeval((10 * time.Second).Nanoseconds())
	err = errors.Join(
		unix.Bind(socket, &address),
		unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit),
	)
	bound, nameErr := unix.Getsockname(socket)
	return socket, bound, errors.Join(err, nameErr)
}

// send sends the number n to the far end, in a datagram of a length in bytes.
func (l *link) send(n uint32, bytes int) error {
	return unix.Sendto(l.near, numbered(n, bytes), 0, l.farPort)
}

// reply sends the number n to the near end.
func (l *link) reply(n uint32, bytes int) error {
	return unix.Sendto(l.far, numbered(n, bytes), 0, l.nearPort)
}

func numbered(n uint32, bytes int) []byte {
	text := make([]byte, bytes)
	binary.BigEndian.PutUint32(text, n)
	return text
}

// next receives a number. The flags are those of recvfrom(2).
func next(socket, flags int) (uint32, error) {
	var text [2048]byte
	_, err := receive(socket, text[:], flags)
	return binary.BigEndian.Uint32(text[:4]), err
}

// receive is recvfrom(2). It goes on after a signal, such as those with which Go's runtime preempts a thread.
func receive(socket int, into []byte, flags int) (n int, err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		n, _, err = unix.Recvfrom(socket, into, flags)
	}
	return n, err
}

// count checks that the numbers from 0 arrive in order, as many as wanted.
func (l *link) count(t *testing.T, want uint32) {
	t.Helper()
	for n := range want {
		if got, err := next(l.far, 0); err != nil || got != n {
			t.Errorf("number %d arrives where %d is due: %v", got, n, err)
			return
		}
	}
}

// arrives sends a number and waits until it arrives.
func (l *link) arrives(n uint32) error {
	if err := l.send(n, 4); err != nil {
		return err
	}
	got, err := next(l.far, 0)
	if err == nil && got != n {
		err = fmt.Errorf("%d in place of %d", got, n)
	}
	return err
}

// heldBack sends a number and checks that it does not arrive at once.
func (l *link) heldBack(n uint32) error {
	if err := l.send(n, 4); err != nil {
		return err
	}
	if _, err := next(l.far, unix.MSG_DONTWAIT); !errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("number %d is not held back: %v", n, err)
	}
	return nil
}

// onLink runs f with a link in a fresh network namespace.
func onLink(t *testing.T, f func(Local, *link)) {
	t.Helper()
	inOwnNetwork(t, func() {
		if err := loopbackUp(); err != nil {
			t.Error(err)
			return
		}
		l, err := newLink()
		if err != nil {
			t.Error(err)
			return
		}
		defer l.close()
		if err := l.arrives(0); err != nil {
			t.Errorf("before anything: %v", err)
			return
		}
		f(Local{Network: new(Network)}, l)
	})
}

// cutPeer makes a cut on the link.
func cutPeer(t *testing.T, host Local, cut Cut) bool {
	t.Helper()
	cut.Peers = []string{peer}
	if _, err := host.Cut(t.Context(), cut); err != nil {
		t.Errorf("%+v: %v", cut, err)
		return false
	}
	return true
}

// healed heals a cut. It checks how many packets the cut dropped or held back (-1 for any number), and that the
// link works again.
func healed(t *testing.T, host Local, l *link, id string, met int64) int64 {
	t.Helper()
	_, dropped, err := host.Heal(t.Context(), id)
	if err != nil || met >= 0 && dropped != met {
		t.Errorf("%s healed: %d packets met it, %v, want %d", id, dropped, err, met)
	}
	if cuts, err := host.Cuts(t.Context()); err != nil || slices.Contains(cuts, id) {
		t.Errorf("%s healed: there are %v, %v", id, cuts, err)
	}
	if n := len(host.Network.queues); n != 0 {
		t.Errorf("%s healed: %d queues are open", id, n)
	}
	return dropped
}

func TestLoss(t *testing.T) {
	const datagrams, share = 5000, 0.3
	onLink(t, func(host Local, l *link) {
		if !cutPeer(t, host, Cut{ID: "f1", Loss: share}) {
			return
		}
		arrived := 0
		for n := range uint32(datagrams) {
			// The sender gets EPERM when its outbound packet is dropped.
			if err := l.send(n, 4); err != nil && !errors.Is(err, unix.EPERM) {
				t.Error(err)
				return
			}
			for {
				if _, err := next(l.far, unix.MSG_DONTWAIT); err != nil {
					break
				}
				arrived++
			}
		}
		lost := healed(t, host, l, "f1", -1)
		if err := l.send(datagrams, 4); err != nil {
			t.Error(err)
		}
		for {
			n, err := next(l.far, 0)
			if err != nil {
				t.Error(err)
			}
			if err != nil || n == datagrams {
				break
			}
			arrived++
		}
		if int64(datagrams-arrived) != lost {
			t.Errorf("%d of %d arrived, and %d were counted as lost", arrived, datagrams, lost)
		}
		// Ten standard deviations of the binomial distribution.
		if far := 10 * math.Sqrt(datagrams*share*(1-share)); math.Abs(float64(lost)-datagrams*share) > far {
			t.Errorf("%d of %d lost", lost, datagrams)
		}
		t.Logf("%d of %d lost", lost, datagrams)
		for n := range uint32(100) {
			if err := l.arrives(n); err != nil {
				t.Errorf("healed: %v", err)
			}
		}
	})
}

// TestDelay: both directions are delayed by no less than asked for, and packets keep their order.
func TestDelay(t *testing.T) {
	const datagrams, delay, jitter = 50, 40 * time.Millisecond, 10 * time.Millisecond
	onLink(t, func(host Local, l *link) {
		if !cutPeer(t, host, Cut{ID: "f1", Delay: delay, Jitter: jitter}) {
			return
		}
		var took []time.Duration
		for n := range uint32(datagrams) {
			sent := time.Now()
			if err := l.send(n, 4); err != nil {
				t.Error(err)
				return
			}
			if got, err := next(l.far, 0); err != nil || got != n {
				t.Errorf("there: %d, %v, want %d", got, err, n)
			}
			took = append(took, time.Since(sent))
			sent = time.Now()
			if err := l.reply(n, 4); err != nil {
				t.Error(err)
				return
			}
			if got, err := next(l.near, 0); err != nil || got != n {
				t.Errorf("back: %d, %v, want %d", got, err, n)
			}
			took = append(took, time.Since(sent))
		}
		slices.Sort(took)
		if took[0] < delay-jitter {
			t.Errorf("the fastest took %s", took[0])
		}
		t.Logf("n=%d, least %s, median %s, most %s", len(took), took[0], took[len(took)/2], took[len(took)-1])
		for n := range uint32(datagrams) {
			if err := l.send(n, 4); err != nil {
				t.Error(err)
			}
		}
		l.count(t, datagrams)
		healed(t, host, l, "f1", 3*datagrams)
		if err := l.arrives(7); err != nil {
			t.Errorf("healed: %v", err)
		}
	})
}

func TestRate(t *testing.T) {
	// Headers of IPv4 and UDP come on top.
	const datagrams, bytes, rate = 10, 972, 50_000
	onLink(t, func(host Local, l *link) {
		if !cutPeer(t, host, Cut{ID: "f1", Rate: rate}) {
			return
		}
		began := time.Now()
		for n := range uint32(datagrams) {
			if err := l.send(n, bytes); err != nil {
				t.Error(err)
			}
		}
		l.count(t, datagrams)
		took := time.Since(began)
		if least := datagrams * 1000 * time.Second / rate; took < least {
			t.Errorf("took %s, less than %s", took, least)
		}
		t.Logf("%d bytes at %d/s took %s", datagrams*1000, rate, took)
		healed(t, host, l, "f1", datagrams)
		if err := l.arrives(7); err != nil {
			t.Errorf("healed: %v", err)
		}
	})
}

// TestHealReleases: packets that wait when a cut is healed are released at once and in order, and so are later
// packets.
func TestHealReleases(t *testing.T) {
	const datagrams = 100
	for name, cut := range map[string]Cut{
		"delay":           {ID: "f1", Delay: time.Hour},
		"rate":            {ID: "f1", Rate: 1},
		"delay with rate": {ID: "f1", Delay: time.Hour, Jitter: time.Minute, Rate: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			onLink(t, func(host Local, l *link) {
				if !cutPeer(t, host, cut) {
					return
				}
				for n := range uint32(datagrams) {
					if err := l.heldBack(n); err != nil {
						t.Error(err)
					}
				}
				healed(t, host, l, "f1", datagrams)
				l.count(t, datagrams)
				if err := l.arrives(7); err != nil {
					t.Errorf("healed: %v", err)
				}
			})
		})
	}
}

// TestTwoDelays: each cut has its own queue, and a packet passes both.
func TestTwoDelays(t *testing.T) {
	onLink(t, func(host Local, l *link) {
		for _, id := range []string{"f1", "f2"} {
			if !cutPeer(t, host, Cut{ID: id, Delay: 20 * time.Millisecond}) {
				return
			}
		}
		sent := time.Now()
		if err := l.send(0, 4); err != nil {
			t.Error(err)
		}
		l.count(t, 1)
		if took := time.Since(sent); took < 40*time.Millisecond {
			t.Errorf("took %s", took)
		}
		if _, met, err := host.Heal(t.Context(), "f1"); err != nil || met != 1 {
			t.Errorf("%d met f1, %v", met, err)
		}
		sent = time.Now()
		if err := l.arrives(1); err != nil {
			t.Error(err)
		}
		if took := time.Since(sent); took < 20*time.Millisecond {
			t.Errorf("the second no longer delays: took %s", took)
		}
		healed(t, host, l, "f2", 2)
	})
}

// TestDeadAgent: packets must not wait for ever when their agent is dead.
func TestDeadAgent(t *testing.T) {
	onLink(t, func(host Local, l *link) {
		if !cutPeer(t, host, Cut{ID: "f1", Delay: time.Hour}) {
			return
		}
		if err := l.heldBack(0); err != nil {
			t.Errorf("alive: %v", err)
		}
		host.Network.queues["f1"].close() // as when its process ends
		if err := l.arrives(1); err != nil {
			t.Errorf("dead: %v", err)
		}
		// The next agent finds the rules.
		if _, met, err := (Local{Network: new(Network)}).Heal(t.Context(), "f1"); err != nil || met != 2 {
			t.Errorf("%d met it, %v, want 2", met, err)
		}
	})
}

// TestAnswer: an answer takes the delay twice, there and back.
func TestAnswer(t *testing.T) {
	const delay = 30 * time.Millisecond
	onLink(t, func(host Local, l *link) {
		ctx := t.Context()
		address := net.JoinHostPort(peer, "1")
		answer := func(when string, least time.Duration) {
			t.Helper()
			took, err := host.Answer(ctx, address, 10*time.Second)
			if err != nil || took < least {
				t.Errorf("%s: %s, %v", when, took, err)
			}
			t.Logf("%s: %s", when, took)
		}
		answer("before", 1)
		if !cutPeer(t, host, Cut{ID: "f1", Delay: delay}) {
			return
		}
		answer("during", 2*delay)
		// An attempt to connect and its refusal.
		healed(t, host, l, "f1", 2)
		answer("after", 1)
		if !cutPeer(t, host, Cut{ID: "f2"}) {
			return
		}
		if _, err := host.Answer(ctx, address, 50*time.Millisecond); !errors.Is(err, ErrNoAnswer) {
			t.Errorf("cut off: %v", err)
		}
		healed(t, host, l, "f2", -1)
	})
}

// TestOffers: finding out what the kernel supports leaves nothing behind.
func TestOffers(t *testing.T) {
	kinds := []Cut{{}, {Loss: 0.5}, {Delay: time.Second}, {Rate: 1000}}
	onLink(t, func(host Local, l *link) {
		for _, cut := range kinds {
			if err := host.Offers(t.Context(), cut); err != nil {
				t.Errorf("%+v: %v", cut, err)
			}
			if cuts, err := host.Cuts(t.Context()); err != nil || len(cuts) > 0 || len(host.Network.queues) > 0 {
				t.Errorf("%+v: leaves %v and %d queues, %v", cut, cuts, len(host.Network.queues), err)
			}
		}
	})
	for _, cut := range kinds {
		if err := (Local{}).Offers(t.Context(), cut); !errors.Is(err, errNoNetwork) {
			t.Errorf("%+v without a network: %v", cut, err)
		}
	}
}

// TestRefusedDelays: a cut that cannot be made in full leaves no queue.
func TestRefusedDelays(t *testing.T) {
	onLink(t, func(host Local, l *link) {
		ctx := t.Context()
		if _, err := host.Cut(ctx, Cut{ID: "f1", Peers: []string{peer, "n2"}, Delay: time.Hour}); err == nil {
			t.Error("a name is taken for an address")
		}
		if err := l.arrives(1); err != nil || len(host.Network.queues) > 0 {
			t.Errorf("left %d queues, %v", len(host.Network.queues), err)
		}
		if !cutPeer(t, host, Cut{ID: "f1", Delay: time.Hour}) {
			return
		}
		if _, err := host.Cut(ctx, Cut{ID: "f1", Peers: []string{peer}, Delay: time.Hour}); err == nil {
			t.Error("two cuts of one id")
		}
		healed(t, host, l, "f1", 0)
	})
}

func TestDue(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name        string
		cut         Cut
		last        time.Duration // after now
		bytes       int64
		least, most time.Duration // after now
	}{
		{"delay", Cut{Delay: time.Second}, -time.Hour, 1000, time.Second, time.Second},
		{"jitter", Cut{Delay: time.Second, Jitter: 250 * time.Millisecond}, -time.Hour, 1000, 750 * time.Millisecond, 1250 * time.Millisecond},
		{"never before the one in front", Cut{Delay: time.Second, Jitter: 250 * time.Millisecond}, 5 * time.Second, 1000, 5 * time.Second, 5 * time.Second},
		{"rate on a free queue", Cut{Rate: 2000}, -time.Hour, 1000, 500 * time.Millisecond, 500 * time.Millisecond},
		{"rate behind another", Cut{Rate: 2000}, time.Second, 1000, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"both", Cut{Delay: time.Second, Rate: 2000}, 0, 1000, 1500 * time.Millisecond, 1500 * time.Millisecond},
	} {
		least, most := time.Duration(math.MaxInt64), time.Duration(math.MinInt64)
		for range 1000 {
			due := c.cut.due(now, now.Add(c.last), c.bytes).Sub(now)
			least, most = min(least, due), max(most, due)
		}
		if least < c.least || most > c.most {
			t.Errorf("%s: due after %s to %s, want %s to %s", c.name, least, most, c.least, c.most)
		}
		if spread := most - least; c.cut.Jitter > 0 && c.least < c.most && spread < c.cut.Jitter {
			t.Errorf("%s: a jitter of only %s", c.name, spread)
		}
	}
}
