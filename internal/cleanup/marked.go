package cleanup

import (
	"fmt"
	"time"

	"lockcheck/internal/processes"
)

// mark is in the environment of each process that a run starts on this machine, and of its descendants. It
// distinguishes them from other processes.
func mark(run string) processes.Mark { return processes.Mark(processes.RunVariable + "=" + run) }

// Running lists the processes on this machine that a run or its descendants have started and that still run.
func Running(run string) ([]int, error) { return mark(run).Running() }

// goneLimit is how long killed processes may take to end.
const goneLimit = 10 * time.Second

// End kills the processes of a run and waits until there are none. It fails after goneLimit.
func End(run string) error {
	for deadline := time.Now().Add(goneLimit); ; time.Sleep(5 * time.Millisecond) {
		if _, err := mark(run).Kill(); err != nil {
			return err
		}
		left, err := Running(run)
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v of run %s do not end", left, run)
		}
	}
}
