//go:build !embedded

package clients

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"lockcheck/history"
)

const (
	natsSubject = "$KV." + natsBucket + "."
	// natsAsked is the key that is written to make sure of what was read of another one.
	natsAsked = "asked"
	// natsReplicas is how many servers have a copy, where there are so many.
	natsReplicas = 3
	// natsMarkers is how long the bucket tells its watchers that a key has run out: keys
	// have leases of their own in a bucket that says so only.
	natsMarkers = time.Minute
	// natsOpening bounds what makes the bucket.
	natsOpening = 15 * time.Second
)

// natsLock is a key in a JetStream bucket, by the official client: Create with a TTL of
// its own to acquire, Delete of the last revision to release. The bucket's Update takes a
// key's TTL away, and the library has no other call to renew it, so that a renewal is what
// Update does, with the TTL: a message that must follow the last one of its key.
type natsLock struct {
	conn      *nats.Conn
	js        jetstream.JetStream
	kv        jetstream.KeyValue
	revisions handles[uint64] // of the last write that a grant is known to have made
}

func openNATS(c Config) (Lock, error) {
	return openNATSAs(c, func(l *natsLock) Lock { return l })
}

// openNATSAs opens a way to use the lock.
func openNATSAs(c Config, as func(*natsLock) Lock) (Lock, error) {
	l, err := newNATSLock(c)
	if err != nil {
		return nil, err
	}
	return as(l), nil
}

func newNATSLock(c Config) (_ *natsLock, err error) {
	if len(c.Nodes) == 0 {
		return nil, errors.New("nats needs servers")
	}
	conn, err := nats.Connect(strings.Join(c.Nodes, ","), nats.Name(c.Worker))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), natsOpening)
	defer cancel()
	l := &natsLock{conn: conn}
	if l.js, err = jetstream.New(conn); err != nil {
		return nil, err
	}
	l.kv, err = l.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: natsBucket, Replicas: min(len(c.Nodes), natsReplicas), LimitMarkerTTL: natsMarkers,
	})
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", natsBucket, err)
	}
	return l, nil
}

// natsKey returns the key of a lock: not every name may be one.
func natsKey(lock string) string {
	return "lock." + base64.RawURLEncoding.EncodeToString([]byte(lock))
}

// natsLease rounds a lease up to what the server can grant.
func natsLease(ttl time.Duration) time.Duration {
	return max((ttl + natsTTLStep - 1).Truncate(natsTTLStep), natsTTLStep)
}

func (l *natsLock) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	return l.create(ctx, a, natsLease(a.TTL))
}

func (l *natsLock) create(ctx context.Context, a Attempt, lease time.Duration) (Grant, error) {
	start := history.Now()
	revision, err := l.kv.Create(ctx, natsKey(a.Key), []byte(a.ID), jetstream.KeyTTL(lease))
	switch err = natsOutcome(err); {
	case errors.Is(err, ErrNotHeld), errors.Is(err, errNATSConflict):
		return Grant{}, &BusyError{}
	case err != nil:
		return Grant{}, err
	}
	l.revisions.put(a.ID, revision)
	return Grant{Key: a.Key, ID: a.ID, Token: revision, Until: start + lease.Nanoseconds()}, nil
}

// Renew implements Renewer.
func (l *natsLock) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	return l.renewFor(ctx, g, natsLease(ttl))
}

func (l *natsLock) renewFor(ctx context.Context, g Grant, lease time.Duration) (int64, error) {
	return l.renewBy(ctx, g, lease, func(revision uint64) (uint64, error) {
		ack, err := l.js.Publish(ctx, natsSubject+natsKey(g.Key), []byte(g.ID),
			jetstream.WithExpectLastSequencePerSubject(revision), jetstream.WithMsgTTL(lease))
		if err != nil {
			return 0, err
		}
		return ack.Sequence, nil
	})
}

// renewBy extends a lease by a write that follows the revision, and returns its own.
func (l *natsLock) renewBy(ctx context.Context, g Grant, lease time.Duration, write func(revision uint64) (uint64, error)) (int64, error) {
	start := history.Now()
	revision, err := l.take(ctx, g)
	if err != nil {
		return 0, err
	}
	if revision, err = write(revision); err != nil {
		return 0, natsOutcome(err)
	}
	l.revisions.put(g.ID, revision)
	return start + lease.Nanoseconds(), nil
}

func (l *natsLock) Release(ctx context.Context, g Grant) error {
	revision, err := l.take(ctx, g)
	if err != nil {
		return err
	}
	return natsOutcome(l.kv.Delete(ctx, natsKey(g.Key), jetstream.LastRevision(revision)))
}

// take returns the revision of the last write of a grant, and forgets it: whether the call
// that it is for makes another one is not known before it has succeeded. One that is not
// known is looked up.
func (l *natsLock) take(ctx context.Context, g Grant) (uint64, error) {
	if revision, known := l.revisions.take(g.ID); known {
		return revision, nil
	}
	last, err := l.last(ctx, g.Key)
	switch {
	case err != nil:
		return 0, &NoEffectError{Err: err}
	case string(last.Data) != g.ID:
		return 0, ErrNotHeld
	}
	return last.Sequence, nil
}

// Holds implements Asker.
func (l *natsLock) Holds(ctx context.Context, g Grant) (bool, error) {
	last, err := l.last(ctx, g.Key)
	return err == nil && string(last.Data) == g.ID, err
}

// last returns the last message of a lock's key: its data are the holder, none for a key
// that was deleted, has run out or was never there. Reads are answered by any replica, and
// by a leader that does not know yet that it is none, and both may be old. So a write
// follows that succeeds only if the message still is the last one of the key, and only with
// a majority. It is not one of that key, which would change its revision.
func (l *natsLock) last(ctx context.Context, lock string) (*jetstream.RawStreamMsg, error) {
	subject := natsSubject + natsKey(lock)
	stream, err := l.js.Stream(ctx, NATSStream)
	if err != nil {
		return nil, err
	}
	for {
		last, err := stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			last, err = new(jetstream.RawStreamMsg), nil
		}
		if err != nil {
			return nil, err
		}
		_, err = l.js.Publish(ctx, natsSubject+natsAsked, nil, jetstream.WithExpectLastSequenceForSubject(last.Sequence, subject))
		switch outcome := natsOutcome(err); {
		case outcome == nil:
			return last, nil
		case !errors.Is(outcome, ErrNotHeld) && !errors.Is(outcome, errNATSConflict):
			return nil, err
		}
	}
}

func (l *natsLock) Close() error {
	l.conn.Close()
	return nil
}

// errNATSConflict: a write was refused because another one of its key was under way, which
// may fail. It says nothing of who holds the lock.
var errNATSConflict = errors.New("another write of the key is under way")

// natsOutcome classifies the error of a write that asks for a revision.
func natsOutcome(err error) error {
	var answer *jetstream.APIError
	switch {
	case errors.As(err, &answer) && answer.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		return ErrNotHeld
	case errors.As(err, &answer) && answer.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return &NoEffectError{Err: errNATSConflict}
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return &NoEffectError{Err: err} // nobody got it
	}
	return err
}
