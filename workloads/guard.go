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
	// CompareAndSet refuses a write that was computed from a stale version.
	CompareAndSet Guard = "cas"
)

// Guards lists the guards by name.
func Guards() []string {
	return []string{string(NoGuard), string(Fence), string(CompareAndSet)}
}

// admit says whether the guard lets the access at this state of its key pass.
func (g Guard) admit(state *keyState, a Access) bool {
	switch g {
	case Fence:
		if a.Token < state.highest {
			return false
		}
		state.highest = a.Token
	case CompareAndSet:
		return !a.Write || a.Base == state.version
	}
	return true
}
