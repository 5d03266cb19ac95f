package clients

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
)

// Messages between the queue's clients and its consumer, one per line. A client that closes its connection
// leaves the queue or has finished.
const (
	QueueTurn = "turn\n" // the consumer calls up this client's operation
	QueueDone = "done\n" // the operation is over; the consumer answers with the same message
)

// queue sends operations to a single consumer, which calls them up one at a time. No lock is needed if only the
// consumer's choice lets an operation run. An operation lasts as long as its connection.
type queue struct {
	consumer string // path of its socket
	turns    handles[*queueTurn]
}

// queueTurn is an operation that the consumer has called up.
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

// Acquire sends an operation and waits until the consumer calls it up. It withdraws the operation by closing
// the connection. A stopped consumer sees that when it continues.
func (q *queue) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", q.consumer)
	if err != nil {
		return Grant{}, &NoEffectError{Err: err}
	}
	turn := &queueTurn{Conn: conn, answers: bufio.NewReader(conn)}
	leave := context.AfterFunc(ctx, func() { _ = conn.Close() })
	_, err = conn.Write([]byte(a.Key + "\n"))
	if err == nil {
		err = turn.awaitMessage(QueueTurn)
	}
	if !leave() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		return Grant{}, &NoEffectError{Err: errors.Join(err, closeIgnoringClosed(conn))}
	}
	q.turns.put(a.ID, turn)
	return Grant{Key: a.Key, ID: a.ID}, nil
}

// awaitMessage reads a message from the consumer, and fails if it is not the expected one.
func (t *queueTurn) awaitMessage(word string) error {
	said, err := t.answers.ReadString('\n')
	if err == nil && said != word {
		err = fmt.Errorf("the consumer said %q", said)
	}
	return err
}

// closeIgnoringClosed closes a connection that may be closed already.
func closeIgnoringClosed(conn net.Conn) error {
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
	return turn.awaitMessage(QueueDone)
}

func (q *queue) Close() error {
	var errs []error
	for _, turn := range q.turns.takeAll() {
		errs = append(errs, closeIgnoringClosed(turn))
	}
	return errors.Join(errs...)
}
