package workloads

import (
	"lockcheck/clients"
	"lockcheck/history"
)

// Guard is what the resource itself checks on each access.
type Guard string

const (
	NoGuard Guard = history.GuardNone
	// Fence refuses an access whose token is lower than the highest token seen so far. Reads advance the
	// highest token, too. Suppose that only writes were checked: a new owner reads, the old owner's stale write
	// is accepted, and the new owner's write overwrites it.
	Fence Guard = history.GuardFence
	// FenceWrites is that mistake, a fence that ignores reads. It is here to demonstrate what it misses.
	FenceWrites Guard = history.GuardFenceWrites
	// CompareAndSet refuses a write that was computed from a stale version.
	CompareAndSet Guard = history.GuardVersions
	// Match refuses a write unless its attempt was the last one to read. A read leaves the attempt's unique
	// value at the resource, and a write is accepted while the value is there ("Is Redlock safe?", Sanfilippo
	// 2016: check-and-set with the random value). The values have no order, so a late read of a former holder
	// replaces the value of the rightful holder.
	Match Guard = history.GuardMatch
	// IdempotencyKey refuses a write of an element that was already written, like a service that requires an
	// idempotency key with each request.
	IdempotencyKey Guard = history.GuardIdempotency
	// Ask refuses an access unless the lock service, asked at that moment, has the access's grant on record as
	// the holder.
	Ask Guard = history.GuardAsk
	// Database stores the data in the lock's own database. The holder accesses them only over the connection
	// that holds the lock. The resource itself checks nothing.
	Database Guard = history.GuardDatabase
)

// Guards lists the names of the guards.
func Guards() []string {
	return []string{string(NoGuard), string(Fence), string(FenceWrites), string(Ask), string(Database), string(CompareAndSet), string(Match), string(IdempotencyKey)}
}

// Lacks returns what the guard needs and a lock lacks, as a phrase that follows the lock's name; "" if it lacks
// nothing.
func (g Guard) Lacks(lock clients.Info) string {
	switch {
	case (g == Fence || g == FenceWrites) && lock.Token == "":
		return "has no fencing token"
	case g == Ask && !lock.Ask:
		return "cannot be asked who holds it"
	case g == Database && !lock.Data:
		return "has no database for the data"
	}
	return ""
}

// admit reports whether the guard admits the access in this state of its key, as far as the resource itself can
// tell.
func (g Guard) admit(state *keyState, a Access) bool {
	switch g {
	case Fence, FenceWrites:
		if g == FenceWrites && !a.Write {
			return true
		}
		if a.Token < state.highest {
			return false
		}
		state.highest = a.Token
	case CompareAndSet:
		return !a.Write || a.Base == state.version
	case Match:
		if !a.Write {
			state.reader = a.Grant
		}
		return a.Grant == state.reader
	case IdempotencyKey:
		return !a.Write || !state.done[a.Element]
	}
	return true
}
