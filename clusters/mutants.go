//go:build mutants

package clusters

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"lockcheck/clients"
)

// Mutants are changes of the embedded lock service that lockcheck is tested with. A wrong mutant does one thing
// wrong, often enough to be caught within seconds and seldom enough to work otherwise. The others are unusual
// but right. The command tools/mutants lists the expected verdict for each.

// MutantNames lists the mutants by name.
func MutantNames() []string { return slices.Sorted(maps.Keys(mutants())) }

func mutants() map[string]mutation {
	named := make(map[string]mutation)
	for name, change := range map[string]mutation{
		// Right.
		"textbook":         textbook,
		"slow":             slow,
		"late-end":         lateEnd,
		"sparse-tokens":    sparseTokens,
		"clock-tokens":     clockTokens,
		"idempotent":       idempotent,
		"queue":            queue,
		"anonymous":        anonymous,
		"refuses-at-times": refusesAtTimes,
		"forgets-answers":  forgetsAnswers,
		// Wrong.
		"double-grant":        doubleGrant,
		"split-brain":         splitBrain,
		"early-end":           earlyEnd,
		"unit-mistake":        unitMistake,
		"never-ends":          neverEnds,
		"renewed-never-ends":  renewedNeverEnds,
		"contention-renews":   contentionRenews,
		"token-reused":        tokenReused,
		"token-back":          tokenBack,
		"token-per-worker":    tokenPerWorker,
		"blind-release":       blindRelease,
		"release-lost":        releaseLost,
		"release-denied":      releaseDenied,
		"renews-expired":      renewsExpired,
		"renewal-steals":      renewalSteals,
		"denies-renewals":     deniesRenewals,
		"wakes-nobody":        wakesNobody,
		"forgets":             forgets,
		"names-wrong-holder":  namesWrongHolder,
		"grants-expired":      grantsExpired,
		"starves":             starves,
		"stops-granting":      stopsGranting,
		"long-validity":       textbook, // the client is wrong
		"fence-on-writes":     textbook, // the resource is wrong
		"no-lock":             noLock,
		"release-by-anybody":  releaseByAnybody,
		"grant-before-expiry": grantBeforeExpiry,
		"retries-release":     releaseByName,
		"insists":             renewalTakes,
		"remembers":           textbook, // the client is wrong
		"reader-let-in":       letsIn(true),
		"writer-let-in":       letsIn(false),
		"readers-all-out":     readersAllOut,
	} {
		named[clients.MutantPrefix+name] = change
	}
	for name, change := range map[string]mutation{
		// Right.
		"textbook":        textbook,
		"forgets-answers": forgetsAnswers,
		// Wrong.
		"one-more":          onePermitMore,
		"counted-twice":     countedTwice,
		"unchecked-release": uncheckedRelease,
		"release-lost":      releaseLost,
	} {
		named[clients.MutantSemaphore+name] = func(l *leases, m methods) methods { return change(l, withoutTokens(l, m)) }
	}
	return named
}

// mutantByName finds the servers of a mutant.
func mutantByName(name string) (Spec, bool) {
	change, known := mutants()[name]
	if !known {
		return Spec{}, false
	}
	return memorySpec(name, change), true
}

// asked changes the requests of a method.
func (do method) asked(change func(*clients.MemoryRequest)) method {
	return func(r clients.MemoryRequest) clients.MemoryReply {
		change(&r)
		return do(r)
	}
}

// take grants a key even if another client holds it.
func (l *leases) take(r clients.MemoryRequest) clients.MemoryReply {
	l.drop(r.Key)
	return l.acquire(r)
}

// drop ends the leases of a key.
func (l *leases) drop(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, key)
}

// change changes the oldest lease of a key, if the key is held.
func (l *leases) change(key string, how func(*lease)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held := l.live(key); len(held) > 0 {
		how(&held[0])
	}
}

// every returns a function that is true at each n-th call. It is safe for concurrent use.
func every(n int) func() bool {
	var mu sync.Mutex
	calls := 0
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		calls++
		return calls%n == 0
	}
}

// workerOf returns the worker of an attempt: w3 for w3-17.
func workerOf(id string) string {
	worker, _, _ := strings.Cut(id, "-")
	return worker
}
