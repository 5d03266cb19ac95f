package runs

import (
	"time"

	"lockcheck/history"
)

const (
	// delayInterval is how often lockcheck measures its own delay.
	delayInterval = 10 * time.Millisecond
	// stall is the least delay that is recorded. Delays on a busy machine are usually shorter.
	stall = 50 * time.Millisecond
)

// watchDelay measures how late this process is woken up, until stop is called. stop returns the longest
// delay. The processes of a run wait for the same processors, so such a delay has held up some of them by
// about as much. For each delay that is a stall, it calls stalled with the time at which this process was
// due.
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
