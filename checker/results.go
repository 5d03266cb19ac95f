package checker

import (
	"time"

	"lockcheck/internal/stats"
)

// Schema is the version of the JSON form of Results.
const Schema = 3

// Verdict of a property or of a run.
type Verdict string

const (
	Valid     Verdict = "valid"
	Violation Verdict = "violation"
	Undecided Verdict = "undecided" // not enough was seen to say
	Broken    Verdict = "broken"    // the run, or lockcheck, failed
	// NotApplicable is the verdict of a property that the lock or workload
	// does not have: a lock without tokens has no fencing order to violate.
	NotApplicable Verdict = "not-applicable"
)

// Results is everything that was found in one history, and what it amounts to. The checkers
// leave the fields of words empty; package present fills them.
type Results struct {
	Schema   int     `json:"schema"`
	Verdict  Verdict `json:"verdict"`
	Sentence string  `json:"sentence,omitempty"` // words: why that is the verdict
	// Required lists the properties that the verdict rests on.
	Required []Property `json:"required"`
	Findings []Finding  `json:"findings"` // one a property, in a fixed order

	// Incidents is how many causes the overlaps, stale writes and lost updates have: all that
	// one fault let happen is one, and where no fault explains it, all that happened to one
	// grant. It is 0 in results of old, too.
	Incidents  int64          `json:"incidents"`
	Operations Operations     `json:"operations"`
	Overlaps   OverlapSummary `json:"overlaps"`
	Updates    UpdateSummary  `json:"updates"`
	// Losses are the lost ones of the acknowledged updates in each of the units that
	// Updates.LossInterval is over; nil in results of old.
	Losses            []stats.Count           `json:"losses,omitempty"`
	Fence             FenceSummary            `json:"fence"`
	Orphans           OrphanSummary           `json:"orphans"`
	Noticed           Noticed                 `json:"noticed,omitzero"`
	Failovers         FailoverSummary         `json:"failovers"`
	LossNotifications LossNotificationSummary `json:"loss_notifications"`
	Measures          Measures                `json:"measures"`
	Faults            []FaultCoverage         `json:"faults"`
	// Application has the figures of a test of an application; nil for one of a lock.
	Application *ApplicationSummary `json:"application,omitempty"`
	Holds       []Hold              `json:"-"` // for pictures; large
	// Interrupted: the run was ended early from outside.
	Interrupted bool `json:"interrupted,omitempty"`
	// Clients are the names and versions of clients of a lock of the user's own, as they
	// say; nil for other locks.
	Clients []string `json:"clients,omitempty"`
	// Begin and End are the first and last time in the history, in ns.
	Begin int64 `json:"begin"`
	End   int64 `json:"end"`
}

// Finding returns the judgement of a property; the zero Finding if there is none.
func (r Results) Finding(p Property) Finding {
	for _, f := range r.Findings {
		if f.Property == p {
			return f
		}
	}
	return Finding{}
}

// Finding is the judgement of one property.
type Finding struct {
	Property Property `json:"property"`
	Verdict  Verdict  `json:"verdict"`
	Required bool     `json:"required"`
	// Tolerated: it was violated, but a guard is there to make that harmless.
	Tolerated bool   `json:"tolerated,omitempty"`
	Facts     []Fact `json:"facts,omitempty"`   // that the verdict rests on, the most telling first
	Summary   string `json:"summary,omitempty"` // words: the facts
	// Violations holds the first MaxListed of Total.
	Violations []Incident `json:"violations,omitempty"`
	Total      int        `json:"total"`
	// Causes says how many violations each of the Cause constants explains; nil where
	// causes are not looked for.
	Causes map[string]int64 `json:"causes,omitempty"`
}

