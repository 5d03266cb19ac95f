package history

// Words of the contract between the processes that act and the checkers, in addition to the kinds of faults
// (see Fault.Kind).

// How a worker was notified that its lock is gone, as found in Event.Error of a Lost event.
const (
	ByService  = "service"  // a renewal failed, or the client library notified
	ByDeadline = "deadline" // the worker checked its own deadline
)

// Moments that a fault can wait for, as found in Fault.Moment. The first four are calls in flight.
const (
	MomentAcquiring   = "acquiring"
	MomentUncontended = "uncontended" // an acquire of a lock that is free by the record so far
	MomentRenewing    = "renewing"
	MomentReleasing   = "releasing"
	MomentHolding     = "holding"  // a worker has read in its critical section
	MomentQueued      = "queued"   // a worker waits while another one holds the lock
	MomentLost        = "lost"     // a worker knows, or could know, that its lock is gone
	MomentFailover    = "failover" // the servers have lost their leader, or have just elected a new one
	MomentRequest     = "request"  // a packet of a worker to a server is held back
	MomentAnswer      = "answer"   // a packet of a server to a worker is held back
)

// CallOf returns the operation that is in flight at a moment; "" if the moment is no call.
func CallOf(moment string) Function {
	switch moment {
	case MomentAcquiring, MomentUncontended:
		return Acquire
	case MomentRenewing:
		return Renew
	case MomentReleasing:
		return Release
	}
	return ""
}

// Busy is Event.Error of an Acquire that was refused because another grant holds the lock.
const Busy = "busy"

// Names of guards, as found in Header.Guard.
const (
	GuardNone        = "none"
	GuardFence       = "fence"
	GuardFenceWrites = "fence-writes"
	GuardAsk         = "ask"
	GuardDatabase    = "database"
	GuardVersions    = "cas"
	GuardMatch       = "match"
	GuardIdempotency = "idempotency-key"
)

// Features of a lock, as found in Header.Supports.
const (
	SupportsToken = "token" // it hands out fencing tokens
	SupportsAsk   = "ask"   // its service can be asked who holds it
	SupportsData  = "data"  // its database can keep the data
	SupportsRenew = "renew" // its holder can extend the lease
)

// Names of workloads, as found in Header.Workload.
const (
	WorkloadSet       = "set"
	WorkloadCounter   = "counter"
	WorkloadMutex     = "mutex"
	WorkloadJobs      = "jobs"
	WorkloadSemaphore = "semaphore"
	// WorkloadReadWrite is the only workload with shared grants.
	WorkloadReadWrite = "read-write"
	// WorkloadElection is the set workload with several updates in each hold.
	WorkloadElection = "election"
)

// WritesNothing says that the workers of a workload only read.
func WritesNothing(workload string) bool {
	return workload == WorkloadMutex || workload == WorkloadSemaphore
}

// LockNone is Header.Lock of the lock that excludes nobody.
const LockNone = "none"
