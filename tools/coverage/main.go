// Command coverage shows how often our statistics are right. It counts how often the 95 % intervals of lost
// updates contain the true share, and how often two sets of runs are reported as different. It uses simulated
// services, which fail in bursts or otherwise, and real runs of the lock memory whose holders are paused. It
// prints tables. docs/trust.md has the latest figures.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	binary := flag.String("lockcheck", "./lockcheck", "the binary that makes the runs")
	store := flag.String("store", "store/coverage", "folder for the runs; those that are there are not made again")
	count := flag.Int("runs", 120, "how many real runs there must be; 0: only simulate")
	side := flag.Int("parallel", 4, "how many of them to make side by side")
	trials := flag.Int("trials", 2000, "how often to simulate each service")
	flag.Parse()
	simulated(os.Stdout, *trials)
	if *count == 0 {
		return
	}
	r := realRuns{binary: *binary, store: *store, count: *count, side: *side}
	if err := r.print(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}
