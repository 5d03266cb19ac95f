package workloads

// Guard is what the resource itself checks on each access.
type Guard string

const (
	NoGuard Guard = "none"
	// Fence refuses an access whose token is lower than the highest it has
	// seen. It advances on reads too: checked on writes only, a new owner could
	// read, the old owner's stale write be accepted, and the new owner's write
	// overwrite it.
	Fence Guard = "fence"
	// FenceWrites is that mistake: a fence on writes only, past which reads go
	// without being noticed. It is here to show what it lets through.
	FenceWrites Guard = "fence-writes"
	// CompareAndSet refuses a write that was computed from a stale version.
	CompareAndSet Guard = "cas"
)

// Guards lists the guards by name.
func Guards() []string {
	return []string{string(NoGuard), string(Fence), string(FenceWrites), string(CompareAndSet)}
}

// NeedsTokens says whether the guard compares fencing tokens.
func (g Guard) NeedsTokens() bool { return g == Fence || g == FenceWrites }

// admit says whether the guard lets the access at this state of its key pass.
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
	}
	return true
}
