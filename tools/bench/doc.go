// Command bench measures what it takes lockcheck to judge histories: time, memory. It
// writes synthetic ones, of a lock that often goes wrong, has them judged from disk by
// the binary that users run, and prints one line each. An operation is an invocation and
// its completion. What was found is held against what happened, so that a history in which
// nothing goes wrong cannot pass for a fast one. The figures of the last run are in
// results.md.
//
// And it measures how many short runs are made in an hour, as a search makes them: of clusters that
// serve one after another, under the shortest lease, ended as soon as there is nothing more to
// learn. For comparison it makes some with servers and reports of their own.
//
// And it measures how soon faults are in force that wait for a moment, one run for each moment and kind.
package main
