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
	folder, err := os.MkdirTemp("", "q-") // the path of a Unix socket may have at most 107 bytes
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

// TestQueue: one operation of a key runs at a time. It ends with its producer's connection, and a producer that
// gave up gets no turn.
func TestQueue(t *testing.T) {
	t.Parallel()
	socket := queueAt(t)
	producer := func(name string) *worker {
		return openWith(t, "queue", clients.Config{Worker: name, Nodes: []string{socket}})
	}
	a, b := producer("w1"), producer("w2")
	first := a.acquire("k0", 0)
	b.acquire("k1", 0) // another key
	if _, err := b.try("k0", 0, 100*time.Millisecond); clients.OutcomeOf(err) != clients.NoEffect {
		t.Errorf("in the queue: %v", err)
	}
	a.released(clients.Grant{Key: "k0", ID: "w2-9"}, clients.NotHeld) // w2-9 has no turn
	called := b.queue("k0", 0)
	a.released(first, clients.Done)
	second := b.granted(called)
	a.released(first, clients.NotHeld)
	b.released(second, clients.Done)
	a.acquire("k0", 0) // the attempt that gave up does not block the queue
	if err := a.Lock.Close(); err != nil {
		t.Error(err)
	}
	b.acquire("k0", 0) // neither does one whose producer is gone
}
