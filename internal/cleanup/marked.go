package cleanup

import (
	"fmt"
	"time"

	"lockcheck/internal/processes"
)

// mark is in the environment of what a run starts on this machine, and of what that starts
// in turn: so it can be told from processes that are not ours.
func mark(run string) processes.Mark { return processes.Mark(processes.RunVariable + "=" + run) }

// Running lists the processes that a run has started on this machine, and what those have
// started in turn, and that still run.
func Running(run string) ([]int, error) { return mark(run).Running() }

// goneLimit is how long processes that were killed may take to end.
const goneLimit = 10 * time.Second

// End kills the processes of a run that still run, and waits until there are none.
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
