package history

// Words of the contract between those who act and those who judge, next to the kinds of
// faults (see Fault.Kind).

// How a worker was notified that its lock is gone, as found in Event.Error of a Lost event.
const (
	ByService  = "service"  // a renewal failed, or the client library notified
	ByDeadline = "deadline" // the worker looked at its own deadline
)

// Moments that a fault can wait for, as found in Fault.Moment. The first four are calls in
// flight.
const (
	MomentAcquiring   = "acquiring"
	MomentUncontended = "uncontended" // an acquire of a lock that nobody has by the record so far
	MomentRenewing    = "renewing"
	MomentReleasing   = "releasing"
	MomentHolding     = "holding"  // a worker has read in its critical section
	MomentQueued      = "queued"   // it waits while another one holds the lock
	MomentLost        = "lost"     // it knows, or could know, that its lock is gone
	MomentFailover    = "failover" // the servers have lost their leader, or a new one has just begun
)

// CallOf returns the operation that is in flight at a moment; "" at one that is no call.
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
	GuardMatch       = "match"
	GuardIdempotency = "idempotency-key"
)

// What a lock supports, as found in Header.Supports.
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
	// WorkloadReadWrite is the only one in which some of the grants are shared.
	WorkloadReadWrite = "read-write"
	// WorkloadElection is the set, updated several times in each hold.
	WorkloadElection = "election"
)

// WritesNothing says of a workload that its workers only read.
func WritesNothing(workload string) bool {
	return workload == WorkloadMutex || workload == WorkloadSemaphore
}

// LockNone is Header.Lock of the lock that keeps nobody out.
const LockNone = "none"
