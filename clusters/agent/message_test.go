package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/florianl/go-nfqueue/v2"
)

// talk is a TCP connection between here and the peer.
type talk struct{ near, far *net.TCPConn }

func newTalk() (talk, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(peer)})
	if err != nil {
		return talk{}, err
	}
	defer listener.Close()
	near, err := net.DialTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(here)}, listener.Addr().(*net.TCPAddr))
	if err != nil {
		return talk{}, err
	}
	far, err := listener.AcceptTCP()
	return talk{near, far}, err
}

// say writes a text at one end, and expects it at the other.
func say(from, to net.Conn, text string) error {
	if _, err := from.Write([]byte(text)); err != nil {
		return err
	}
	return hear(to, text, time.Minute)
}

// hear expects a text within a time.
func hear(conn net.Conn, want string, within time.Duration) error {
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		return fmt.Errorf("%q in place of %q: %w", got, want, err)
	}
	return nil
}

// TestMessage: the second message with a word waits until the cut is healed, longer than TCP takes to send it again.
// Other messages pass, also of the other direction and of other connections.
func TestMessage(t *testing.T) {
	for name, answers := range map[string]bool{"request": false, "answer": true} {
		t.Run(name, func(t *testing.T) {
			inOwnNetwork(t, func() {
				if err := errors.Join(loopbackUp(), holdAndPass(t, answers)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func holdAndPass(t *testing.T, answers bool) error {
	one, oneErr := newTalk()
	other, otherErr := newTalk()
	if err := errors.Join(oneErr, otherErr); err != nil {
		return err
	}
	from, to := one.near, one.far
	if answers {
		from, to = to, from
	}
	host := Local{Network: new(Network)}
	if !cutPeer(t, host, Cut{ID: "f1?", InboundOnly: answers, Hold: &Message{Contains: []byte("DEL"), Nth: 2}}) {
		return nil
	}
	if cuts, err := host.Cuts(t.Context()); err != nil || len(cuts) > 0 {
		t.Errorf("cuts %v, %v", cuts, err)
	}
	for _, pass := range []string{"GET x", "DEL x"} {
		if err := errors.Join(say(from, to, pass), say(to, from, "DEL back")); err != nil {
			return err
		}
	}
	const held = "now DEL x"
	if _, err := from.Write([]byte(held)); err != nil {
		return err
	}
	seen, came, err := host.AwaitHeld(t.Context(), "f1?")
	if err != nil || !came || seen.Bytes != len(held) || seen.From != from.LocalAddr().String() || seen.To != to.LocalAddr().String() {
		t.Errorf("%+v, %t, %v", seen, came, err)
	}
	if err := hear(to, held, time.Second); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it was not held back: %v", err)
	}
	if err := errors.Join(say(other.near, other.far, "DEL there"), say(other.far, other.near, "DEL back"), say(to, from, "DEL back")); err != nil {
		t.Errorf("beside it: %v", err)
	}
	if _, _, err := host.Heal(t.Context(), "f1?"); err != nil {
		return err
	}
	return errors.Join(hear(to, held, time.Minute), say(from, to, "DEL once more"))
}

// TestMessageCounts: a message is counted once, however often TCP sends it, in whatever pieces.
func TestMessageCounts(t *testing.T) {
	a := connection{netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.2:2")}
	b := connection{netip.MustParseAddrPort("192.0.2.1:3"), netip.MustParseAddrPort("192.0.2.2:2")}
	const wraps = 1<<32 - 4
	for _, c := range []struct {
		name     string
		nth      int
		contains string
		sent     []segment
		want     string // a letter for each: pass, hold or drop
	}{
		{"the first", 1, "x", []segment{{a, 0, []byte("ox")}, {a, 2, []byte("ox")}}, "hp"},
		{"any", 2, "", []segment{{a, 0, []byte("o")}, {a, 1, []byte("o")}}, "ph"},
		{"the second, with the first sent again", 2, "x", []segment{{a, 0, []byte("ox")}, {a, 0, []byte("ox")}, {a, 2, []byte("ox")}}, "pph"},
		{"of two connections", 2, "x", []segment{{a, 0, []byte("ox")}, {b, 0, []byte("ox")}, {a, 2, []byte("ox")}}, "php"},
		{"sent again while it waits", 1, "x", []segment{{a, 4, []byte("ox")}, {a, 4, []byte("ox")}, {a, 5, []byte("x")}, {a, 6, []byte("ox")}}, "hddp"},
		{"sent again with what was before it", 1, "x", []segment{{a, 0, []byte("oo")}, {a, 2, []byte("ox")}, {a, 0, []byte("ooox")}}, "phd"},
		{"where the numbers wrap around", 1, "x", []segment{{a, wraps, []byte("oooo")}, {a, 0, []byte("x")}, {a, wraps, []byte("oooo")}}, "php"},
		{"never", 2, "x", []segment{{a, 0, []byte("ox")}, {a, 2, []byte("oo")}}, "pp"},
	} {
		q := &messageQueue{want: Message{[]byte(c.contains), c.nth}, came: make(chan struct{}), next: make(map[connection]uint32)}
		var got strings.Builder
		for _, s := range c.sent {
			got.WriteString(map[int]string{nfqueue.NfAccept: "p", nfqueue.NfDrop: "d", held: "h"}[q.judge(s)])
		}
		if got.String() != c.want {
			t.Errorf("%s: %s, want %s", c.name, &got, c.want)
		}
	}
}

func FuzzParseSegment(f *testing.F) {
	f.Add([]byte{})
	f.Add(append([]byte{0x45, 0, 0, 41, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0, 1, 0, 2, 0, 0, 0, 7, 0, 0, 0, 0, 0x50, 16, 0, 0, 0, 0, 0, 0}, 'x'))
	f.Fuzz(func(t *testing.T, packet []byte) {
		if s, is := parseSegment(packet); is && len(s.data) == 0 {
			t.Errorf("%x: no data", packet)
		}
	})
}
