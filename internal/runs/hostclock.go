package runs

import (
	"fmt"
	"math"
	"time"

	"lockcheck/history"
)

// clockShiftLimit is how far the wall clock of this machine may move against its
// monotonic one in a run: more than reading them one after the other makes of it on a
// busy machine, less than any step of ours. Slewing moves both alike and does not show.
// Nothing of ours steps the clock; whoever does while servers read it has inflicted a
// fault that nobody asked for.
const clockShiftLimit = 50 * time.Millisecond

// hostClock is what the two clocks of this machine told together.
type hostClock struct {
	wall      int64 // ns
	monotonic int64
}

// readHostClock reads them together: of several readings the one that was disturbed
// least.
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

// check says if the wall clock was moved by more than a run can stand.
func (c hostClock) check(since hostClock) error {
	if by := c.moved(since); by.Abs() > clockShiftLimit {
		return fmt.Errorf("the wall clock of this machine was moved by %s during the run", by)
	}
	return nil
}
