package remedies

import (
	"slices"

	"lockcheck/checker"
	"lockcheck/checker/application"
	"lockcheck/history"
)

// Names for what went wrong in an application when only an invariant, and no known cause, shows it.
const (
	DoneTwice    = "work was done more than once"
	NotKept      = "accepted work is missing"
	NotRecovered = "the application did not recover in time"
	// Overwritten is a lost update in the resource.
	Overwritten = "an update was overwritten unseen"
)

// CausesOfApplication lists what went wrong in a test of an application, as far as the verdict rests on it:
// the causes of violations or, if there are none, what the violated invariants mean.
func CausesOfApplication(r checker.Results) []string {
	var causes []string
	add := func(cause string) {
		if cause != "" && !slices.Contains(causes, cause) {
			causes = append(causes, cause)
		}
	}
	for _, f := range r.Findings {
		if f.Verdict != checker.Violation || !f.Required {
			continue
		}
		for _, i := range f.Violations {
			add(i.Cause)
		}
		if f.Property == checker.NoLostUpdate {
			add(Overwritten)
		}
	}
	if len(causes) > 0 {
		return causes // causes say more than the invariants
	}
	for _, i := range r.Finding(checker.Invariants).Violations {
		if i.Seen != nil {
			add(ofInvariants()[i.Seen.Invariant])
		}
	}
	return causes
}

func ofInvariants() map[string]string {
	return map[string]string{history.InvariantOnce: DoneTwice, history.InvariantKept: NotKept, history.InvariantEventually: NotRecovered}
}

// ForApplication lists what to change in an application against one of its causes, the most effective change
// first. No flag of lockcheck can try these changes.
func ForApplication(cause string) []Advice {
	key := Advice{Remedy: UniqueKey, Effect: Contains, Why: "the database refuses the second one, whoever does it and whenever"}
	fence := Advice{Remedy: TermInWhere, Effect: Contains, Why: "the database refuses a holder that was replaced; the lock must hand out tokens that grow"}
	external := Advice{Remedy: ExternalKey, Effect: Contains, Why: "no lock keeps a payment or a mail from being sent twice; the other side can"}
	again := Advice{Remedy: ReadUnderLock, Effect: Prevents, Why: "what another replica did until then is visible; what was read before the lock may be old"}
	owner := Advice{Remedy: OwnerChecked, Effect: Prevents, Why: "a janitor, a waiter that gave up or another thread then frees no lock but its own"}
	longer := Advice{Remedy: LongerLease, Effect: Rarer, Why: "a pause within the longer lease is harmless; others wait as much longer for the lock of a dead replica"}
	return map[string][]Advice{
		application.CauseDecidedBeforeLock:  {again, key},
		application.CauseOverlappingHolders: {key, fence, external, longer},
		application.CauseHolderPaused:       {fence, key, external, longer},
		application.CauseHolderCutOff:       {fence, key, external, longer},
		application.CauseHolderOutlasted:    {fence, key, external, longer},
		application.CauseHolderHealthy:      {owner, key, fence},
		application.CauseWithoutLock:        {again, key},
		DoneTwice:                           {key, again, external},
		Overwritten: {
			{Remedy: ReadUnderLock, Effect: Prevents, Why: "what is read and written back in one hold is not old, as long as the hold lasts"},
			{Remedy: CAS, Effect: Contains, Why: "a write that names the version which it was computed from is refused if there is another one"},
			fence,
		},
		NotKept: {
			{Remedy: ConfirmStored, Effect: Prevents, Why: "what is confirmed before it is committed is lost with the replica"},
		},
		NotRecovered: {
			{Remedy: RepairAtStart, Effect: Prevents, Why: "a replica that finds a state which it does not expect, and stops, never recovers"},
			{Remedy: ReleaseAlways, Effect: Prevents, Why: "a path that returns without a release keeps everybody waiting for the whole lease"},
			{Remedy: ShorterLease, Effect: Rarer, Why: "the others wait for as long as the lease of a dead replica lasts"},
		},
	}[cause]
}
