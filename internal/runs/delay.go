package runs

import (
	"time"

	"lockcheck/history"
)

const (
	// delayInterval is how often our own delay is measured.
	delayInterval = 10 * time.Millisecond
	// stall is the delay from which on it is recorded: what is usual on a busy machine is less.
	stall = 50 * time.Millisecond
)

// watchDelay measures how much later than it asked this process is woken up, until stop is
// called, which returns the longest of these delays. The processes of a run wait for the same
// processors: what it measures has delayed some of them by about as much. It tells of those that
// are stalls, and when each began.
func watchDelay(stalled func(from int64)) (stop func() time.Duration) {
	end, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		ticker := time.NewTimer(delayInterval)
		defer ticker.Stop()
		most := time.Duration(0)
		for asked := history.Now(); ; asked = history.Now() {
			select {
			case <-end:
				longest <- most
				return
			case <-ticker.C:
				due := asked + int64(delayInterval)
				delay := time.Duration(history.Now() - due)
				if delay >= stall {
					stalled(due)
				}
				most = max(most, delay)
				ticker.Reset(delayInterval)
			}
		}
	}()
	return func() time.Duration {
		close(end)
		return <-longest
	}
}
