// Package bench has benchmarks of lockcheck: of judging histories whose events are known, and of the client
// protocol. make bench runs them.
package bench
