// Package clients holds the locks under test as their users see them: one file
// a lock, behind the small interface Lock, and one table that names them all.
// A lock that is added here needs its servers in package clusters and nothing
// else.
package clients

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lock is one worker's handle on a lock service. Each call may overrun its
// context (a stopped server still accepts connections, and some libraries look
// at their context late): callers need a watchdog of their own.
type Lock interface {
	// Acquire makes one attempt; a lock that queues waits for its turn as long as
	// the context lasts. Its error is classified by OutcomeOf. After an Unknown
	// outcome the caller should Release the attempt.
	Acquire(ctx context.Context, attempt Attempt) (Grant, error)
	// Release gives the lock back, or takes back an attempt of unknown outcome.
	// Only the fields Key and ID of the grant are needed.
	Release(ctx context.Context, grant Grant) error
	Close() error
}

// Renewer is a Lock whose lease the holder can extend by itself.
type Renewer interface {
	// Renew extends the lease by ttl and returns the new end of the promise.
	Renew(ctx context.Context, grant Grant, ttl time.Duration) (until int64, err error)
}

// Attempt is a wish for a lock.
type Attempt struct {
	Key string        // the lock's name
	ID  string        // unique in a run; the service stores it as the holder where it can
	TTL time.Duration // lease asked for; ignored by a lock without lease
}

// withdrawal bounds what an attempt does after its context ended, to leave nothing
// behind. It is shorter than the patience of workers with a call that overruns its
// context (workloads.watchdogGrace): they must hear what became of it.
const withdrawal = 400 * time.Millisecond

// Grant is what a successful attempt led to.
type Grant struct {
	Key   string
	ID    string
	Token uint64 // fencing token; 0 for a lock without tokens
	// Until is the end of the promise in ns of CLOCK_MONOTONIC, computed by the
	// client without trusting any other clock; 0 when the lock gives none.
	Until int64
	// Lost is closed as soon as the client library can know that the lock is
	// gone; nil when it never can.
	Lost <-chan struct{}
	// Dead: by the service's own record the grant was gone when it arrived, and
	// the client knows. Callers who trust the answer alone go on all the same.
	Dead bool
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
