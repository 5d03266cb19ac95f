package checker

import "time"

// FactKind says what a Fact is about. Package present has a sentence for each kind.
type FactKind string

// Facts about the run, on which findings of several properties rest.
const (
	// FactRequired precedes the facts of a property that was required by name although the lock or the
	// workload has nothing to judge.
	FactRequired      FactKind = "required"
	FactNeverHeld     FactKind = "never-held"
	FactSharedByRight FactKind = "shared-by-right" // several workers may hold the lock
	FactWritesNothing FactKind = "writes-nothing"  // the workload writes nothing
)

// Facts about overlapping holders.
const (
	FactOverlaps         FactKind = "overlaps"          // N; the kinds are in Results.Overlaps
	FactSingleWorker     FactKind = "single-worker"     // no other worker could overlap
	FactPermitsForAll    FactKind = "permits-for-all"   // there are enough permits for all workers
	FactGrantedMeanwhile FactKind = "granted-meanwhile" // Keys, At; Workers: who got the lock, who had it
	FactNobodyTookTurns  FactKind = "nobody-took-turns" // each lock was granted to one worker only
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
	FactWrongRenewals   FactKind = "wrong-renewals"   // N
	FactNoRenewal       FactKind = "no-renewal"       // none acknowledged, or only of sessions that are renewed without a record
	FactRenewals        FactKind = "renewals"         // N, none of them wrong
	FactUntrueLosses    FactKind = "untrue-losses"    // N of Of losses that the service reported
	FactLossesTrue      FactKind = "losses-true"      // N
	FactIdleLocks       FactKind = "idle-locks"       // N of Of releases while the lock was wanted; Limit
	FactHandedOver      FactKind = "handed-over"      // N; Length: the longest; Limit
	FactLateFailovers   FactKind = "late-failovers"   // N of Of; Limit
	FactFailovers       FactKind = "failovers"        // N, none late; Limit
	FactTokensWrong     FactKind = "tokens-wrong"     // N
	FactTokensDoubtful  FactKind = "tokens-doubtful"  // Incident
	FactTokensMissing   FactKind = "tokens-missing"   // N of Of grants
	FactTokensIncrease  FactKind = "tokens-increase"  // N
	FactNoTokens        FactKind = "no-tokens"        // the lock has none
	FactNoToken         FactKind = "no-token"         // no grant had one
	FactNotLinearizable FactKind = "not-linearizable" // Keys
	FactLinearizable    FactKind = "linearizable"     // N operations on Of keys
	FactSilent          FactKind = "porcupine-silent" // Keys
	FactUnordered       FactKind = "unordered"        // grants of a shared lock have no order
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
	FactUpdatesWrong   FactKind = "updates-wrong"    // details in Results.Updates
	FactUpdatesKept    FactKind = "updates-kept"     // details in Results.Updates
	FactFinalUnread    FactKind = "final-unread"     // Keys with N updates
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
	FactStalled          FactKind = "stalled"           // Incident, Limit; Length: how long the machine stalled
	FactPerhapsHeld      FactKind = "perhaps-held"      // Keys, Length, N acquires; Since
	FactAcquired         FactKind = "acquired"          // N, in a run without faults
	FactRecovered        FactKind = "recovered"         // Length, Since
	FactNobodyTried      FactKind = "nobody-tried"      // Since
	FactNobodyTriedLong  FactKind = "nobody-tried-long" // Since, Limit
	FactLivenessMeasured FactKind = "liveness-measured" // Results.Orphans, Failovers, LossNotifications, Noticed
)