// Incident is one violation of a property: what, when, who.
type Incident struct {
	Kind    IncidentKind    `json:"kind,omitempty"` // "" in results of old
	Figures IncidentFigures `json:"figures,omitzero"`
	Key     string          `json:"key,omitempty"`
	From    int64           `json:"from"` // ns
	To      int64           `json:"to,omitempty"`
	What    string          `json:"what,omitempty"`  // words: what happened
	Class   string          `json:"class,omitempty"` // such as DoubleGrant or ClassLost
	// Cause is one of the Cause constants, and Explanation what the history shows of it; zero
	// where causes are not looked for. LastHold explains KindStuckKey.
	Cause       string       `json:"cause,omitempty"`
	Explanation *Explanation `json:"explanation,omitempty"`
	LastHold    *LastHold    `json:"last_hold,omitempty"`
	// Seen is what the history shows of an invariant of an application that did not hold; nil for
	// other incidents.
	Seen *Seen  `json:"seen,omitempty"`
	Why  string `json:"why,omitempty"` // words: the explanation
	// Workers involved, earlier first, and their grants.
	Workers []string `json:"workers,omitempty"`
	Grants  []string `json:"grants,omitempty"`
	Element int64    `json:"element,omitempty"`
	Faults  []string `json:"faults,omitempty"` // ids of the faults in force
}

// Hold is the time in which a worker believed that it had the lock.
type Hold struct {
	Key     string
	Worker  string
	Grant   string
	Token   uint64
	Invoked int64 // acquire invoke, ns
	Start   int64 // acquire ok
	End     int64 // release invoke, lost, or last event of it
	// Deadline is the end of the validity, renewals included; equal to End where
	// the lock gives none.
	Deadline int64
	// LeaseEnd is the earliest time at which the service may have ended the
	// lease by itself; math.MaxInt64 for a lock without lease.
	LeaseEnd int64
	// Ended says what ended it.
	Ended HoldEnd
}

// HoldEnd says what ended a hold.
type HoldEnd string

const (
	EndedByRelease    HoldEnd = "release"
	EndedAtRelease    HoldEnd = "discovered at release" // the release failed: the lock was gone
	EndedByLost       HoldEnd = "lost"                  // the client library notified
	EndedByDeadline   HoldEnd = "deadline"              // the worker's own check
	EndedWithoutTrace HoldEnd = "no further event"      // killed, or the history ends
)

// Operations counts what the workers did.
type Operations struct {
	Acquired      int64 `json:"acquired"`
	Busy          int64 `json:"busy"`           // refused, with or without the holder seen
	AcquireFailed int64 `json:"acquire_failed"` // certainly not acquired, for another reason
	Unknown       int64 `json:"unknown"`        // acquires without a known outcome
	Released      int64 `json:"released"`
	GoneAtRelease int64 `json:"gone_at_release"`
	Lost          int64 `json:"lost"` // holds that ended because the worker was notified
	Acknowledged  int64 `json:"acknowledged"`
}

// FailoverSummary tells how long locks took to pass on when their holders were
// stopped, cut off or ended, from the beginning of that, for longer than the lease. Locks
// that nobody asked for any more are not among them.
type FailoverSummary struct {
	Holders int64         `json:"holders"`
	Stuck   int64         `json:"stuck"` // of those, whose lock others asked for in vain
	Median  time.Duration `json:"median_ns"`
	Longest time.Duration `json:"longest_ns"`
}

// LossNotificationSummary tells whether holders learned that somebody else was granted their
// lock while they held it.
type LossNotificationSummary struct {
	Replaced  int64 `json:"replaced"`
	Notified  int64 `json:"notified"`   // by the service or by their deadline, before they released
	AtRelease int64 `json:"at_release"` // by a release that failed
	Never     int64 `json:"never"`
	// Latest is the longest time from the next grant until one was notified.
	Latest time.Duration `json:"latest_ns"`
}

// OverlapSummary tells the two kinds of overlap apart: they are never added up
// into one number without saying so.
type OverlapSummary struct {
	DoubleGrants    int64 `json:"double_grants"`
	UsesAfterExpiry int64 `json:"uses_after_expiry"`
	// Unclassified are those of a history whose lease is not known.
	Unclassified   int64 `json:"unclassified,omitempty"`
	EarlierHealthy int64 `json:"earlier_healthy"`
	EarlierPaused  int64 `json:"earlier_paused"`
	EarlierCutOff  int64 `json:"earlier_cut_off"`
	// Of the double grants, how many each state of the earlier holder had; the
	// rest were uses after expiry.
	DoubleGrantsHealthy int64 `json:"double_grants_healthy"`
	DoubleGrantsPaused  int64 `json:"double_grants_paused"`
	DoubleGrantsCutOff  int64 `json:"double_grants_cut_off"`

	Longest time.Duration `json:"longest_ns"`
	Sum     time.Duration `json:"sum_ns"`
}

