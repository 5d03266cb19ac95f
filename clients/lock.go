// Package clients has the locks under test, used as their users use them. Each lock is a file with an
// implementation of the small interface Lock, and a row in Table. A new lock also needs its servers in package
// clusters, and nothing else.
package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Lock is one worker's handle on a lock service. A call may outlast its context: a stopped server still accepts
// connections, and some libraries check their context late or never.
type Lock interface {
	// Acquire makes one attempt. A lock that queues waits for its turn until the context ends. OutcomeOf
	// classifies the error. After an Unknown outcome the caller should Release the attempt. With an error, only
	// Wakes of the grant is valid.
	Acquire(ctx context.Context, attempt Attempt) (Grant, error)
	// Release releases the lock, or withdraws an attempt of unknown outcome. It needs only the fields Key and
	// ID of the grant.
	Release(ctx context.Context, grant Grant) error
	Close() error
}

// Renewer is a Lock whose holder can extend the lease.
type Renewer interface {
	// Renew extends the lease by ttl and returns the new end of the validity.
	Renew(ctx context.Context, grant Grant, ttl time.Duration) (until int64, err error)
}

// Asker is a Lock whose service can be asked whether a grant is in force, as in Chubby (CheckSequencer; Burrows
// 2006, section 2.4). The process that asks needs no lock itself.
type Asker interface {
	// Holds reports whether the grant has its lock according to the service's own record at some moment during
	// the call. If the record is replicated, it never reads a replica that may be stale. It needs only Key, ID
	// and Token of the grant. After an error the answer is unknown, and the call may be repeated.
	Holds(ctx context.Context, grant Grant) (bool, error)
}

// Worker is a Lock whose client itself spends the time of the critical section. If the client blocks its own
// renewals meanwhile, that becomes visible.
type Worker interface {
	Work(ctx context.Context, grant Grant, d time.Duration) error
}

// Failing is a Lock whose client can end or break the protocol.
type Failing interface {
	// Failed returns why the client can no longer be used; nil if it can.
	Failed() error
}

// Named is a Lock whose client states its own name.
type Named interface {
	// ClientName returns the library's name and version as the client states them.
	ClientName() string
}

// Outside is a Lock whose client is a process of its own.
type Outside interface {
	// Stop stops the client's process with SIGSTOP. It continues when the worker and all its descendants are
	// continued.
	Stop() error
}

// DataStore is a Lock whose database also stores the data that it protects. The holder accesses the data over
// the connection that holds the lock. An access takes effect as part of the lock's transaction or, if no
// transaction holds the lock, of its session.
type DataStore interface {
	// PrepareData creates the tables for the data if they do not exist.
	PrepareData(ctx context.Context) error
	// Access reads the data of the grant's key, or writes the value. OutcomeOf classifies the error. After an
	// error the grant cannot access the data any more.
	Access(ctx context.Context, grant Grant, access DataAccess, value json.RawMessage) (Data, error)
	// Committed returns the accesses that took effect, and the final data of each key that was written. The
	// accesses of each key are in the order in which they took effect. It waits for transactions that are not
	// decided yet.
	Committed(ctx context.Context) ([]DataAccess, map[string]Data, error)
}

// Data is the content of a key in a DataStore; the zero value if the key was never written.
type Data struct {
	Version int64
	Value   string // JSON; "" if the key was never written
}

// DataAccess is a read or write of a DataStore, as the database records it.
type DataAccess struct {
	Write   bool
	Client  string // the worker
	Op      int64  // number of the operation at that worker
	Element int64
	Base    int64
	At      int64 // when it was requested, ns of the history's clock
	// The database itself determines Key, Grant and Version.
	Key, Grant string
	Version    int64 // the version that was read or written
}

// Attempt is a request for a lock.
type Attempt struct {
	Key string        // the lock's name
	ID  string        // unique in a run; stored as the holder if the service can store one
	TTL time.Duration // lease to request; ignored by a lock without leases
	// Shared requests the lock in shared mode, as a reader; only for a lock with Info.Shared.
	Shared bool
}

// withdrawal bounds the work after an attempt's context has ended, which removes what the attempt left behind.
// It is shorter than the time for which a Watchdog waits for a call that outlasts its context
// (workloads.watchdogGrace). So the Watchdog still learns the outcome.
const withdrawal = 400 * time.Millisecond

// Grant is the result of a successful attempt.
type Grant struct {
	Key    string
	ID     string
	Shared bool   // as in the attempt
	Token  uint64 // fencing token; 0 for a lock without tokens
	// Until is the end of the validity in ns of CLOCK_MONOTONIC. The client computes it without relying on any
	// other clock; 0 if the lock states no validity.
	Until int64
	// Lost is closed as soon as the client library can know that the lock is lost; nil if it can never know.
	Lost <-chan struct{}
	// Expired: by the service's own record the grant had already ended when it arrived, and the client knows. A
	// caller that trusts the answer alone still uses the grant.
	Expired bool
	// Wakes is how many notifications of the service woke the waiting attempt; 0 for a lock that does not count
	// them (Info.CountsWakes).
	Wakes int64
}

// Outcome is what an error says about the effect of a call.
type Outcome int

const (
	Done     Outcome = iota // the call took effect
	Busy                    // acquire: another holder has the lock
	NotHeld                 // release and renew: the lock was not held, or not any more
	NoEffect                // the call certainly had no effect, for another reason
	Unknown                 // the call may have had its effect, or may still have it later
)

// ErrNotHeld is returned by Release and Renew when the lock was not held.
var ErrNotHeld = errors.New("not held")

// BusyError is returned by Acquire when the lock is taken.
type BusyError struct {
	Holder string // Attempt.ID of the holder according to the service; "" if the service does not name it
}

func (e *BusyError) Error() string {
	if e.Holder == "" {
		return "busy"
	}
	return "busy: held by " + e.Holder
}

// NoEffectError wraps a failure that certainly had no effect.
type NoEffectError struct{ Err error }

func (e *NoEffectError) Error() string { return e.Err.Error() }
func (e *NoEffectError) Unwrap() error { return e.Err }

// noEffect formats a NoEffectError.
func noEffect(format string, args ...any) error {
	return &NoEffectError{Err: fmt.Errorf(format, args...)}
}

// OutcomeOf classifies an error of a Lock by its type. An error that is not known to be harmless is Unknown.
func OutcomeOf(err error) Outcome {
	var busy *BusyError
	var none *NoEffectError
	switch {
	case err == nil:
		return Done
	case errors.As(err, &busy):
		return Busy
	case errors.Is(err, ErrNotHeld):
		return NotHeld
	case errors.As(err, &none):
		return NoEffect
	default:
		return Unknown
	}
}