// Facts about faults. Each says why faults of the kind FaultKind never counted.
const (
	FactNotProvenHealed  FactKind = "not-proven-healed" // Faults
	FactNoFaults         FactKind = "no-faults"         // none was requested
	FactFaultsCovered    FactKind = "faults-covered"    // details in Results.Faults
	FactNeverApplied     FactKind = "never-applied"
	FactNeverProven      FactKind = "never-proven"
	FactMissedMoment     FactKind = "missed-moment"
	FactMissedWorkers    FactKind = "missed-workers"    // no target held the lock or was about to
	FactMissedHolders    FactKind = "missed-holders"    // no target was inside its section while others wanted the lock
	FactMissedOperations FactKind = "missed-operations" // no operation of a server was open
	FactMissedPackets    FactKind = "missed-packets"
	FactMissedDisk       FactKind = "missed-disk" // no operation of a server on its disk
	FactMissedAll        FactKind = "missed-all"  // no worker held the lock or asked for it
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
	FactHistoryEnds     FactKind = "history-ends" // the history ends before the run
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

// Bug says whether the fact is a contradiction between checkers.
func (k FactKind) Bug() bool {
	switch k {
	case FactIllegalUnexplained, FactLegalOverlap, FactLegalConflict, FactOrderlyOverlap, FactUnheld:
		return true
	}
	return false
}

// Fact is one reason for a finding. The fields that its Kind does not name are zero.
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
	Incident  *Incident     `json:"incident,omitempty"` // an incident that does not count
	Said      string        `json:"said,omitempty"`     // by the run, a client or a user
}

// Since names the event after which workers waited for the lock.
type Since struct {
	Event SinceEvent `json:"event,omitempty"`
	// Killed are the killed workers, for SinceKill.
	Killed []string `json:"killed,omitempty"`
}

// SinceEvent is the start of a run, or the end of its last fault.
type SinceEvent string

// In a run without faults the wait begins at the start.
const (
	SinceStart  SinceEvent = "start"
	SinceHealed SinceEvent = "healed"
	SinceKill   SinceEvent = "kill" // the kill of workers, which is never healed
)

// IncidentKind says what happened in an Incident. Package present has a sentence for each kind.
type IncidentKind string

const (
	KindOverlap      IncidentKind = "overlap"       // Figures.Holder, Expired
	KindExpiredGrant IncidentKind = "expired-grant" //
	KindWrongRelease IncidentKind = "wrong-release" // Figures.Length: how long the first victim had held the lock
	KindWrongRenewal IncidentKind = "wrong-renewal" // Figures.Length: since the next grant
	KindUntrueLoss   IncidentKind = "untrue-loss"   // Figures.Length: until the release
	KindIdleLock     IncidentKind = "idle-lock"     // Figures.Length: while a worker asked for it
	KindLateFailover IncidentKind = "late-failover" // Figures.Length: while another worker could have been granted it
	KindStaleWrite   IncidentKind = "stale-write"   // Figures.Length: since the next grant
	KindUnlocked     IncidentKind = "unlocked-write"

	KindOverwritten      IncidentKind = "overwritten"      // Figures.Version, Next, Base
	KindLostUnexplained  IncidentKind = "lost-unexplained" // Figures.Version
	KindVanished         IncidentKind = "vanished"         // Figures.Version: the database lost the update
	KindCountedLess      IncidentKind = "counted-less"     // Figures.N of Of increments are there, Missing are unexplained
	KindDuplicated       IncidentKind = "duplicated"       // Figures.N times
	KindPhantom          IncidentKind = "phantom"          // no worker tried to write it
	KindRefusedPhantom   IncidentKind = "refused-phantom"  // the resource refused it
	KindCountedMore      IncidentKind = "counted-more"     // Figures.N are there, Missing more than were tried
	KindCountedRefused   IncidentKind = "counted-refused"  // like KindCountedMore, but the resource refused some
	KindRepeatedJob      IncidentKind = "repeated-job"     // Figures.Base
	KindChangedRead      IncidentKind = "changed-read"     // Figures.Version, Next
	KindTokenLower       IncidentKind = "token-lower"      // Figures.Tokens: of the first worker, of the second
	KindTokenSame        IncidentKind = "token-same"       // Figures.Tokens
	KindGrantedTwice     IncidentKind = "granted-twice"
	KindTokensContradict IncidentKind = "tokens-contradict" // Figures.Tokens
	KindEndedEarly       IncidentKind = "ended-early"       // Figures.Length: how much earlier than possible
	KindEndedNever       IncidentKind = "ended-never"       // the grant cannot have ended by itself
	KindAnsweredBefore   IncidentKind = "answered-before"   // the grant was named before it was asked for, to the last worker
	KindAnsweredAfter    IncidentKind = "answered-after"    // the grant was named after it was gone, to the last worker
	KindHeldElsewhere    IncidentKind = "held-elsewhere"    // Figures.OtherKey
	KindStuckKey         IncidentKind = "stuck-key"         // Figures.Since
	KindNothingButErrors IncidentKind = "nothing-but-errors"
)

