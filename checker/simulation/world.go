// Package simulation is a discrete simulation of runs: a lock service, workers that use it, the resource that
// it protects, and a nemesis that stops, kills or cuts off workers and the server. It writes a history as a
// run of lockcheck does, and the truth, which no history can tell: when the service granted and ended what,
// and why. The checkers are compared with it.
package simulation

import (
	"math/rand/v2"
	"slices"

	"lockcheck/history"
)

// World configures a simulation. Durations are in ms, which is also the resolution of the simulation: equal
// times are common.
type World struct {
	Workers, Keys, Attempts int

	Lease            int64 // of a grant; 0 for locks that last as long as the connection
	Session          bool  // the client renews its lease in the background
	OldSession       bool  // one session serves all attempts of a worker, and may be older than they are
	RenewalsRecorded bool  // the renewals of sessions are on record
	Watches          bool  // the client notifies its worker when it learns that a lock is gone
	Confirms         bool  // the client asks after each grant whether it is on record
	Renews           bool  // the worker renews its lease itself
	Careful          bool  // the worker checks its deadline before it writes
	Slow             bool  // sections are often longer than the lease
	Polls            bool  // the client of a queue counts the validity from the request that was granted
	Deaf             int64 // ms for which answers to acquires are lost; 0 for never
	Queue            bool  // the service lets attempts wait instead of refusing them
	Tokens           bool
	Places           bool // tokens are those of the place in the queue
	Nested           bool // a worker may take a second key while it holds one
	Permits          int
	Reentrant        int

	Guard    string
	Workload string
	Updates  int // in each hold; 0 means one

	Loss   float64  // probability that a message is lost or late
	Faults []string // kinds that the nemesis may inflict
	Most   int      // maximal number of faults
	Wipes  bool     // a killed server forgets its leases
	// Resumes: a worker that asks for the lock in the session in which it has it is given the same grant again.
	Resumes bool
	Bugs
}

// Bugs are errors of the service, the client or the resource. Each is a probability per request, except Jam.
type Bugs struct {
	Double  float64 // the service grants a held lock
	Early   float64 // it ends a lease after a fraction of its time
	Forget  float64 // it drops the holders
	Blind   float64 // any release removes whoever has the lock
	Lies    float64 // it names a wrong holder
	Repeat  float64 // it hands out a token again
	Back    float64 // it hands out a lower token
	Sticky  float64 // it says that a lock is released, and keeps it
	NeverOK float64 // it says that a lock was not held, and releases it
	Ghost   float64 // it tells a waiter whose claim is gone that it is its turn
	Upsert  float64 // a renewal takes the lock back
	Late    float64 // a client counts the validity from the answer
	Cries   float64 // a client reports a loss that did not happen
	Jam     int64   // ms after which the service grants nothing more; 0 for never

	Drop    float64 // the resource loses an accepted update
	Twin    float64 // it has an update twice
	Phantom float64 // it has an update that nobody wrote
	Applies float64 // it applies a refused update
}

