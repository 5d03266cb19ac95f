package clusters

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"lockcheck/clients"
)

// queueSpec is an embedded queue with one consumer for each key.
func queueSpec() Spec {
	return Spec{
		Name: "queue", Nodes: 1, Embedded: serveQueue,
		Server: func(int) Server { return Server{Program: "queue", Probes: queueProbes{}} },
	}
}

// consumer starts one operation of each key at a time, in the order of arrival.
type consumer struct {
	mu    sync.Mutex
	turns map[string]chan struct{}
}

// serveQueue serves the queue on the socket until the input ends.
func serveQueue(ctx context.Context, socket string, input io.Reader) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, input)
		_ = listener.Close()
	}()
	c := &consumer{turns: make(map[string]chan struct{})}
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		} else if err != nil {
			return err
		}
		go c.serve(conn)
	}
}

// turn returns the channel that is full while an operation of the key runs. The Go runtime serves blocked
// senders in order.
func (c *consumer) turn(key string) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turns[key] == nil {
		c.turns[key] = make(chan struct{}, 1)
	}
	return c.turns[key]
}

// serve runs the operation of one client, from its turn until the client reports its end or disconnects.
func (c *consumer) serve(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewReader(conn)
	key, err := lines.ReadString('\n')
	if err != nil {
		return
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = lines.ReadString('\n')
	}()
	turn := c.turn(strings.TrimSuffix(key, "\n"))
	select {
	case turn <- struct{}{}:
	case <-over:
		return
	}
	_, err = io.WriteString(conn, clients.QueueTurn)
	if err == nil {
		<-over
	}
	<-turn
	_, _ = io.WriteString(conn, clients.QueueDone) // the client may be gone
}

// queueProbes asks for a turn on a key that no worker uses.
type queueProbes struct{}

func (queueProbes) Ready(ctx context.Context, socket string) error {
	info, _ := clients.ByName("queue")
	queue, err := info.Open(clients.Config{Nodes: []string{socket}})
	if err != nil {
		return err
	}
	defer queue.Close()
	_, err = queue.Acquire(ctx, clients.Attempt{Key: "ready", ID: "ready"})
	return err
}

func (queueProbes) Clock(context.Context, string) (time.Time, error) {
	return time.Time{}, errors.New("a queue has no wall clock")
}

func (queueProbes) Version(context.Context, string) (string, error) { return "", nil }
