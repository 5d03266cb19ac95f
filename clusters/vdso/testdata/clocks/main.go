// Command clocks tells, for each line that it reads, what the clocks say through
// the vDSO, and what direct system calls say before and after: clock, then before,
// seconds, fraction, after in ns, and the unit of the fraction in ns.
package main

import (
	"bufio"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	start := truly(unix.CLOCK_MONOTONIC)
	started := time.Now()
	startedBy := truly(unix.CLOCK_MONOTONIC)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		before := truly(unix.CLOCK_REALTIME)
		now := time.Now()
		fmt.Println("realtime", before, now.Unix(), now.Nanosecond(), truly(unix.CLOCK_REALTIME), 1)
		// The runtime tells its monotonic clock only as a difference.
		before = truly(unix.CLOCK_MONOTONIC) - startedBy
		since := time.Since(started)
		fmt.Println("monotonic", before, int64(since/time.Second), int64(since%time.Second), truly(unix.CLOCK_MONOTONIC)-start, 1)
		fmt.Println("end")
	}
}

// truly asks the kernel, never the vDSO.
func truly(clock int32) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}
