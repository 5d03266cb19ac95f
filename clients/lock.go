// Package clients holds the locks under test as their users see them: one file
// a lock, behind the small interface Lock, all named by one table. A lock that is added here needs its servers in package clusters and nothing
// else.
package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Lock is one worker's handle on a lock service. Each call may overrun its context: a
// stopped server still accepts connections, and some libraries look at their context late,
// or not at all.
type Lock interface {
	// Acquire makes one attempt; a lock that queues waits for its turn as long as
	// the context lasts. Its error is classified by OutcomeOf. After an Unknown
	// outcome the caller should Release the attempt. With an error only the Wakes of
	// the grant mean anything.
	Acquire(ctx context.Context, attempt Attempt) (Grant, error)
	// Release gives the lock back, or takes back an attempt of unknown outcome.
	// Only the fields Key and ID of the grant are needed.
	Release(ctx context.Context, grant Grant) error
	Close() error
}

// Renewer is a Lock whose lease the holder can extend by itself.
type Renewer interface {
	// Renew extends the lease by ttl and returns the new end of the validity.
	Renew(ctx context.Context, grant Grant, ttl time.Duration) (until int64, err error)
}

// Asker is a Lock whose service can be asked whether a grant is in force, as Chubby's
// can (CheckSequencer; Burrows 2006, section 2.4). Whoever asks needs no lock itself.
type Asker interface {
	// Holds says whether the grant has its lock by the service's own record, as it is
	// at some moment of the call: where the record has copies, one that may be old is
	// not asked. Only Key, ID and Token of the grant are needed. After an error nobody
	// knows; the question may be repeated.
	Holds(ctx context.Context, grant Grant) (bool, error)
}

// Worker is a Lock whose client lets the time of the critical section pass itself, so that
// what the client blocks meanwhile shows.
type Worker interface {
	Work(ctx context.Context, grant Grant, d time.Duration) error
}

// Failing is a Lock whose client can end, or break the rules that it is to keep.
type Failing interface {
	// Failed says why the client can do nothing more; nil if it can.
	Failed() error
}

// Named is a Lock whose client tells its own name.
type Named interface {
	// ClientName is the name of the library and its version, as the client says.
	ClientName() string
}

// Outside is a Lock whose client is a process of its own.
type Outside interface {
	// Stop stops it (SIGSTOP). It goes on when somebody continues the worker and all that
	// it has started.
	Stop() error
}

// DataStore is a Lock whose database keeps the data that it protects, too. The holder
// reaches them by the connection that holds the lock: an access takes effect as part of
// its transaction, or, where the lock is held by none, of its session.
type DataStore interface {
	// PrepareData makes the places for the data, if they are not there.
	PrepareData(ctx context.Context) error
	// Access reads the data of the grant's key, or writes the value. Its error is
	// classified by OutcomeOf; after one the grant can do nothing more.
	Access(ctx context.Context, grant Grant, access DataAccess, value json.RawMessage) (Data, error)
	// Committed returns the accesses that took effect, those of each key in the order in
	// which they did, and what there is of each key that was written. It waits for those
	// that are not decided yet.
	Committed(ctx context.Context) ([]DataAccess, map[string]Data, error)
}

// Data is what a DataStore has of a key; the zero value where nothing was written.
type Data struct {
	Version int64
	Value   string // JSON; "" where nothing was written
}

// DataAccess is a read or write of a DataStore, as it is recorded there.
type DataAccess struct {
	Write   bool
	Client  string // the worker
	Op      int64  // its number there
	Element int64
	Base    int64
	At      int64 // when it was asked for, ns of the history's clock
	// Key, Grant and Version are known to the database.
	Key, Grant string
	Version    int64 // read or made
}

// Attempt is a request for a lock.
type Attempt struct {
	Key string        // the lock's name
	ID  string        // unique in a run; the service stores it as the holder where it can
	TTL time.Duration // lease asked for; ignored by a lock without lease
	// Shared asks for the lock next to others that ask so; only of a lock with Info.Shared.
	Shared bool
}

// withdrawal bounds what an attempt does after its context ended, to leave nothing
// behind. It is shorter than the patience of a Watchdog with a call that overruns its
// context (workloads.watchdogGrace): it must hear what became of it.
const withdrawal = 400 * time.Millisecond

// Grant is what a successful attempt led to.
type Grant struct {
	Key    string
	ID     string
	Shared bool   // as the attempt asked for
	Token  uint64 // fencing token; 0 for a lock without tokens
	// Until is the end of the validity in ns of CLOCK_MONOTONIC, computed by the
	// client without trusting any other clock; 0 when the lock gives none.
	Until int64
	// Lost is closed as soon as the client library can know that the lock is
	// gone; nil when it never can.
	Lost <-chan struct{}
	// Expired: by the service's own record the grant was gone when it arrived, and
	// the client knows. Callers who trust the answer alone go on all the same.
	Expired bool
	// Wakes is how many notifications of the service the attempt got while it waited for
	// its turn; 0 for a lock that does not count them (Info.CountsWakes).
	Wakes int64
}

// Outcome tells what an error says about the effect of a call.
type Outcome int

const (
	Done     Outcome = iota // it took effect
	Busy                    // acquire: another holder has it
	NotHeld                 // release and renew: the lock was not held (any more)
	NoEffect                // it certainly had no effect, for another reason
	Unknown                 // it may have had its effect, or may still have it
)

// ErrNotHeld is returned by Release and Renew when the lock was not held.
var ErrNotHeld = errors.New("not held")

// BusyError is returned by Acquire when the lock is taken.
type BusyError struct {
	Holder string // Attempt.ID of the holder as the service knows it; "" if it does not say
}

func (e *BusyError) Error() string {
	if e.Holder == "" {
		return "busy"
	}
	return "busy: held by " + e.Holder
}

// NoEffectError wraps a failure that certainly left nothing behind.
type NoEffectError struct{ Err error }

func (e *NoEffectError) Error() string { return e.Err.Error() }
func (e *NoEffectError) Unwrap() error { return e.Err }

// noEffect formats a NoEffectError.
func noEffect(format string, args ...any) error {
	return &NoEffectError{Err: fmt.Errorf(format, args...)}
}

// OutcomeOf classifies an error of a Lock by its type. What is not known to
// be harmless is Unknown.
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