// IncidentFigures are what the sentence of an Incident needs beyond its workers, key and times.
type IncidentFigures struct {
	Holder  HolderState   `json:"holder,omitempty"` // the earlier holder of an overlap
	Expired time.Duration `json:"expired_ns,omitempty"`
	// LaterOver: the earlier grant of an overlap was within its validity, and the later one was not.
	LaterOver bool          `json:"later_over,omitempty"`
	Length    time.Duration `json:"length_ns,omitempty"`
	N         int64         `json:"n,omitempty"`
	Of        int64         `json:"of,omitempty"`
	Missing   int64         `json:"missing,omitempty"`
	// Version is the version that was written or first read. Next is the version of the next write or second
	// read. Base is the version that Next was computed from.
	Version  int64    `json:"version,omitempty"`
	Next     int64    `json:"next,omitempty"`
	Base     int64    `json:"base,omitempty"`
	Tokens   []uint64 `json:"tokens,omitempty"`
	OtherKey string   `json:"other_key,omitempty"`
	ID       string   `json:"id,omitempty"` // a piece of work of an application
	Since    Since    `json:"since,omitzero"`
}

// HolderState is what kept the earlier holder of an overlap from noticing.
type HolderState string

const (
	HolderHealthy HolderState = "healthy"
	HolderPaused  HolderState = "paused"
	HolderCutOff  HolderState = "cut off"
	HolderKilled  HolderState = "killed" // only for replicas, which are started again
)

// Granted is a grant as an Explanation names it.
type Granted struct {
	Worker string `json:"worker"`
	Grant  string `json:"grant"`
	At     int64  `json:"at"` // when its worker got the answer, ns
	Token  uint64 `json:"token,omitempty"`
	// RefusedByItself: the service refused the attempt, and named this same attempt as the holder. That happens if a
	// first request took effect, its answer was lost, and the client library repeated it.
	RefusedByItself bool `json:"refused_by_itself,omitempty"`
	// Command removed the key of another grant, although its worker did not hold the lock; At is then when the
	// observer of the service learned of it.
	Command string `json:"command,omitempty"`
}

