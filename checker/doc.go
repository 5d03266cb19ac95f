// Package checker judges histories. It turns one into findings and a verdict, and is
// pure: the same history gives the same results, without I/O and, but for the time limit
// of porcupine, without a clock. Findings are facts: kinds and figures, which package present
// turns into words. Interval checkers (overlap, wrong release,
// stale write, lost update, fencing order, liveness) always answer and give the
// verdict; porcupine judges the lock service itself against a model of an
// owner-aware mutex with leases and is the independent second opinion. Where
// the two contradict each other lockcheck is wrong, and says so: the verdict is
// then Broken and never a guess. All times are nanoseconds of the clock that
// the history was recorded with; intervals of operations are closed.
package checker
