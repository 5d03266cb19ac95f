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

// Cause is one of the Cause constants with what it rests on.
type Cause struct {
	Name  string
	Shows string // by what a history shows it
	// Inherent: no lock with leases can prevent it.
	Inherent bool
}

// Causes lists all causes that a violation can be attributed to.
func Causes() []Cause {
	return []Cause{
		{CausePaused, "its lease can have ended before the next grant, and it was stopped between the end of its validity and that grant", true},
		{CauseCutOff, "its lease, or without one its connection, can have ended before the next grant, and it was out of reach by then", true},
		{CauseOutlasted, "its lease can have ended before the next grant, and it was healthy then", true},
		{CauseValidity, "its lease can have ended before the next grant, and its client said that the lock was valid beyond that grant", false},
		{CauseInFlight, "the resource accepted it after its worker had given the lock up, or a fault held it back", true},
		{CauseExpiredGrant, "the service no longer had the grant on record", false},
		{CauseReleasedByOther, "a release of another worker was accepted during the hold", false},
		{CauseRenewedByOther, "its lease can have ended before the next grant, and a renewal succeeded after that grant", false},
		{CauseClock, "its lease cannot have ended, and a server's clock was moved forward, or ran fast, while it held the lock", false},
		{CauseServerLost, "a server had been killed or emptied, and its lease cannot have ended, or the lock lasts as long as a connection", false},
		{CauseServerFault, "its lease cannot have ended, and a server was stopped, cut off or hard to reach", false},
		{CauseTwice, "nothing can have ended the grant, and no server was under a fault", false},
		{CauseUnlocked, "its worker was told that its acquire had failed, or had no answer to it, and went on all the same", true},
		{CauseUnexplained, "the service says that it ended the grant, or no accepted write overwrote the update, or who did shared the lock by right, and nothing else says why", false},
	}
}