// Explanation is what the history shows of the Cause of an Incident. Times are in ns of the clock of the
// history. Fields that the cause does not need are zero.
type Explanation struct {
	Key    string  `json:"key"`
	Holder Granted `json:"holder,omitzero"` // the grant that was violated
	Next   Granted `json:"next,omitzero"`   // the grant that replaced Holder
	// LeaseEnd is the earliest time at which the grant of Holder may have ended by itself; 0 if that is after
	// the end of the history.
	LeaseEnd int64 `json:"lease_end,omitempty"`
	// ValidUntil is until when the client of Holder believed the lock to be valid.
	ValidUntil int64    `json:"valid_until,omitempty"`
	Stop       *Stop    `json:"stop,omitempty"`
	Cut        *Stop    `json:"cut,omitempty"`
	Renewal    *Renewal `json:"renewal,omitempty"`
	// HeldUntil is when Holder gave up the lock, or its lease may have ended, while its write was in flight.
	// HeldBack is the fault that delayed the write, "" for none.
	HeldUntil int64  `json:"held_until,omitempty"`
	HeldBack  string `json:"held_back,omitempty"`
	// Releaser is the grant whose worker released a lock that was not its own.
	Releaser *Granted `json:"releaser,omitempty"`
	// Earlier is a release that was sent for the same grant before the service gave it again.
	Earlier *Past `json:"earlier,omitempty"`
	// InForce are the faults that explain the end of the grant. If there is none, the clocks of the workers
	// differed from the start.
	InForce []InForce `json:"in_force,omitempty"`
	// Connected means that the lock lasts as long as a connection to the servers.
	Connected bool `json:"connected,omitempty"`
	// Recovering is a fault of servers that ended before the grant of Holder. The servers may not have
	// recovered from it.
	Recovering *Recovering `json:"recovering,omitempty"`
	// Between is the last other attempt that gave up or released the lock between the two grants. With
	// FateNamed it is an attempt that the service took for the holder in that time.
	Between *Past `json:"between,omitempty"`
	// Record is what the service itself had on record of the claim of Holder.
	Record *Record `json:"record,omitempty"`
	// Unlocked is the failed acquire of a worker that used the data all the same.
	Unlocked *Unlocked `json:"unlocked,omitempty"`
}

// Stop is a time in which a worker was stopped or cut off. Resumed and To bracket the signal to go on;
// Resumed is 0 if only To is known.
type Stop struct {
	From    int64 `json:"from"`
	Resumed int64 `json:"resumed,omitempty"`
	To      int64 `json:"to"`
}

// Renewal is a renewal that succeeded. LeaseEnd is when the lease may have ended without it or, for the last renewal,
// despite it.
type Renewal struct {
	Asked    int64 `json:"asked"`
	Answered int64 `json:"answered"`
	LeaseEnd int64 `json:"lease_end"`
}

// InForce is a fault with its targets and its beginning.
type InForce struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Targets []string `json:"targets,omitempty"`
	From    int64    `json:"from,omitempty"`
	// To is when the fault was over, in an incident of an application; 0 while it was in force.
	To int64 `json:"to,omitempty"`
}

// Recovering is a fault that had ended Ago before the lock was asked for.
type Recovering struct {
	Fault InForce       `json:"fault"`
	Ago   time.Duration `json:"ago_ns"`
}

// Record is what an observer of the service saw of a claim. Dropped is when the claim was dropped, 0 if it
// remained to the end. Late means that it was dropped only after the next grant.
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
	// Granted is the grant of the attempt; nil if there was no attempt. It has no time if its worker was
	// never told of a grant, and no worker if the history lacks the attempt.
	Granted *Granted `json:"granted,omitempty"`
	Fate    Fate     `json:"fate,omitempty"`
	Asked   int64    `json:"asked,omitempty"` // of the release
	At      int64    `json:"at,omitempty"`    // when Fate happened: of the answer, the death or another end
}

// LastHold is the last grant of a key before nobody could acquire it.
type LastHold struct {
	Past
	// Since is what may have blocked the key since then, as far as the history tells. It is the grant that
	// the service took for the holder meanwhile, or else the last attempt that was given up before.
	Since *Past `json:"since,omitempty"`
}

// Fate is what became of an attempt.
type Fate string

const (
	FateReleased    Fate = "released"
	FateGone        Fate = "gone" // the release failed: the lock was gone
	FateUnanswered  Fate = "unanswered"
	FateKilled      Fate = "killed"
	FateNotReleased Fate = "not-released"
	FateGaveUp      Fate = "gave-up"
	FateNamed       Fate = "named"   // another worker was refused because this grant held the lock
	FateClaimed     Fate = "claimed" // the service had its claim on record, ahead of all others
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
	MissNoDisk      MissReason = "no-disk-operation"
	MissDisk        MissReason = "disk-operations-unknown"
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
