package application

import "lockcheck/checker"

// Facts about invariants.
const (
	FactNoInvariants    checker.FactKind = "no-invariants"
	FactViolated        checker.FactKind = "invariant-violated"         // Keys: its name; N times; At
	FactNeverAnswered   checker.FactKind = "invariant-never-answered"   // Keys; Said
	FactFinalUnanswered checker.FactKind = "invariant-final-unanswered" // Keys; Said
	FactNothingAccepted checker.FactKind = "invariant-nothing-accepted" // Keys: kept has nothing to compare with
	FactTooEarly        checker.FactKind = "invariant-asked-too-early"  // Keys, Limit: eventually had more time
	FactHealUnknown     checker.FactKind = "invariant-heal-unknown"     // Keys; Faults: nobody knows when they were over
	FactHeld            checker.FactKind = "invariants-held"            // N answers of Of invariants
	FactLongestGap      checker.FactKind = "invariants-longest-gap"     // Keys, At, Length, Faults
	FactUnknownAnswers  checker.FactKind = "invariants-unknown-answers" // N of Of questions
)

// Facts about what replicas said.
const (
	FactUnsaid          checker.FactKind = "unsaid"           // Said: the function of lines that the app file does not describe
	FactEndsUnsaid      checker.FactKind = "ends-unsaid"      // of holds
	FactNoHold          checker.FactKind = "no-hold"          //
	FactFewHolders      checker.FactKind = "few-holders"      // N replicas ever held
	FactHoldersOverlap  checker.FactKind = "holders-overlap"  // N
	FactHoldersApart    checker.FactKind = "holders-apart"    // N holds
	FactStaleEffects    checker.FactKind = "stale-effects"    // N
	FactEffectsCurrent  checker.FactKind = "effects-current"  // N
	FactNoEffectHeld    checker.FactKind = "no-effect-held"   // none was done in a hold
	FactTokensUnordered checker.FactKind = "tokens-unordered" // N, of no two of which the order is certain
	FactTokensLate      checker.FactKind = "tokens-late"      // N were said after a greater one, perhaps by a late line
	FactDoneTwice       checker.FactKind = "done-twice"       // N
	FactDoneOnce        checker.FactKind = "done-once"        // N
	FactNothingDone     checker.FactKind = "nothing-done"     //
)

// Facts about what was written to the resource.
const (
	FactNoResource      checker.FactKind = "no-resource"      //
	FactOverwritten     checker.FactKind = "overwritten"      // N of Of replaced values had not been seen by the replacing client
	FactReplacedSeen    checker.FactKind = "replaced-seen"    // N values were replaced, each by a client that had seen it
	FactReplacedBlind   checker.FactKind = "replaced-blind"   // N values were replaced by a client that had not read the key, or that sent If-Match: *
	FactNothingReplaced checker.FactKind = "nothing-replaced" // no client replaced a value after reading the key
	FactRefused         checker.FactKind = "resource-refused" // N requests
)

// Facts about the run itself.
const (
	FactNoWork         checker.FactKind = "no-work"      // N of Of effects, and nothing else shows that anything was done
	FactFewReplicas    checker.FactKind = "few-replicas" // N started
	FactNothingJudged  checker.FactKind = "nothing-judged"
	FactLinesLost      checker.FactKind = "lines-lost"      // Workers: the replica, or the load; Said
	FactWorkUnanswered checker.FactKind = "work-unanswered" // N times asked; Said
	FactWorked         checker.FactKind = "worked"          // figures are in Results.Application
)

// Kinds of incidents.
const (
	KindRepeatedWork checker.IncidentKind = "repeated-work"     // Seen: one row of once
	KindNever        checker.IncidentKind = "never-failed"      // Seen
	KindAlways       checker.IncidentKind = "always-failed"     // Seen
	KindNotKept      checker.IncidentKind = "not-kept"          // Seen
	KindEventually   checker.IncidentKind = "eventually-failed" // Seen; Figures.Length after the last fault

	KindHoldersOverlap checker.IncidentKind = "holders-overlap" // Figures.Holder
	KindStaleEffect    checker.IncidentKind = "stale-effect"    // Figures.Holder, Length, ID
	KindDoneTwice      checker.IncidentKind = "done-twice"      // Figures.ID

	// KindOverwritten: Overwrite; Workers: the overwriting client and the client of the first lost update; Figures.N updates, Next, Holder.
	KindOverwritten checker.IncidentKind = "update-overwritten"
)

// Causes of what effects and holds violate.
const (
	// CauseOverlappingHolders: the work was done twice by two who held the lock at once.
	CauseOverlappingHolders = "done by two holders at once"
	// CauseDecidedBeforeLock: the two holds are apart, so the lock did what it is for. The second holder decided on
	// what it had read before it held the lock, or did not look.
	CauseDecidedBeforeLock = "decided before it held the lock"
	// CauseWithoutLock: one of the two was done outside of any hold of its replica.
	CauseWithoutLock = "done without the lock"

	// What kept one of two holders from noticing.
	CauseHolderPaused = "a holder was paused"
	CauseHolderCutOff = "a holder was cut off"
	// CauseHolderOutlasted: the hold had lasted for longer than the lease that the app file names.
	CauseHolderOutlasted = "a hold outlasted the lease"
	CauseHolderHealthy   = "no fault hit the holders"
)

// Causes lists them.
func Causes() []string {
	return []string{CauseOverlappingHolders, CauseDecidedBeforeLock, CauseWithoutLock, CauseHolderPaused, CauseHolderCutOff, CauseHolderOutlasted, CauseHolderHealthy}
}
