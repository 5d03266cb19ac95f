// Package bench has benchmarks of lockcheck: of judging histories of which it is known what happened in
// them, and of the client protocol. make bench runs them.
package bench
