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
	// natsAsked is the key that is written to confirm what was read of another key.
	natsAsked = "asked"
	// natsReplicas is how many servers have a copy if the cluster has that many.
	natsReplicas = 3
	// natsMarkers is how long the bucket keeps markers of expired keys for its watchers. Keys can have TTLs of
	// their own only in a bucket with such markers.
	natsMarkers = time.Minute
	// natsOpening bounds the creation of the bucket.
	natsOpening = 15 * time.Second
)

// natsLock is a key in a JetStream bucket, with the official client. Create with a TTL of the key's own
// acquires it, and Delete of the last revision releases it.
//
// The bucket's Update removes a key's TTL, and the library has no other call to renew it. So a renewal does
// what Update does, but with the TTL: it publishes a message that must follow the last message of its key.
type natsLock struct {
	conn      *nats.Conn
	js        jetstream.JetStream
	kv        jetstream.KeyValue
	revisions handles[uint64] // of the last write that is known to have succeeded
}

func openNATS(c Config) (Lock, error) {
	return openNATSAs(c, func(l *natsLock) Lock { return l })
}

// openNATSAs opens the lock and wraps it.
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

// natsKey encodes a lock's name so that it is a valid key.
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

// renewBy extends a lease with a write that must follow the current revision. The write returns its own
// revision.
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

// take returns the revision of a grant's last write, and forgets it, because the caller's write changes the
// revision unless it fails. An unknown revision is looked up.
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

// last returns the last message of a lock's key. Its data name the holder; they are empty for a key that was
// deleted, has expired or never existed.
//
// Any replica may answer a read, and so may a deposed leader that does not know it yet. Both answers may be
// stale. So a write follows that succeeds only if the message is still the last one of its key, and only with a
// majority. It writes another key, because a write of the same key would change its revision.
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

// errNATSConflict: a write was refused because another write of the same key was in progress. That write may
// still fail, so the error does not say who holds the lock.
var errNATSConflict = errors.New("another write of the key is under way")

// natsOutcome classifies the error of a write that requires a revision.
func natsOutcome(err error) error {
	var answer *jetstream.APIError
	switch {
	case errors.As(err, &answer) && answer.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		return ErrNotHeld
	case errors.As(err, &answer) && answer.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return &NoEffectError{Err: errNATSConflict}
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return &NoEffectError{Err: err} // no server received it
	}
	return err
}
