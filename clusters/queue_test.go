package clusters

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
)

// queueAt serves a queue in this process and returns its socket.
func queueAt(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "q-") // the path of a Unix socket may have 107 bytes only
	if err != nil {
		t.Fatal(err)
	}
	input, end := io.Pipe()
	done := make(chan error, 1)
	socket := filepath.Join(folder, "n1")
	go func() { done <- serveQueue(context.WithoutCancel(t.Context()), socket, input) }()
	t.Cleanup(func() {
		_ = end.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(folder)
	})
	clustertest.Eventually(t, patience, func() error { return queueProbes{}.Ready(t.Context(), socket) })
	return socket
}

// TestQueue: one operation of a key is called up at a time. It lasts no longer than its
// producer, and who has given up is not called up.
func TestQueue(t *testing.T) {
	t.Parallel()
	socket := queueAt(t)
	producer := func() *locker {
		info := mustLock(t, "queue")
		lock, err := info.Open(clients.Config{Nodes: []string{socket}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lock.Close() })
		return &locker{t: t, lock: lock, info: info}
	}
	a, b := producer(), producer()
	first := a.acquire("k0", 0)
	if first.Until != 0 || first.Token != 0 {
		t.Errorf("valid until %d, token %d", first.Until, first.Token)
	}
	b.acquire("k1", 0) // another key
	if _, err := b.tryFor("k0", 100*time.Millisecond); clients.OutcomeOf(err) != clients.NoEffect {
		t.Errorf("in the queue: %v", err)
	}
	a.outcome("of an operation that was not called up", clients.NotHeld, func() error { return a.release(clients.Grant{Key: "k0", ID: "w2-9"}) })
	called := make(chan clients.Grant)
	go func() {
		grant, err := b.tryFor("k0", patience)
		if err != nil {
			t.Error(err)
		}
		called <- grant
	}()
	if err := a.release(first); err != nil {
		t.Error(err)
	}
	second := <-called
	a.outcome("a second time", clients.NotHeld, func() error { return a.release(first) })
	if err := b.release(second); err != nil {
		t.Error(err)
	}
	a.acquire("k0", 0) // the attempt that was given up is not in its way
	if err := a.lock.Close(); err != nil {
		t.Error(err)
	}
	b.acquire("k0", 0) // nor is one whose producer is gone
}
