package checker

// Meaning says in a sentence what a verdict says of a run or a property.
func (v Verdict) Meaning() string {
	switch v {
	case Valid:
		return "Nothing that is required was violated, the faults were real, and enough was done to tell."
	case Violation:
		return "A required property was violated. What else went wrong in the run does not excuse it."
	case Undecided:
		return "Not enough was seen to say: too few updates, a fault that was never proven and exercised, an interruption."
	case Broken:
		return "The run itself failed, or the checkers contradict each other: it says nothing of the lock."
	case NotApplicable:
		return "Of a property only: the lock or the workload has nothing that could be judged, as a lock without tokens."
	}
	return ""
}

// Meaning says in a sentence what a property asks for.
func (p Property) Meaning() string {
	switch p {
	case MutualExclusion:
		return "No two workers hold the same lock at the same time."
	case NoExpiredGrant:
		return "No grant arrives when the service itself no longer has the claim on record."
	case NoWrongRelease:
		return "No release succeeds while another worker holds the lock."
	case NoStaleWrite:
		return "The resource accepts no write of a holder after a later one has used the data."
	case NoLostUpdate:
		return "Every acknowledged update is in the final state, once, and nothing else is."
	case FencingOrder:
		return "The tokens of a lock increase with each grant."
	case Linearizability:
		return "Some order of all operations explains the answers of the service: the second opinion."
	case Liveness:
		return "The lock can be acquired again within its lease and slack, and nobody gets errors only while others are served."
	case FaultEvidence:
		return "Each kind of fault that was asked for was proven by its target and met somebody at least once."
	case Assumptions:
		return "The run came to its end, did its work, and the checkers agree with each other."
	}
	return ""
}

// Cause is one of the Cause constants with what it rests on.
type Cause struct {
	Name  string
	Shows string // by what a history shows it
	// Inherent: no lock with leases can prevent it.
	Inherent bool
}

// Causes lists all causes that a violation can be put down to.
func Causes() []Cause {
	return []Cause{
		{CausePaused, "its lease can have ended before the next grant, and it was stopped between the end of its promise and that grant", true},
		{CauseCutOff, "its lease, or without one its connection, can have ended before the next grant, and it was out of reach by then", true},
		{CauseOutlasted, "its lease can have ended before the next grant, and it was healthy then", true},
		{CauseInFlight, "the resource accepted it after its worker had given the lock up, or a fault held it back", true},
		{CauseDeadGrant, "the service no longer had its claim on record", false},
		{CauseRobbed, "a release of another worker was accepted during the hold", false},
		{CauseClock, "its lease cannot have ended, and a server's clock was moved forward while it held the lock", false},
		{CauseServerLost, "its lease cannot have ended, and a server had been killed or emptied", false},
		{CauseServerFault, "its lease cannot have ended, and a server was stopped, cut off or hard to reach", false},
		{CauseTwice, "nothing can have ended the grant, and no server was under a fault", false},
		{CauseUnexplained, "the service says that it ended the grant, or no accepted write overwrote the update, and nothing else says why", false},
	}
}
