package runs

import (
	"fmt"
	"math"
	"time"

	"lockcheck/history"
)

// clockShiftLimit is how far the wall clock of this machine may move against its monotonic clock in a run. It
// is more than the error of reading one clock after the other on a busy machine, and less than any clock step
// that lockcheck injects. Slewing moves both clocks alike and does not show. lockcheck itself never steps
// this clock. A program that steps it while servers read it injects a fault that nobody asked for.
const clockShiftLimit = 50 * time.Millisecond

// hostClock is a reading of both clocks of this machine.
type hostClock struct {
	wall      int64 // ns
	monotonic int64
}

// readHostClock reads both clocks several times and returns the least disturbed reading.
func readHostClock() hostClock {
	var best hostClock
	least := int64(math.MaxInt64)
	for range 10 {
		before := history.Now()
		wall := time.Now().UnixNano()
		took := history.Now() - before
		if took < least {
			least, best = took, hostClock{wall: wall, monotonic: before + took/2}
		}
	}
	return best
}

// moved returns how far the wall clock was moved since an earlier reading.
func (c hostClock) moved(since hostClock) time.Duration {
	return time.Duration((c.wall - since.wall) - (c.monotonic - since.monotonic))
}

// check returns an error if the wall clock was moved by more than clockShiftLimit.
func (c hostClock) check(since hostClock) error {
	if by := c.moved(since); by.Abs() > clockShiftLimit {
		return fmt.Errorf("the wall clock of this machine was moved by %s during the run", by)
	}
	return nil
}
