package clients

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

func TestZooKeeperNames(t *testing.T) {
	for _, c := range []struct{ node, owner, sequence string }{
		{"w1-17-0000000003", "w1-17", "0000000003"},
		{"w12-0-2147483647", "w12-0", "2147483647"},
		{"0000000003", "", "0000000003"}, // a node of another program
		{"x", "", "x"},
		{"", "", ""},
	} {
		if owner, sequence := ownerOf(c.node), sequenceOf(c.node); owner != c.owner || sequence != c.sequence {
			t.Errorf("%q is of %q with %q, want %q with %q", c.node, owner, sequence, c.owner, c.sequence)
		}
	}
}

// TestZooKeeperTimeouts: Open refuses a timeout that the servers would change. Otherwise the run would be
// judged by the wrong lease.
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

// TestKeepsAlive: these libraries always keep sessions alive, so Open refuses NoKeepAlive. Otherwise a run
// would be judged as if its leases had not been renewed.
func TestKeepsAlive(t *testing.T) {
	for _, name := range append(consulForms, "zookeeper", "zookeeper-lib", "zookeeper-herd") {
		if _, err := mustInfo(t, name).Open(Config{Worker: "w1", Nodes: []string{"127.0.0.1:1"}, NoKeepAlive: true}); err == nil {
			t.Errorf("%s opens with a session that is to run out", name)
		}
	}
}

// TestZooKeeperOutOfReach: the recipe sends nothing before it has a session, so its attempt has no effect. The
// outcome of the library's request is unknown.
func TestZooKeeperOutOfReach(t *testing.T) {
	for _, c := range failing {
		for name, want := range map[string]Outcome{"zookeeper": NoEffect, "zookeeper-lib+new-session-on-error": Unknown} {
			t.Run(name+" "+c.name, func(t *testing.T) {
				lock := mustOpen(t, name, c.listen(t, "tcp", "127.0.0.1:0"))
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				if _, err := lock.Acquire(ctx, Attempt{Key: "k0", ID: "w1-1"}); OutcomeOf(err) != want {
					t.Errorf("acquire: %v is outcome %d, want %d", err, OutcomeOf(err), want)
				}
				if err := lock.Release(ctx, Grant{Key: "k0", ID: "w1-1"}); OutcomeOf(err) != Unknown {
					t.Errorf("release: %v is outcome %d", err, OutcomeOf(err))
				}
			})
		}
	}
}

// TestZooKeeperLibraryWaits: by default, only the library ends a call, and the session continues.
func TestZooKeeperLibraryWaits(t *testing.T) {
	for name, ends := range map[string]bool{"zookeeper-lib": false, "zookeeper-lib+new-session-on-error": true} {
		opened := mustOpen(t, name, neverAnswer(t, "tcp", "127.0.0.1:0"))
		lock := opened.(*zkLib)
		before, err := lock.get()
		if err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		answer := make(chan error)
		outcome := make(chan error, 1)
		go func() { outcome <- lock.call(ended, before, func() error { return <-answer }) }()
		if !ends {
			answer <- zk.ErrConnectionClosed
		}
		if err := <-outcome; OutcomeOf(err) != Unknown {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := lock.get(); err != nil || (after != before) != ends {
			t.Errorf("%s: another session %v, %v", name, after != before, err)
		}
	}
}

// TestZooKeeperSession: a caller that waits for a connection gets it, and learns of its loss, each time again.
func TestZooKeeperSession(t *testing.T) {
	s := &zkSession{abandoned: make(chan struct{}), up: make(chan struct{}), down: make(chan struct{})}
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
			t.Error("nobody was notified of the loss")
		}
	}
	close(s.abandoned)
	if _, err := s.connected(t.Context()); !errors.Is(err, errGivenUp) {
		t.Errorf("after it was given up: %v", err)
	}
}

// TestZooKeeperWakes: a notification of the service wakes a waiter. A watch that is not needed, the end of the
// session and the end of the context do not count as wakes.
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
		s := &zkSession{abandoned: make(chan struct{}), up: make(chan struct{})}
		close(s.up)
		lock := &zkLock{watch: func(*zkSession, string, []string, int) (<-chan zk.Event, error) { return c.event, nil }}
		if woken, err := lock.awaitChange(c.ctx, s, "/lock-k0", nil, 1); woken != c.woken || !errors.Is(err, c.err) {
			t.Errorf("%s: woken %v, %v", c.name, woken, err)
		}
	}
}

func eventOf(e zk.Event) <-chan zk.Event {
	events := make(chan zk.Event, 1)
	events <- e
	return events
}

// TestSessionThatCannotBe: after a session could not be opened, the next call does not return it.
func TestSessionThatCannotBe(t *testing.T) {
	var s sessions
	for range 2 {
		if session, err := s.get(); err == nil || session != nil {
			t.Errorf("a session without servers: %v %v", session, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
