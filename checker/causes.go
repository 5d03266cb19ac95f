package checker

// Cause is one of the Cause constants.
type Cause struct {
	Name string
	// Inherent means that no lock with leases can prevent the cause.
	Inherent bool
}

// Causes lists every cause that a violation can be attributed to.
func Causes() []Cause {
	return []Cause{
		{CausePaused, true},
		{CauseCutOff, true},
		{CauseUnrenewed, true},
		{CauseOutlasted, true},
		{CauseValidity, false},
		{CauseInFlight, true},
		{CauseExpiredGrant, false},
		{CauseReleasedByOther, false},
		{CauseLateRelease, false},
		{CauseRenewedByOther, false},
		{CauseClock, false},
		{CauseServerLost, false},
		{CauseServerFault, false},
		{CauseTwice, false},
		{CauseUnlocked, true},
		{CauseUnexplained, false},
	}
}
