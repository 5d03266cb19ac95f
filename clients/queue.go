package clients

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
)

// Words between the clients of the queue and its consumer, a line each. A client that
// closes its connection has left the queue, or is done.
const (
	QueueTurn = "turn\n" // the consumer has come to the operation of this client
	QueueDone = "done\n" // the operation is over; the answer is the same
)

// queue sends operations to one consumer, which calls up one after the other: no lock is
// needed where nobody else does anything. An operation lasts as long as its connection.
type queue struct {
	consumer string // its socket
	turns    handles[*queueTurn]
}

// queueTurn is an operation that was called up.
type queueTurn struct {
	net.Conn
	answers *bufio.Reader
}

func openQueue(c Config) (Lock, error) {
	if len(c.Nodes) != 1 {
		return nil, fmt.Errorf("a queue has one consumer, not %d", len(c.Nodes))
	}
	return &queue{consumer: c.Nodes[0]}, nil
}

// Acquire sends an operation and waits until it is called up. It takes it back by leaving:
// a consumer that is stopped finds that when it goes on.
func (q *queue) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", q.consumer)
	if err != nil {
		return Grant{}, &NoEffectError{Err: err}
	}
	turn := &queueTurn{Conn: conn, answers: bufio.NewReader(conn)}
	leave := context.AfterFunc(ctx, func() { _ = conn.Close() })
	_, err = conn.Write([]byte(a.Key + "\n"))
	if err == nil {
		err = turn.hear(QueueTurn)
	}
	if !leave() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		return Grant{}, &NoEffectError{Err: errors.Join(err, closing(conn))}
	}
	q.turns.put(a.ID, turn)
	return Grant{Key: a.Key, ID: a.ID}, nil
}

// hear waits for a word of the consumer.
func (t *queueTurn) hear(word string) error {
	said, err := t.answers.ReadString('\n')
	if err == nil && said != word {
		err = fmt.Errorf("the consumer said %q", said)
	}
	return err
}

// closing closes a connection, which may be closed already.
func closing(conn net.Conn) error {
	if err := conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (q *queue) Release(ctx context.Context, g Grant) error {
	turn, known := q.turns.take(g.ID)
	if !known {
		return ErrNotHeld
	}
	defer context.AfterFunc(ctx, func() { _ = turn.Close() })()
	defer turn.Close()
	if _, err := turn.Write([]byte(QueueDone)); err != nil {
		return err
	}
	return turn.hear(QueueDone)
}

func (q *queue) Close() error {
	var errs []error
	for _, turn := range q.turns.takeAll() {
		errs = append(errs, closing(turn))
	}
	return errors.Join(errs...)
}
