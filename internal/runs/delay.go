package runs

import (
	"time"

	"lockcheck/history"
)

// delayInterval is how often our own delay is measured.
const delayInterval = 10 * time.Millisecond

// watchDelay measures how much later than it asked this process is woken up, until stop is
// called, which returns the longest of these delays. The processes of a run wait for the same
// processors: what it measures has delayed some of them by about as much.
func watchDelay() (stop func() time.Duration) {
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
				most = max(most, time.Duration(history.Now()-asked)-delayInterval)
				ticker.Reset(delayInterval)
			}
		}
	}()
	return func() time.Duration {
		close(end)
		return <-longest
	}
}
