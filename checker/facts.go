package checker

import "time"

// FactKind says what a Fact is about. Package present has a sentence for each.
type FactKind string

// Facts about the run, on which findings of several properties rest.
const (
	// FactRequired comes before the facts of a property that was required by name, though the
	// lock or the workload has nothing to judge.
	FactRequired      FactKind = "required"
	FactNeverHeld     FactKind = "never-held"
	FactSharedByRight FactKind = "shared-by-right" // several workers may hold the lock
	FactWritesNothing FactKind = "writes-nothing"  // the workload
)

// Facts about overlapping holders.
const (
	FactOverlaps         FactKind = "overlaps"          // N; the kinds are in Results.Overlaps
	FactSingleWorker     FactKind = "single-worker"     // nobody to overlap with
	FactPermitsForAll    FactKind = "permits-for-all"   // no worker can be one too many
	FactGrantedMeanwhile FactKind = "granted-meanwhile" // Keys, At; Workers: who got it, whose it was
	FactNobodyTookTurns  FactKind = "nobody-took-turns" // only one worker ever got each lock
	FactHoldsApart       FactKind = "holds-apart"       // N holds
	FactInsideAtOnce     FactKind = "inside-at-once"    // N workers, as the resource saw
)

// Facts about grants and releases.
const (
	FactExpiredGrants   FactKind = "expired-grants" // N
	FactNoExpiredGrant  FactKind = "no-expired-grant"
	FactWrongReleases   FactKind = "wrong-releases" // N
	FactNoRelease       FactKind = "no-release"
	FactReleases        FactKind = "releases"         // N, none of them wrong
	FactTokensWrong     FactKind = "tokens-wrong"     // N
	FactTokensDoubtful  FactKind = "tokens-doubtful"  // Incident
	FactTokensMissing   FactKind = "tokens-missing"   // N of Of grants
	FactTokensIncrease  FactKind = "tokens-increase"  // N
	FactNoTokens        FactKind = "no-tokens"        // the lock has none
	FactNoToken         FactKind = "no-token"         // no grant had one
	FactNotLinearizable FactKind = "not-linearizable" // Keys
	FactLinearizable    FactKind = "linearizable"     // N operations on Of keys
	FactSilent          FactKind = "porcupine-silent" // Keys
	FactUnordered       FactKind = "unordered"        // the grants of a shared lock
	FactContradictory   FactKind = "contradictory"    // Keys
	FactNoAnswers       FactKind = "no-answers"
)

// Facts about the data.
const (
	FactStaleWrites    FactKind = "stale-writes"     // N
	FactUnlockedWrites FactKind = "unlocked-writes"  // N
	FactNoWrite        FactKind = "no-write"         //
	FactTookTurns      FactKind = "took-turns"       // Keys
	FactWrites         FactKind = "writes"           // N, none of them stale
	FactUpdatesWrong   FactKind = "updates-wrong"    // how is in Results.Updates
	FactUpdatesKept    FactKind = "updates-kept"     // all in Results.Updates
	FactFinalUnread    FactKind = "final-unread"     // Keys, N updates of them
	FactFinalsDiffer   FactKind = "finals-differ"    // Keys
	FactNoUpdate       FactKind = "no-update"        //
	FactReadsChanged   FactKind = "reads-changed"    // N readers
	FactNoRepeatedRead FactKind = "no-repeated-read" //
	FactReadsRepeated  FactKind = "reads-repeated"   // N
)

// Facts about liveness.
const (
	FactNeverHealed      FactKind = "never-healed"      // Faults
	FactStuck            FactKind = "stuck"             // N; Limit
	FactStalled          FactKind = "stalled"           // Incident, Limit; Length of the stalls of the machine
	FactPerhapsHeld      FactKind = "perhaps-held"      // Keys, Length, N acquires; Since
	FactAcquired         FactKind = "acquired"          // N, without any fault
	FactRecovered        FactKind = "recovered"         // Length, Since
	FactNobodyTried      FactKind = "nobody-tried"      // Since
	FactNobodyTriedLong  FactKind = "nobody-tried-long" // Since, Limit
	FactLivenessMeasured FactKind = "liveness-measured" // Results.Orphans, Failovers, LossNotifications, Noticed
)

