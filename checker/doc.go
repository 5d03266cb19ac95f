// Package checker judges histories: it turns a history into findings and a verdict. It is pure: the same
// history gives the same results. It does no I/O and reads no clock, except for the time limit of porcupine.
// Findings are facts, that is kinds and figures, which package present turns into sentences.
//
// Interval checkers (overlap, wrong release, stale write, lost update, fencing order, liveness) always answer
// and decide the verdict. Porcupine is the independent second opinion: it judges the lock service itself
// against a model of an owner-aware mutex with leases. If the two contradict each other, lockcheck has a bug
// and says so: the verdict is then Broken and never a guess.
//
// All times are nanoseconds of the clock that the history was recorded with. Intervals of operations are
// closed.
package checker