// Random draws a world. The world of a right service has no bugs.
func Random(rng *rand.Rand, right bool) World {
	is := func(p float64) bool { return rng.Float64() < p }
	w := World{
		Workers: 2 + rng.IntN(3), Keys: 1, Attempts: 1 + rng.IntN(5), Lease: 100,
		Queue: is(0.5), Tokens: is(0.5), Watches: is(0.5), Places: is(0.5), Renews: is(0.4), Careful: is(0.3),
		Permits: 1, Reentrant: 1, Guard: history.GuardNone, Workload: history.WorkloadSet,
		Loss: float64(rng.IntN(3)) * 0.1, Most: rng.IntN(6),
	}
	switch rng.IntN(3) {
	case 0:
		w.Lease = 0
	case 1:
		w.Session, w.OldSession, w.Confirms, w.Renews = true, is(0.5), is(0.5), false
	}
	if is(0.25) {
		w.Keys, w.Nested = 2+rng.IntN(2), is(0.6)
	}
	switch {
	case is(0.1):
		w.Permits = 2 + rng.IntN(2)
	case is(0.12):
		w.Reentrant = 2 + rng.IntN(2)
	}
	if is(0.5) {
		guards := []string{guardFence, guardFenceWrites, history.GuardVersions, history.GuardMatch, guardAsk}
		w.Guard = guards[rng.IntN(len(guards))]
		w.Tokens = w.Tokens || w.Guard == guardFence || w.Guard == guardFenceWrites
	}
	switch rng.IntN(6) {
	case 0:
		w.Workload = history.WorkloadCounter
	case 1:
		w.Workload = history.WorkloadMutex
	}
	for _, kind := range []string{
		history.Pause, history.Pause, history.Kill, history.Partition, history.DelayWrite,
		serverPause, serverKill, history.Clock,
	} {
		if is(0.3) {
			w.Faults = append(w.Faults, kind)
		}
	}
	if len(w.Faults) > 1 && is(0.4) {
		w.Faults = w.Faults[:1]
	}
	w.Wipes = is(0.3)
	w.Resumes = w.Session && w.OldSession && is(0.5)
	w.RenewalsRecorded = w.Session && is(0.5)
	if !right {
		w.Bugs = randomBugs(rng)
	}
	if !right && is(0.02) { // for that all workers must ask for long
		w.Jam, w.Keys, w.Nested, w.Permits, w.Reentrant, w.Attempts = 100+rng.Int64N(300), 1, false, 1, 1, 60
	}
	if is(0.1) { // holders and waiters that are stopped for long at the same time
		w.Faults, w.Most, w.Workers, w.Attempts = []string{history.Pause}, 8, 4, 3
		w.Lease, w.Queue, w.Workload = 100, true, history.WorkloadSet
		w.Tokens, w.Guard, w.Permits, w.Reentrant, w.Keys, w.Nested = false, history.GuardNone, 1, 1, 1, false
	}
	if is(0.12) {
		w.Workload, w.Tokens, w.Nested, w.Permits, w.Reentrant, w.Jam = history.WorkloadReadWrite, false, false, 1, 1, 0
		if w.Guard != history.GuardVersions {
			w.Guard = history.GuardNone
		}
	}
	if is(0.2) {
		w.Updates = 2 + rng.IntN(4)
	}
	w.Slow, w.Polls = is(0.2), is(0.5)
	if is(0.02) { // for long no worker learns that it has the lock
		w.Deaf, w.Attempts, w.Most, w.Keys, w.Nested, w.Permits, w.Reentrant = 1200+rng.Int64N(600), 60, 0, 1, false, 1, 1
		w.Slow, w.Updates, w.Bugs = false, 0, Bugs{}
	}
	if !right && is(0.03) { // workers that are stopped while they renew
		w.Lease, w.Session, w.Renews, w.Deaf, w.Jam, w.Workload = 100, false, true, 0, 0, history.WorkloadSet
		w.Keys, w.Nested, w.Permits, w.Reentrant, w.Updates, w.Attempts = 1, false, 1, 1, 6, 5
		w.Faults, w.Most, w.Bugs = []string{history.Pause}, 8, Bugs{Upsert: 0.9}
	}
	if w.Lease == 0 { // otherwise a worker that is wrongly notified never releases the lock
		w.Cries = 0
	}
	return w
}

// Faults of the server; history uses the same kinds as for workers.
const (
	serverPause = "server-pause"
	serverKill  = "server-kill"
)

// Guards of the simulation.
const (
	guardFence       = "fence"
	guardFenceWrites = "fence-writes"
	guardAsk         = "ask"
)

// randomBugs draws one bug, or several at once.
func randomBugs(rng *rand.Rand) Bugs {
	var b Bugs
	all := []*float64{
		&b.Double, &b.Early, &b.Forget, &b.Blind, &b.Lies, &b.Repeat, &b.Back, &b.Sticky, &b.NeverOK, &b.Ghost,
		&b.Upsert, &b.Late, &b.Cries, &b.Drop, &b.Twin, &b.Phantom, &b.Applies,
	}
	only := rng.IntN(2 * len(all))
	for i, p := range all {
		if i == only || only >= len(all) && rng.IntN(5) == 0 {
			*p = 0.05 + rng.Float64()*0.4
		}
	}
	return b
}

// Has says whether the nemesis may inflict faults of a kind.
func (w World) Has(kind string) bool { return slices.Contains(w.Faults, kind) }
