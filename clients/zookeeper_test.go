package clients

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

func TestZooKeeperNames(t *testing.T) {
	for _, c := range []struct{ node, owner, sequence string }{
		{"w1-17-0000000003", "w1-17", "0000000003"},
		{"w12-0-2147483647", "w12-0", "2147483647"},
		{"0000000003", "", "0000000003"}, // somebody else's
		{"x", "", "x"},
		{"", "", ""},
	} {
		if owner, sequence := ownerOf(c.node), sequenceOf(c.node); owner != c.owner || sequence != c.sequence {
			t.Errorf("%q is of %q with %q, want %q with %q", c.node, owner, sequence, c.owner, c.sequence)
		}
	}
}

// TestZooKeeperTimeouts: a session with another timeout than the one asked for
// would be judged by the wrong lease.
func TestZooKeeperTimeouts(t *testing.T) {
	for ttl, fine := range map[time.Duration]bool{
		0: true, ZooKeeperMinTTL: true, ZooKeeperMaxTTL: true,
		ZooKeeperMinTTL - time.Millisecond: false, ZooKeeperMaxTTL + time.Millisecond: false,
	} {
		for _, name := range []string{"zookeeper", "zookeeper-lib", "zookeeper-herd"} {
			lock, err := mustInfo(t, name).Open(Config{Worker: "w1", Nodes: []string{"127.0.0.1:1"}, TTL: ttl})
			if (err == nil) != fine {
				t.Errorf("%s with %s: %v", name, ttl, err)
			}
			if err == nil {
				t.Cleanup(func() { _ = lock.Close() })
			}
		}
	}
}

// TestZooKeeperKeepsAlive: its library cannot do without, and nobody is to judge
// a run as if it had.
func TestZooKeeperKeepsAlive(t *testing.T) {
	for _, name := range []string{"zookeeper", "zookeeper-lib", "zookeeper-herd"} {
		if _, err := mustInfo(t, name).Open(Config{Worker: "w1", Nodes: []string{"127.0.0.1:1"}, NoKeepAlive: true}); err == nil {
			t.Errorf("%s opens with a session that is to run out", name)
		}
	}
}

// TestZooKeeperOutOfReach: without a session nothing was asked of anybody.
func TestZooKeeperOutOfReach(t *testing.T) {
	for _, c := range failing {
		for _, name := range []string{"zookeeper", "zookeeper-lib"} {
			t.Run(name+" "+c.name, func(t *testing.T) {
				lock := mustOpen(t, name, c.listen(t, "tcp", "127.0.0.1:0"))
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				if _, err := lock.Acquire(ctx, Attempt{Key: "k0", ID: "w1-1"}); OutcomeOf(err) != NoEffect {
					t.Errorf("acquire: %v is outcome %d", err, OutcomeOf(err))
				}
				if err := lock.Release(ctx, Grant{Key: "k0", ID: "w1-1"}); OutcomeOf(err) != Unknown {
					t.Errorf("release: %v is outcome %d", err, OutcomeOf(err))
				}
			})
		}
	}
}

// TestZooKeeperPrompt: the library allows a server that is stopped seven session
// timeouts for its first answer; we do not. What comes later may take its time.
func TestZooKeeperPrompt(t *testing.T) {
	conn, err := dialZoo(ZooKeeperMinTTL)("tcp", neverAnswer(t, "tcp", "127.0.0.1:0"), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	never := time.Now().Add(time.Hour)
	if err := conn.SetReadDeadline(never); err != nil {
		t.Fatal(err)
	}
	var late net.Error
	if _, err := conn.Read(make([]byte, 1)); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("first answer: %v", err)
	}
	if err := conn.SetReadDeadline(never); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() { _, err := conn.Read(make([]byte, 1)); read <- err }()
	select {
	case err := <-read:
		t.Errorf("a later answer: %v", err)
	case <-time.After(ZooKeeperMinTTL):
	}
}

// TestZooKeeperSession: who waits for a connection gets it, and is told when it
// is lost, each time anew.
func TestZooKeeperSession(t *testing.T) {
	s := &zooSession{over: make(chan struct{}), up: make(chan struct{}), down: make(chan struct{})}
	close(s.down)
	event := func(state zk.State) { s.observe(zk.Event{Type: zk.EventSession, State: state}) }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		event(zk.StateConnecting)
		if _, err := s.connected(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("before there is a session: %v", err)
		}
		event(zk.StateHasSession)
		lost, err := s.connected(ended)
		if err != nil || closed(lost) {
			t.Errorf("with a session: %v, lost %v", err, closed(lost))
		}
		s.observe(zk.Event{Type: zk.EventNotWatching, State: zk.StateDisconnected})
		if closed(lost) {
			t.Error("lost with the watch")
		}
		event(zk.StateDisconnected)
		event(zk.StateExpired)
		if !closed(lost) {
			t.Error("nobody was told of the loss")
		}
	}
	close(s.over)
	if _, err := s.connected(t.Context()); !errors.Is(err, errGivenUp) {
		t.Errorf("after it was given up: %v", err)
	}
}

// TestZooKeeperWakes: what the service says wakes a waiter up; a watch that is not needed,
// the end of the session and that of its patience do not.
func TestZooKeeperWakes(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		event <-chan zk.Event
		woken bool
		err   error
	}{
		{"notified", t.Context(), eventOf(zk.Event{Type: zk.EventNodeDeleted}), true, nil},
		{"gone already", t.Context(), nil, false, nil},
		{"session over", t.Context(), eventOf(zk.Event{Type: zk.EventNotWatching, Err: zk.ErrSessionExpired}), false, zk.ErrSessionExpired},
		{"gives up", ended, make(chan zk.Event), false, context.Canceled},
	} {
		s := &zooSession{over: make(chan struct{}), up: make(chan struct{})}
		close(s.up)
		lock := &zooLock{watch: func(*zooSession, string, []string, int) (<-chan zk.Event, error) { return c.event, nil }}
		if woken, err := lock.turn(c.ctx, s, "/lock-k0", nil, 1); woken != c.woken || !errors.Is(err, c.err) {
			t.Errorf("%s: woken %v, %v", c.name, woken, err)
		}
	}
}

func eventOf(e zk.Event) <-chan zk.Event {
	events := make(chan zk.Event, 1)
	events <- e
	return events
}

// TestSessionThatCannotBe: a session that could not be opened is not there the next time.
func TestSessionThatCannotBe(t *testing.T) {
	s := sessions{dial: net.DialTimeout}
	for range 2 {
		if session, err := s.get(); err == nil || session != nil {
			t.Errorf("a session without servers: %v %v", session, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
