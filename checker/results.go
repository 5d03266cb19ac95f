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
	Undecided Verdict = "undecided" // too little was seen to decide
	Broken    Verdict = "broken"    // the run, or lockcheck, failed
	// NotApplicable is the verdict of a property that the lock or workload does not have. For example, a lock
	// without tokens has no fencing order to violate.
	NotApplicable Verdict = "not-applicable"
)

// Results is everything that was found in one history, with its verdict. The checkers leave the fields marked
// "words" empty; package present fills them.
type Results struct {
	Schema   int     `json:"schema"`
	Verdict  Verdict `json:"verdict"`
	Sentence string  `json:"sentence,omitempty"` // words: the reason for the verdict
	// Required lists the properties that the verdict rests on.
	Required []Property `json:"required"`
	Findings []Finding  `json:"findings"` // one per property, in a fixed order

	// Incidents is the number of independent causes of the overlaps, stale writes and lost updates.
	// Everything that one fault caused counts once; without an explaining fault, everything that happened to
	// one grant counts once. It is also 0 in results of older versions.
	Incidents  int64          `json:"incidents"`
	Operations Operations     `json:"operations"`
	Overlaps   OverlapSummary `json:"overlaps"`
	Updates    UpdateSummary  `json:"updates"`
	// Losses are the acknowledged and the lost updates in each unit that Updates.LossInterval is computed
	// over; nil in results of older versions.
	Losses            []stats.Count           `json:"losses,omitempty"`
	Fence             FenceSummary            `json:"fence"`
	Orphans           OrphanSummary           `json:"orphans"`
	Noticed           Noticed                 `json:"noticed,omitzero"`
	Failovers         FailoverSummary         `json:"failovers"`
	LossNotifications LossNotificationSummary `json:"loss_notifications"`
	Measures          Measures                `json:"measures"`
	Faults            []FaultCoverage         `json:"faults"`
	// Application has the figures of a test of an application; nil for a test of a lock.
	Application *ApplicationSummary `json:"application,omitempty"`
	Holds       []Hold              `json:"-"` // for pictures; large
	// Interrupted means that the run was ended early from outside.
	Interrupted bool `json:"interrupted,omitempty"`
	// Clients are the names and versions that the clients of a user's own lock report; nil for other locks.
	Clients []string `json:"clients,omitempty"`
	// Begin and End are the first and last time in the history, in ns.
	Begin int64 `json:"begin"`
	End   int64 `json:"end"`
}

// Finding returns the finding of a property; the zero Finding if there is none.
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
	// Tolerated means that the property was violated, but a guard makes the violations harmless.
	Tolerated bool   `json:"tolerated,omitempty"`
	Facts     []Fact `json:"facts,omitempty"`   // reasons of the verdict, the most important first
	Summary   string `json:"summary,omitempty"` // words: the facts
	// Violations holds the first MaxListed of Total.
	Violations []Incident `json:"violations,omitempty"`
	Total      int        `json:"total"`
	// Causes counts the violations by Cause constant; nil for properties whose causes are not looked for.
	Causes map[string]int64 `json:"causes,omitempty"`
}

// Incident is one violation of a property: what happened, when and to whom.
type Incident struct {
	Kind    IncidentKind    `json:"kind,omitempty"` // "" in results of older versions
	Figures IncidentFigures `json:"figures,omitzero"`
	Key     string          `json:"key,omitempty"`
	From    int64           `json:"from"` // ns
	To      int64           `json:"to,omitempty"`
	What    string          `json:"what,omitempty"`  // words: what happened
	Class   string          `json:"class,omitempty"` // such as DoubleGrant or ClassLost
	// Cause is one of the Cause constants, and Explanation what the history shows of it. Both are zero for
	// properties whose causes are not looked for. LastHold explains KindStuckKey.
	Cause       string       `json:"cause,omitempty"`
	Explanation *Explanation `json:"explanation,omitempty"`
	LastHold    *LastHold    `json:"last_hold,omitempty"`
	// Seen is what the history shows of a violated invariant of an application; nil for other incidents.
	Seen *Seen `json:"seen,omitempty"`
	// Overwrite explains the overwritten update of an application; nil for other incidents.
	Overwrite *Overwrite `json:"overwrite,omitempty"`
	Why       string     `json:"why,omitempty"` // words: the explanation
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
	Invoked int64 // invocation of the acquire, ns
	Start   int64 // answer to the acquire
	End     int64 // invocation of the release, loss, or last event of the hold
	// Deadline is the end of the validity, renewals included. It equals End if the lock gives no validity.
	Deadline int64
	// LeaseEnd is the earliest time at which the service may have ended the lease by itself; math.MaxInt64
	// for a lock without lease.
	LeaseEnd int64
	Ended    HoldEnd
}

// HoldEnd says what ended a hold.
type HoldEnd string

const (
	EndedByRelease    HoldEnd = "release"
	EndedAtRelease    HoldEnd = "discovered at release" // the release failed: the lock was gone
	EndedByLost       HoldEnd = "lost"                  // the client library notified the worker
	EndedByDeadline   HoldEnd = "deadline"              // the worker's own check
	EndedWithoutTrace HoldEnd = "no further event"      // killed, or the history ends
)

// Operations counts what the workers did.
type Operations struct {
	Acquired      int64 `json:"acquired"`
	Busy          int64 `json:"busy"`           // refused because the lock was held, whether or not the holder was named
	AcquireFailed int64 `json:"acquire_failed"` // certainly not acquired, for another reason
	Unknown       int64 `json:"unknown"`        // acquires without a known outcome
	Released      int64 `json:"released"`
	GoneAtRelease int64 `json:"gone_at_release"`
	Lost          int64 `json:"lost"` // holds that ended because the worker was notified
	Acknowledged  int64 `json:"acknowledged"`
}

