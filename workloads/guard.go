package workloads

import (
	"lockcheck/clients"
	"lockcheck/history"
)

// Guard is what the resource itself checks on each access.
type Guard string

const (
	NoGuard Guard = history.GuardNone
	// Fence refuses an access whose token is lower than the highest it has
	// seen. It advances on reads too: checked on writes only, a new owner could
	// read, the old owner's stale write be accepted, and the new owner's write
	// overwrite it.
	Fence Guard = history.GuardFence
	// FenceWrites is that mistake: a fence on writes only, past which reads go
	// without being seen. It is here to show what it lets through.
	FenceWrites Guard = history.GuardFenceWrites
	// CompareAndSet refuses a write that was computed from a stale version.
	CompareAndSet Guard = history.GuardVersions
	// Match refuses a write unless the attempt of its writer was the last to read: a read
	// leaves its unique value at the resource, and a write is accepted while it is there
	// ("Is Redlock safe?", Sanfilippo 2016: check-and-set with the random value). That value has no order:
	// a late read of a former holder takes the place of the rightful one's.
	Match Guard = history.GuardMatch
	// IdempotencyKey refuses a write of an element that was written before, as a service
	// does that is given a key with each request.
	IdempotencyKey Guard = history.GuardIdempotency
	// Ask refuses an access unless the lock service, asked at that moment, has its grant
	// on record as the holder.
	Ask Guard = history.GuardAsk
	// Database keeps the data in the lock's own database, where the holder reaches them
	// only by the connection that holds the lock. The resource itself checks nothing.
	Database Guard = history.GuardDatabase
)

// Guards lists the guards by name.
func Guards() []string {
	return []string{string(NoGuard), string(Fence), string(FenceWrites), string(Ask), string(Database), string(CompareAndSet), string(Match), string(IdempotencyKey)}
}

// Lacks says, in words that go on after its name, what a lock lacks that the guard
// needs; "" for nothing.
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

// admit says whether the guard lets the access at this state of its key pass, as far as
// the resource can tell by itself.
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