// Facts about faults: a kind that never counted, FaultKind, and what it missed.
const (
	FactNotProvenHealed  FactKind = "not-proven-healed" // Faults
	FactNoFaults         FactKind = "no-faults"         // none was asked for
	FactFaultsCovered    FactKind = "faults-covered"    // how is in Results.Faults
	FactNeverApplied     FactKind = "never-applied"
	FactNeverProven      FactKind = "never-proven"
	FactMissedMoment     FactKind = "missed-moment"
	FactMissedWorkers    FactKind = "missed-workers"    // that held the lock or were about to
	FactMissedHolders    FactKind = "missed-holders"    // inside their section, and wanted by others
	FactMissedOperations FactKind = "missed-operations" // of a server
	FactMissedPackets    FactKind = "missed-packets"
	FactMissedAll        FactKind = "missed-all" // nobody held the lock or asked for it
	FactEffectUnknown    FactKind = "effect-unknown"
)

// Facts about the run itself.
const (
	FactComplete        FactKind = "complete"
	FactCutOff          FactKind = "cut-off"      // line N of the history
	FactInterrupted     FactKind = "interrupted"  //
	FactTooFew          FactKind = "too-few"      // N updates, or holds, of the Of that are needed
	FactReadsRefused    FactKind = "reads-denied" // N holds; Of releases succeeded all the same
	FactIgnoredNothing  FactKind = "ignored-nothing"
	FactRunFailed       FactKind = "run-failed"   // Said
	FactHistoryEnds     FactKind = "history-ends" // before the run
	FactClientFault     FactKind = "client-fault" // Said
	FactUnknownProperty FactKind = "unknown-property"
)

// Facts that cannot be true: each is a bug in lockcheck.
const (
	FactIllegalUnexplained FactKind = "illegal-unexplained" // Keys
	FactLegalOverlap       FactKind = "legal-overlap"       // Keys, Workers
	FactLegalConflict      FactKind = "legal-conflict"      // Keys
	FactOrderlyOverlap     FactKind = "orderly-overlap"     // Keys
	FactUnheld             FactKind = "unheld"              // Keys; N workers inside at once
)

// Bug says that the checkers contradict each other.
func (k FactKind) Bug() bool {
	switch k {
	case FactIllegalUnexplained, FactLegalOverlap, FactLegalConflict, FactOrderlyOverlap, FactUnheld:
		return true
	}
	return false
}

// Fact is one thing that a finding rests on. The fields that its Kind does not name are zero.
type Fact struct {
	Kind      FactKind      `json:"kind"`
	N         int64         `json:"n,omitempty"`
	Of        int64         `json:"of,omitempty"`
	Keys      []string      `json:"keys,omitempty"`
	Workers   []string      `json:"workers,omitempty"`
	Faults    []string      `json:"faults,omitempty"` // ids
	FaultKind string        `json:"fault_kind,omitempty"`
	At        int64         `json:"at,omitempty"` // ns
	Length    time.Duration `json:"length_ns,omitempty"`
	Limit     time.Duration `json:"limit_ns,omitempty"`
	Since     Since         `json:"since,omitzero"`
	Incident  *Incident     `json:"incident,omitempty"` // one that does not count
	Said      string        `json:"said,omitempty"`     // by the run, a client or a user
}

// Since says what was over before a time in which somebody waited for the lock.
type Since struct {
	Event SinceEvent `json:"event,omitempty"`
	// Killed are the workers of SinceKill.
	Killed []string `json:"killed,omitempty"`
}

// SinceEvent is the start of a run, or the end of its last fault.
type SinceEvent string

// A run without faults begins to wait at its start.
const (
	SinceStart  SinceEvent = "start"
	SinceHealed SinceEvent = "healed"
	SinceKill   SinceEvent = "kill" // of workers, which is never healed
)

// IncidentKind says what happened in an Incident. Package present has a sentence for each.
type IncidentKind string

