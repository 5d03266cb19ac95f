package history

import "golang.org/x/sys/unix"

// Now returns CLOCK_MONOTONIC in ns. All containers of a host share that clock, and nothing can step it. The
// monotonic part of time.Now cannot be exported.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		// Only a clock id that is unknown to the kernel can fail.
		panic("history: no monotonic clock: " + err.Error())
	}
	return ts.Nano()
}
