package workloads

import (
	"context"
	"errors"
	"time"
)

// watchdogGrace is how long a call may overrun its deadline before one who has a
// watchdog, or is about to end, leaves it behind.
const watchdogGrace = 500 * time.Millisecond

// errOverrun is the outcome of a call that did not end in time.
var errOverrun = errors.New("the call overran its deadline")

// alreadyClosed is the patience of those who have none.
var alreadyClosed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// bounded makes a call with a deadline. It waits for one that overruns it, as programs do,
// until patience is closed; a moment later it leaves the call behind: whatever that returns
// then is not acted on.
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