const (
	KindOverlap      IncidentKind = "overlap"       // Figures.Holder, Expired
	KindExpiredGrant IncidentKind = "expired-grant" //
	KindWrongRelease IncidentKind = "wrong-release" // Figures.Length: for how long the first had held it
	KindStaleWrite   IncidentKind = "stale-write"   // Figures.Length: since the next grant
	KindUnlocked     IncidentKind = "unlocked-write"

	KindOverwritten      IncidentKind = "overwritten"      // Figures.Version, Next, Base
	KindLostUnexplained  IncidentKind = "lost-unexplained" // Figures.Version
	KindVanished         IncidentKind = "vanished"         // Figures.Version: the database lost it
	KindCountedLess      IncidentKind = "counted-less"     // Figures.N of Of increments are there, Missing are unexplained
	KindDuplicated       IncidentKind = "duplicated"       // Figures.N times
	KindPhantom          IncidentKind = "phantom"          // nobody tried to write it
	KindRefusedPhantom   IncidentKind = "refused-phantom"  // the resource refused it
	KindCountedMore      IncidentKind = "counted-more"     // Figures.N are there, Missing more than were tried
	KindCountedRefused   IncidentKind = "counted-refused"  // the same, of which the resource refused some
	KindRepeatedJob      IncidentKind = "repeated-job"     // Figures.Base
	KindChangedRead      IncidentKind = "changed-read"     // Figures.Version, Next
	KindTokenLower       IncidentKind = "token-lower"      // Figures.Tokens: of the first worker, of the second
	KindTokenSame        IncidentKind = "token-same"       // Figures.Tokens
	KindGrantedTwice     IncidentKind = "granted-twice"
	KindTokensContradict IncidentKind = "tokens-contradict" // Figures.Tokens
	KindEndedEarly       IncidentKind = "ended-early"       // Figures.Length before it can have
	KindEndedNever       IncidentKind = "ended-never"       // it cannot have ended by itself
	KindAnsweredBefore   IncidentKind = "answered-before"   // it was asked for; the last worker was
	KindAnsweredAfter    IncidentKind = "answered-after"    // it was gone; the last worker was
	KindHeldElsewhere    IncidentKind = "held-elsewhere"    // Figures.OtherKey
	KindStuckKey         IncidentKind = "stuck-key"         // Figures.Since
	KindNothingButErrors IncidentKind = "nothing-but-errors"
)

// IncidentFigures are what the sentence of an Incident needs beyond its workers, key and times.
type IncidentFigures struct {
	Holder  HolderState   `json:"holder,omitempty"` // of an overlap, the earlier one
	Expired time.Duration `json:"expired_ns,omitempty"`
	Length  time.Duration `json:"length_ns,omitempty"`
	N       int64         `json:"n,omitempty"`
	Of      int64         `json:"of,omitempty"`
	Missing int64         `json:"missing,omitempty"`
	// Version is that of a write or of what was read first, Next that of the write which
	// followed or of what was read then, and Base what Next was computed from.
	Version  int64    `json:"version,omitempty"`
	Next     int64    `json:"next,omitempty"`
	Base     int64    `json:"base,omitempty"`
	Tokens   []uint64 `json:"tokens,omitempty"`
	OtherKey string   `json:"other_key,omitempty"`
	ID       string   `json:"id,omitempty"` // of a piece of work of an application
	Since    Since    `json:"since,omitzero"`
}

// HolderState is what kept the earlier holder of an overlap from noticing.
type HolderState string

const (
	HolderHealthy HolderState = "healthy"
	HolderPaused  HolderState = "paused"
	HolderCutOff  HolderState = "cut off"
	HolderKilled  HolderState = "killed" // only of replicas, which are started again
)

// Granted is a grant as an Explanation names it.
type Granted struct {
	Worker string `json:"worker"`
	Grant  string `json:"grant"`
	At     int64  `json:"at"` // when its worker had the answer, ns
	Token  uint64 `json:"token,omitempty"`
}

// Explanation is what the history shows of the Cause of an Incident. Times are ns of the clock
// of the history; the fields that the cause does not need are zero.
type Explanation struct {
	Key    string  `json:"key"`
	Holder Granted `json:"holder,omitzero"` // whose lock it was
	Next   Granted `json:"next,omitzero"`   // who was granted it then
	// LeaseEnd is the earliest time at which the grant of Holder can have ended by itself; 0 if
	// it cannot have within the history.
	LeaseEnd int64 `json:"lease_end,omitempty"`
	// ValidUntil is for how long the client of Holder took the lock for valid.
	ValidUntil int64    `json:"valid_until,omitempty"`
	Stop       *Stop    `json:"stop,omitempty"`
	Cut        *Stop    `json:"cut,omitempty"`
	Renewal    *Renewal `json:"renewal,omitempty"`
	// HeldUntil is when Holder gave the lock up, or its lease can have ended, while its write was
	// on its way; HeldBack is the fault that kept the write, "" for none.
	HeldUntil int64  `json:"held_until,omitempty"`
	HeldBack  string `json:"held_back,omitempty"`
	// Releaser released what was not its own.
	Releaser *Granted `json:"releaser,omitempty"`
	// InForce are the faults that explain the end. Without any, the clocks of the workers
	// differed from the start.
	InForce []InForce `json:"in_force,omitempty"`
	// Connected: the lock lasts as long as a connection to the servers.
	Connected bool `json:"connected,omitempty"`
	// Recovering is a fault of servers that was over before the grant of Holder, and from which
	// they may not have recovered.
	Recovering *Recovering `json:"recovering,omitempty"`
	// Between is another attempt that left the lock between the two grants, the last one; or, with
	// FateNamed, one that the service took for the holder then.
	Between *Past `json:"between,omitempty"`
	// Record is what the service itself had on record of the claim of Holder.
	Record *Record `json:"record,omitempty"`
	// Unlocked is how an acquire ended after which its worker used the data all the same.
	Unlocked *Unlocked `json:"unlocked,omitempty"`
}