// Total number of overlaps of all kinds.
func (o OverlapSummary) Total() int64 { return o.DoubleGrants + o.UsesAfterExpiry + o.Unclassified }

// Count returns the overlaps of a class, DoubleGrant or UseAfterExpiry, in which
// the earlier holder was healthy, paused or cut off; "" stands for any.
func (o OverlapSummary) Count(class, earlier string) int64 {
	all, doubleGrants := o.Total(), o.DoubleGrants
	if earlier != "" {
		all, doubleGrants = o.earlier(HolderState(earlier))
	}
	switch class {
	case "":
		return all
	case DoubleGrant:
		return doubleGrants
	case UseAfterExpiry:
		return all - doubleGrants - o.Unclassified
	}
	return 0
}

func (o OverlapSummary) earlier(state HolderState) (all, doubleGrants int64) {
	switch state {
	case HolderHealthy:
		return o.EarlierHealthy, o.DoubleGrantsHealthy
	case HolderPaused:
		return o.EarlierPaused, o.DoubleGrantsPaused
	case HolderCutOff:
		return o.EarlierCutOff, o.DoubleGrantsCutOff
	}
	return 0, 0
}

// UpdateSummary counts acknowledged updates and what became of them.
type UpdateSummary struct {
	Acknowledged int64 `json:"acknowledged"`
	Lost         int64 `json:"lost"`
	// LossEvents is how many writes lost updates, each of them one or many; those that no
	// write explains count one each.
	LossEvents int64 `json:"loss_events"`
	Duplicated int64 `json:"duplicated"`
	Phantom    int64 `json:"phantom"`
	// Repeated is how many jobs were done again that had been done.
	Repeated int64 `json:"repeated,omitempty"`
	LossInterval
}

// FenceSummary counts what the guard of the resource did.
type FenceSummary struct {
	RefusedReads  int64 `json:"refused_reads"`
	RefusedWrites int64 `json:"refused_writes"`
	// Unanswered are those of both that were refused because the lock service, which the
	// guard asked, did not answer.
	Unanswered int64 `json:"unanswered,omitempty"`
}

// OrphanSummary tells what became of the locks of killed holders.
type OrphanSummary struct {
	Killed int64 `json:"killed"` // holds whose worker was killed
	Stuck  int64 `json:"stuck"`  // of them, never granted to anybody again
	// Longest is the time from a death to the next grant, or to the end of all
	// attempts if there was none; Victim is the worker that died then.
	Longest time.Duration `json:"longest_ns"`
	Victim  string        `json:"victim,omitempty"`
}

// FaultCoverage says of one injected fault whether it was real and mattered.
type FaultCoverage struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Role    string   `json:"role,omitempty"`
	Targets []string `json:"targets"`
	Peers   []string `json:"peers,omitempty"`
	// Moment is what it waited for, and Actor the worker of which it was; "" for neither.
	Moment    string `json:"moment,omitempty"`
	Actor     string `json:"actor,omitempty"`
	Applied   bool   `json:"applied"`
	Proven    bool   `json:"proven"`
	Exercised bool   `json:"exercised"`
	// Outlasted: it kept a holder stopped beyond its validity.
	Outlasted bool `json:"outlasted,omitempty"`
	Healed    bool `json:"healed"` // proven healed
	// Missed is why it does not count, and Said what the nemesis says of that; "" if it counts.
	Missed MissReason `json:"missed,omitempty"`
	Said   string     `json:"said,omitempty"`
	Reason string     `json:"reason,omitempty"` // words: why it does not count
	// Begin and End bracket the fault generously: from before it was applied to after
	// it was healed, ns. Both 0 if it never was applied.
	Begin int64 `json:"begin"`
	End   int64 `json:"end"`
	// Since is how long after the event that it waited for it took effect; 0 if it
	// waited for none.
	Since    time.Duration `json:"since_ns,omitempty"`
	Evidence []string      `json:"evidence,omitempty"`
}

// Counts says whether the fault is part of what a verdict rests on: it was proven by its
// target, and met somebody.
func (f FaultCoverage) Counts() bool { return f.Applied && f.Proven && f.Exercised }

// MaxListed is how many violations of one property are kept in full.
const MaxListed = 100
