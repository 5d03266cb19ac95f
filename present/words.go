package present

import "lockcheck/checker"

// Verdict explains a verdict on a run or a property; "" for an unknown verdict.
func Verdict(v checker.Verdict) string {
	switch v {
	case checker.Valid:
		return "No required property was violated, the faults were real, and enough was done to tell."
	case checker.Violation:
		return "A required property was violated. What else went wrong in the run does not excuse it."
	case checker.Undecided:
		return "The run cannot tell: too few updates, a fault that was never proven and exercised, or an interruption."
	case checker.Broken:
		return "The run itself failed, or the checkers contradict each other: it says nothing about the lock."
	case checker.NotApplicable:
		return "Only of a property: the lock or the workload has nothing that could be judged, such as a lock without tokens."
	}
	return ""
}

// Property says what a property requires; "" for an unknown property.
func Property(p checker.Property) string {
	switch p {
	case checker.MutualExclusion:
		return "No two workers hold the same lock at the same time. No semaphore has more holders than permits."
	case checker.NoExpiredGrant:
		return "When a worker is told of a grant, the service still has that grant on record."
	case checker.NoWrongRelease:
		return "No release succeeds while another worker holds the lock."
	case checker.NoWrongRenewal:
		return "No renewal succeeds after another worker has been granted the lock."
	case checker.NoStaleWrite:
		return "The resource accepts no write of a holder after a later holder has used the data, and none without the lock."
	case checker.NoLostUpdate:
		return "Every acknowledged update is in the final state, once, and nothing else is. Of an application: who has read a key of the resource does not replace a version that it has not seen."
	case checker.RepeatableRead:
		return "A reader that shares the lock reads the same data to the end of its hold."
	case checker.Invariants:
		return "Each invariant of the app file holds whenever it is asked, as its kind says, and once more after the faults."
	case checker.ExactlyOnce:
		return "No replica does a piece of work that was done before."
	case checker.NoStaleEffect:
		return "No replica does work in a hold after another one has begun to hold the same key."
	case checker.FencingOrder:
		return "The tokens of a lock increase with each grant."
	case checker.Linearizability:
		return "Some order of all operations explains the answers of the service: the second opinion."
	case checker.Liveness:
		return "The lock can be acquired again within its lease and grace period, and no worker gets only errors while others are served."
	case checker.NoUntrueLoss:
		return "No worker is told that its lock is gone while it still has it."
	case checker.NoIdleLock:
		return "A released lock is granted in time (--handover, by default half a second) to a worker that asks for it. A fault excuses an idle lock until a lease after it. If it only cut workers off, for less than a lease, and none of them gave up, it excuses the lock for as long again as it lasted."
	case checker.PromptFailover:
		return "When a holder is stopped, cut off or killed, another worker that asks and reaches the servers is granted the lock within lease, grace period and 1 s."
	case checker.FaultEvidence:
		return "Each kind of fault that was asked for was proven by its target and exercised at least once."
	case checker.Assumptions:
		return "The run came to its end, did its work, and the checkers agree with each other."
	}
	return ""
}

// Quantity names a quantity by which sets of runs are compared. Results of older versions have these words
// themselves.
func Quantity(q checker.Quantity) string {
	switch q {
	case checker.LostUpdates:
		return "lost updates"
	case checker.StaleWrites:
		return "stale writes"
	case checker.GoneAtRelease:
		return "locks gone at release"
	case checker.ViolatingFaults:
		return "faults with a violation"
	case checker.WaitP99:
		return "wait p99"
	case checker.FailoverP99:
		return "failover p99"
	}
	return string(q)
}

// Cause explains a cause of violations by what the history shows. "It" is the earlier holder.
func Cause(name string) string {
	switch name {
	case checker.CausePaused:
		return "its lease may have ended before the next grant, and it was stopped between the end of its validity and that grant, by a stop that began before the lease was certainly over"
	case checker.CauseCutOff:
		return "its lease (without one, its connection) may have ended before the next grant, and it was out of reach by then, since before the lease was certainly over"
	case checker.CauseUnrenewed:
		return "its client renews a session in the background, and sent the last answered renewal a lease or more before the next grant"
	case checker.CauseOutlasted:
		return "its lease may have ended before the next grant, and no stop or cut began before the lease was certainly over"
	case checker.CauseValidity:
		return "its lease may have ended before the next grant, and its client said that the lock was valid beyond that grant"
	case checker.CauseInFlight:
		return "the resource accepted the write after its worker had given the lock up, or a fault held the write back"
	case checker.CauseExpiredGrant:
		return "the service no longer had the grant on record"
	case checker.CauseReleasedByOther:
		return "a release of another worker was accepted during the hold, or the service showed that another worker, which did not hold the lock, removed its key"
	case checker.CauseLateRelease:
		return "an earlier release of the same grant got no answer"
	case checker.CauseRenewedByOther:
		return "its lease may have ended before the next grant, and a renewal succeeded after that grant"
	case checker.CauseClock:
		return "its lease cannot have ended, and a server's clock moved forward or ran fast, or a worker's clock was wrong"
	case checker.CauseServerLost:
		return "a server had been killed or emptied, and its lease cannot have ended, or the lock lasts as long as a connection"
	case checker.CauseServerFault:
		return "its lease cannot have ended, and a server was stopped, cut off, hard to reach, replaced as leader or on a faulty disk"
	case checker.CauseTwice:
		return "nothing could have ended the grant, and no server was under a fault"
	case checker.CauseUnlocked:
		return "its worker was told that its acquire had failed, or had no answer to it, and went on all the same"
	case checker.CauseUnexplained:
		return "the service says that it ended the grant, or no accepted write overwrote the update, or who did shared the lock by right, and nothing else says why"
	}
	return applicationCause(name)
}