// FailoverSummary says how long locks took to pass on after their holders were stopped, cut off or killed for
// longer than the lease. The time counts from the beginning of that fault. Locks that no worker asked for
// afterwards are left out.
type FailoverSummary struct {
	Holders int64         `json:"holders"`
	Stuck   int64         `json:"stuck"` // of Holders, those whose lock others asked for in vain
	Median  time.Duration `json:"median_ns"`
	Longest time.Duration `json:"longest_ns"`
}

// LossNotificationSummary says whether holders learned that another worker had been granted their lock while
// they held it.
type LossNotificationSummary struct {
	Replaced  int64 `json:"replaced"`
	Notified  int64 `json:"notified"`   // by the service or by their deadline, before they released
	AtRelease int64 `json:"at_release"` // by a release that failed
	Never     int64 `json:"never"`
	// Latest is the longest time from the next grant until a holder was notified.
	Latest time.Duration `json:"latest_ns"`
}

// OverlapSummary separates the two kinds of overlap. They are never added up into one number without saying
// so.
type OverlapSummary struct {
	DoubleGrants    int64 `json:"double_grants"`
	UsesAfterExpiry int64 `json:"uses_after_expiry"`
	// Unclassified counts the overlaps of a history whose lease is not known.
	Unclassified   int64 `json:"unclassified,omitempty"`
	EarlierHealthy int64 `json:"earlier_healthy"`
	EarlierPaused  int64 `json:"earlier_paused"`
	EarlierCutOff  int64 `json:"earlier_cut_off"`
	// DoubleGrantsHealthy, -Paused and -CutOff split the double grants by the state of the earlier holder.
	// The rest of each state's overlaps were uses after expiry.
	DoubleGrantsHealthy int64 `json:"double_grants_healthy"`
	DoubleGrantsPaused  int64 `json:"double_grants_paused"`
	DoubleGrantsCutOff  int64 `json:"double_grants_cut_off"`

	Longest time.Duration `json:"longest_ns"`
	Sum     time.Duration `json:"sum_ns"`
}

// Total is the number of overlaps of all kinds.
func (o OverlapSummary) Total() int64 { return o.DoubleGrants + o.UsesAfterExpiry + o.Unclassified }

// Count returns the number of overlaps of a class (DoubleGrant or UseAfterExpiry) whose earlier holder was
// healthy, paused or cut off; "" stands for any.
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
	// LossEvents is the number of writes that lost updates, whether one or many. A lost update that no write
	// explains counts as one.
	LossEvents int64 `json:"loss_events"`
	Duplicated int64 `json:"duplicated"`
	Phantom    int64 `json:"phantom"`
	// Repeated is the number of jobs that were done again.
	Repeated int64 `json:"repeated,omitempty"`
	LossInterval
}

// FenceSummary counts what the guard of the resource did.
type FenceSummary struct {
	RefusedReads  int64 `json:"refused_reads"`
	RefusedWrites int64 `json:"refused_writes"`
	// Unanswered counts the refused reads and writes for which the lock service, which the guard asked, did
	// not answer.
	Unanswered int64 `json:"unanswered,omitempty"`
}

// OrphanSummary says what became of the locks of killed holders.
type OrphanSummary struct {
	Killed int64 `json:"killed"` // holds whose worker was killed
	Stuck  int64 `json:"stuck"`  // of Killed, those whose lock was never granted again
	// Longest is the longest time from a death to the next grant, or to the end of all attempts if there was
	// none. Victim is the worker that died then.
	Longest time.Duration `json:"longest_ns"`
	Victim  string        `json:"victim,omitempty"`
}

// FaultCoverage says of one injected fault whether it was real and whether it mattered.
type FaultCoverage struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Role    string   `json:"role,omitempty"`
	Targets []string `json:"targets"`
	Peers   []string `json:"peers,omitempty"`
	// Moment is the event that the fault waited for, and Actor the worker of that event; both "" if it waited
	// for none.
	Moment    string `json:"moment,omitempty"`
	Actor     string `json:"actor,omitempty"`
	Applied   bool   `json:"applied"`
	Proven    bool   `json:"proven"`
	Exercised bool   `json:"exercised"`
	// Outlasted means that the fault kept a holder stopped beyond its validity.
	Outlasted bool `json:"outlasted,omitempty"`
	Healed    bool `json:"healed"` // the nemesis has evidence that the fault is over
	// Missed is why the fault does not count, and Said the nemesis's own words; "" if it counts.
	Missed MissReason `json:"missed,omitempty"`
	Said   string     `json:"said,omitempty"`
	Reason string     `json:"reason,omitempty"` // words: why the fault does not count
	// Begin and End bracket the fault generously: from before it was applied to after it was healed, ns. Both
	// are 0 if it was never applied.
	Begin int64 `json:"begin"`
	End   int64 `json:"end"`
	// Since is how long after the awaited event the fault took effect; 0 if it waited for none.
	Since    time.Duration `json:"since_ns,omitempty"`
	Evidence []string      `json:"evidence,omitempty"`
}

// Counts says whether a verdict may rest on the fault: its target proved it, and it was exercised.
func (f FaultCoverage) Counts() bool { return f.Applied && f.Proven && f.Exercised }

// MaxListed is how many violations of one property are kept in full.
const MaxListed = 100
