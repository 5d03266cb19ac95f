package workloads

import (
	"context"
	"errors"
	"time"
)

// watchdogGrace is how long a call may outlast its deadline. After that, a worker that has a watchdog, or is
// about to end, abandons the call.
const watchdogGrace = 500 * time.Millisecond

// errOverrun is the outcome of a call that did not return in time.
var errOverrun = errors.New("the call overran its deadline")

// alreadyClosed as patience means: do not wait for a call beyond its deadline and watchdogGrace.
var alreadyClosed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// bounded makes a call with a deadline. If the call outlasts the deadline, bounded waits for it, as programs
// do, until patience is closed. After a further watchdogGrace it abandons the call, and the call's result is
// ignored.
func bounded[T any](
	ctx context.Context, timeout time.Duration, patience <-chan struct{}, call func(context.Context) (T, error),
) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var value T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		value, err = call(ctx)
	}()
	for _, over := range []<-chan struct{}{ctx.Done(), patience} {
		select {
		case <-done:
			return value, err
		case <-over:
		}
	}
	watchdog := time.NewTimer(watchdogGrace)
	defer watchdog.Stop()
	select {
	case <-done:
		return value, err
	case <-watchdog.C:
		var none T
		return none, errOverrun
	}
}