// Stop is a time in which a worker was stopped or cut off. It went on between Resumed and To,
// which bracket the signal; Resumed is 0 where only To is known.
type Stop struct {
	From    int64 `json:"from"`
	Resumed int64 `json:"resumed,omitempty"`
	To      int64 `json:"to"`
}

// Renewal is one that succeeded, LeaseEnd being when the lease can have ended without it.
type Renewal struct {
	Asked    int64 `json:"asked"`
	Answered int64 `json:"answered"`
	LeaseEnd int64 `json:"lease_end"`
}

// InForce is a fault with its targets, and when it began.
type InForce struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Targets []string `json:"targets,omitempty"`
	From    int64    `json:"from,omitempty"`
	// To is when it was over, in an incident of an application; 0 while it was in force.
	To int64 `json:"to,omitempty"`
}

// Recovering is a fault that had ended Ago before somebody asked for the lock.
type Recovering struct {
	Fault InForce       `json:"fault"`
	Ago   time.Duration `json:"ago_ns"`
}

// Record is what an observer saw in the service of a claim: that it was dropped At, or 0 if it
// was there to the end. Late: after the next grant.
type Record struct {
	Dropped int64 `json:"dropped,omitempty"`
	Late    bool  `json:"late,omitempty"`
}

// Unlocked is an acquire that failed or, if Unknown, had no known outcome.
type Unlocked struct {
	Worker   string `json:"worker"`
	Asked    int64  `json:"asked"`
	Answered int64  `json:"answered"`
	Unknown  bool   `json:"unknown,omitempty"`
}

// Past is an attempt, and what became of it.
type Past struct {
	// Granted is the grant of the attempt; nil means that there was no attempt. It has no time if its
	// worker was never told of a grant, and no worker if the history has no such attempt.
	Granted *Granted `json:"granted,omitempty"`
	Fate    Fate     `json:"fate,omitempty"`
	Asked   int64    `json:"asked,omitempty"` // of the release
	At      int64    `json:"at,omitempty"`    // of the answer, of the death, or of what else became of it
}

// LastHold is the last grant of a key before nobody could acquire it.
type LastHold struct {
	Past
	// Since is what may have kept the key from everybody since then, as far as anything tells: whom
	// the service took for the holder meanwhile, or the last attempt that was given up before.
	Since *Past `json:"since,omitempty"`
}

// Fate of an attempt.
type Fate string

const (
	FateReleased    Fate = "released"
	FateGone        Fate = "gone" // the release failed: the lock was gone
	FateUnanswered  Fate = "unanswered"
	FateKilled      Fate = "killed"
	FateNotReleased Fate = "not-released"
	FateGaveUp      Fate = "gave-up"
	FateNamed       Fate = "named"   // somebody was refused in its favour
	FateClaimed     Fate = "claimed" // the service had its claim on record, before all others
)

// MissReason says why a fault does not count.
type MissReason string

const (
	MissSkipped     MissReason = "skipped"
	MissUnproven    MissReason = "not-proven"
	MissUnhealed    MissReason = "not-proven-healed"
	MissNoWorker    MissReason = "no-target-at-work"
	MissNoHolder    MissReason = "no-target-held"
	MissNotWanted   MissReason = "nobody-else-asked"
	MissPermitsLeft MissReason = "permits-left"
	MissNoWaiter    MissReason = "no-target-asked"
	MissNoOperation MissReason = "no-operation-open"
	MissNoPacket    MissReason = "no-packet"
	MissPackets     MissReason = "packets-unknown"
	MissNobody      MissReason = "nobody-held-or-asked"
	MissKind        MissReason = "kind-unknown"
	MissNoCall      MissReason = "call-over"
	MissNotQueued   MissReason = "not-queued"
	MissGranted     MissReason = "granted-again"
	MissHoldOver    MissReason = "hold-over"
)

// Quantity is what two sets of runs are compared by. Package present has the words for each.
type Quantity string

const (
	LostUpdates     Quantity = "lost-updates"
	StaleWrites     Quantity = "stale-writes"
	GoneAtRelease   Quantity = "gone-at-release"
	ViolatingFaults Quantity = "violating-faults"
	WaitP99         Quantity = "wait-p99"
	FailoverP99     Quantity = "failover-p99"
)
