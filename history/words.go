package history

// Words of the contract between those who act and those who judge, next to the kinds of
// faults (see Fault.Kind).

// How a worker was notified that its lock is gone, as found in Event.Error of a Lost event.
const (
	ByService  = "service"  // a renewal failed, or the client library notified
	ByDeadline = "deadline" // the worker looked at its own deadline
)

// Busy is Event.Error of an Acquire that another grant stood in the way of.
const Busy = "busy"

// Names of guards, as found in Header.Guard.
const (
	GuardNone        = "none"
	GuardFence       = "fence"
	GuardFenceWrites = "fence-writes"
	GuardAsk         = "ask"
	GuardDatabase    = "database"
	GuardVersions    = "cas"
)

// Names of workloads, as found in Header.Workload.
const (
	WorkloadSet     = "set"
	WorkloadCounter = "counter"
	WorkloadMutex   = "mutex"
)

// LockNone is Header.Lock of the lock that keeps nobody out.
const LockNone = "none"
