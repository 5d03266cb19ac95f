// Package history holds the record of one run: the event type, an append-only
// writer, a reader that accepts what a killed run left behind, a validator
// whose errors name the line. It is the contract between the processes that
// act and the checkers that judge, and the only thing that checkers see.
package history

import (
	"encoding/json"
	"time"
)

// SchemaVersion is the version of the file format that this package writes.
const SchemaVersion = 2

// Type says what an event is, in Jepsen's words.
type Type string

const (
	Invoke Type = "invoke" // an operation begins
	OK     Type = "ok"     // it took effect
	Fail   Type = "fail"   // it certainly had no effect; a release of a user's client may have had, if it was sent twice
	Info   Type = "info"   // its outcome is unknown, or the event is no operation
)

// Function says what an event is about.
type Function string

const (
	// Operations of workers: an Invoke and at most one completion.
	Acquire Function = "acquire" // fail: busy, or given up for certain
	Renew   Function = "renew"
	Read    Function = "read" // also an access at the resource
	Write   Function = "write"
	Release Function = "release" // fail: the lock was not held any more

	// Lost is a single Info event: the worker learned that its lock is
	// gone. Error says who notified it: ByService or ByDeadline.
	Lost Function = "lost"

	// Caught is a single Info event of a worker: the call that Op, Key and Grant name is in
	// flight, or about to be sent, and waits there for the fault that Note names.
	Caught Function = "caught"

	// Client is a single Info event of a worker, or of the Resource where that has a client
	// of its own, about the client of a lock of the user's: that it has begun, with its name
	// and version in Note, or why it can do nothing more, in Error. It was then not to be
	// trusted before, either: it broke the protocol, or ended by itself.
	Client Function = "client"

	// Deferred is a single Info event of the resource: a write has arrived, and is
	// held back by the fault that Note names. What becomes of it is a Write event.
	Deferred Function = "deferred"

	// Claimed and Dropped are single Info events of the lock service: a claim on a key, a
	// holder's or one in its queue, is on record, or not any more. Token says whose it is.
	// Their times are those at which the observer learned of it. After an Unobserved event
	// there are none, for the reason in Error.
	Claimed    Function = "claimed"
	Dropped    Function = "dropped"
	Unobserved Function = "unobserved"

	// Final is a single OK event of the resource: what one key holds at the end.
	Final Function = "final"

	// FaultPhase is a single Info event of the nemesis, described by Fault.
	FaultPhase Function = "fault"

	// Phase is a single Info event of the harness; Phase* names are in Note.
	Phase Function = "phase"

	// Stalled is a single Info event of the harness: from From until its Time this machine did
	// not let it run, though it was due.
	Stalled Function = "stalled"
)

// Names of processes that are not workers.
const (
	Resource = "resource"
	Service  = "service" // the lock service, as an observer sees it
	Nemesis  = "nemesis"
	Harness  = "harness"
)

// Phases of a run, in order, as found in Event.Note of a Phase event. The last is
// PhaseEnd, or PhaseInterrupted for a run that was ended early from outside, or
// PhaseBroken, which says in Error why the run failed, after an interruption, too; a
// history without any of them was cut short.
const (
	PhaseReady    = "ready"    // the cluster is healthy, workers start
	PhaseRecovery = "recovery" // no more faults
	// PhaseRecovered: the servers serve and the lock is granted again, or the wait for that
	// was given up; Error says so, or by how much the recovery period was too short.
	PhaseRecovered = "recovered"
	PhaseFinal     = "final"  // workers are told to stop, final reads follow when they have
	PhaseEnd       = "end"    // the run is complete
	PhaseBroken    = "broken" // the run itself failed

	PhaseInterrupted = "interrupted"
)

// Event is one line of a history.
type Event struct {
	Index   int64    `json:"index"`   // position in the file, from 0
	Time    int64    `json:"time"`    // ns of CLOCK_MONOTONIC of the Docker host, read where it happened
	Process string   `json:"process"` // "w1"…, or Resource, Nemesis, Harness
	Type    Type     `json:"type"`
	F       Function `json:"f"`
	Key     string   `json:"key,omitempty"`  // the lock's name
	Op      int64    `json:"op,omitempty"`   // pairs invocation and completion, unique within a process
	Node    string   `json:"node,omitempty"` // server asked, where the lock asks one

	// Grant identifies one attempt to acquire, unique in a run: on every event
	// of that attempt, of the hold that it led to, and of accesses under it.
	Grant string `json:"grant,omitempty"`
	// Holder is the Grant that a busy acquire was refused in favour of.
	Holder string `json:"holder,omitempty"`
	// Token is the fencing token of the grant; 0 for a lock without tokens.
	Token uint64 `json:"token,omitempty"`
	// Until is the end of the validity on the worker's own monotonic clock, on
	// acquire ok and renew ok; 0 when the lock gives no deadline.
	Until int64 `json:"until,omitempty"`
	// Expired marks an acquire ok whose grant the service no longer had on record when
	// its answer arrived.
	Expired bool `json:"expired,omitempty"`
	// Shared says of an acquire that it asks for the lock next to others that do so, on its
	// invocation; only in WorkloadReadWrite.
	Shared bool `json:"shared,omitempty"`
	// From is when a stall began, on a Stalled event, on the clock of Time; and the earliest time at which an event
	// of an application happened.
	From int64 `json:"from,omitempty"`
	// Wakes is how many notifications of the service an attempt got while it waited for its
	// turn, on the completion of an acquire; only if the header says that they are counted.
	Wakes int64 `json:"wakes,omitempty"`

	// Client is the worker behind an access of the Resource; Op and Grant are then
	// the worker's own. On a line of a replica it is the thread or task that printed it, as far as the line says.
	Client string `json:"client,omitempty"`
	// Seq numbers the accesses at the Resource from 1, refused ones included: the true order.
	Seq int64 `json:"seq,omitempty"`
	// Version of the data: what a read returned, what a write made, what a Final holds.
	Version int64 `json:"version,omitempty"`
	// Base is the version that a write was computed from.
	Base int64 `json:"base,omitempty"`

	// Element is the update of a write: what it adds to a set, or the ordinal
	// of an increment. Unique in a run; 0 for an access that updates nothing.
	Element int64 `json:"element,omitempty"`
	// Value is the state of a key on a Final event: a JSON array of elements
	// for a set, a number for a counter, null where nothing was written.
	Value json.RawMessage `json:"value,omitempty"`

	// ID names a piece of work of an application, on Did and Accepted, and Answer is that of an invariant, on Asked.
	ID     string  `json:"id,omitempty"`
	Answer *Answer `json:"answer,omitempty"`

	Fault *Fault `json:"fault,omitempty"` // on FaultPhase events
	// Note is the name of the phase on Phase events, the id of the fault on Deferred and
	// Caught ones, and why the guard had no answer on accesses that it refused for want of one.
	Note  string `json:"note,omitempty"`
	Error string `json:"error,omitempty"` // why, on fail and info
}

// Stage is one of the five moments of a fault, or why there were fewer.
type Stage string

const (
	Requested    Stage = "requested"
	Applied      Stage = "applied"
	Proven       Stage = "proven"
	Healed       Stage = "healed"
	ProvenHealed Stage = "proven-healed"
	Skipped      Stage = "skipped"  // never applied: Evidence says why
	Unproven     Stage = "unproven" // applied, but no evidence that it was in force
	Unhealed     Stage = "unhealed" // no evidence that it is gone
)

// Fault describes one stage of one injected fault.
type Fault struct {
	ID      string   `json:"id"`      // unique in a run, the same on all stages
	Kind    string   `json:"kind"`    // pause, clock, partition, …
	Stage   Stage    `json:"stage"`   //
	Targets []string `json:"targets"` // workers or nodes, resolved
	Role    string   `json:"role,omitempty"`
	// Peers are the processes that a fault of the network keeps the targets apart from.
	Peers []string `json:"peers,omitempty"`
	// From and To bracket the fault, in ns: it took effect somewhere between them.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
	// Evidence is what was read back from the target, for people.
	Evidence string `json:"evidence,omitempty"`
	// Moment is what the fault waited for, one of the Moment constants; "" for a time only.
	// Actor is the worker that it waited for; "" if it waited for none.
	Moment string `json:"moment,omitempty"`
	Actor  string `json:"actor,omitempty"`
	// Since is how long after the event that it waited for the fault took effect, ns,
	// on Applied; 0 for one that waited for none.
	Since int64 `json:"since,omitempty"`
	// Dropped is how many packets of others a fault of the network has dropped or held
	// back, by its own counters, on Healed; nil for other kinds.
	Dropped *int64 `json:"dropped,omitempty"`
	// Step is how far a clock was moved, in ns.
	Step int64 `json:"step,omitempty"`
	// Speed is how many seconds a clock told a second; 0 for a fault that leaves its speed
	// alone.
	Speed float64 `json:"speed,omitempty"`
	// Loss is the share of packets dropped, Delay for how many ns each was held back, and
	// Rate how many bytes a second went on; 0 for a fault that does no such thing.
	Loss  float64 `json:"loss,omitempty"`
	Delay int64   `json:"delay,omitempty"`
	Rate  int64   `json:"rate,omitempty"`
}

// Header is the first line of a history: what the checkers must know of a run
// that its events do not say.
type Header struct {
	Format string `json:"format"` // always "lockcheck-history"
	Schema int    `json:"schema"`

	Run     string `json:"run"`     // identity of the run
	Started string `json:"started"` // wall clock, RFC 3339; for people only
	Version string `json:"version"` // of lockcheck

	Lock     string `json:"lock"`
	Workload string `json:"workload"`
	Guard    string `json:"guard"`

	Workers []string `json:"workers"`
	Servers []string `json:"servers,omitempty"`
	// Reaches names the servers that a worker was told of, where that is not all
	// of them.
	Reaches map[string][]string `json:"reaches,omitempty"`

	// Lease after which the lock can end by itself; 0 for a lock that never does.
	Lease time.Duration `json:"lease_ns"`
	// Grace is the grace period that the lock needs beyond Lease to be granted to a waiter. A lock without a
	// Lease that has a Grace ends with the connection of its holder, which its servers may take
	// so long to see; one that has neither ends by its release only.
	Grace time.Duration `json:"grace_ns"`
	// Tokens says that the lock hands out fencing tokens.
	Tokens bool `json:"tokens"`
	// Session says that the client renews its lease in the background, without a
	// record, for as long as it runs and reaches its servers.
	Session bool `json:"session,omitempty"`
	// Supports lists what the lock can do that may be used against violations, of the
	// Supports constants; nil in histories of old.
	Supports []string `json:"supports,omitzero"`
	// Renewed says that each worker extended its lease while it was in its section, Checked that each
	// looked at its deadline before it wrote; false in histories of old, too.
	Renewed bool `json:"renewed,omitempty"`
	Checked bool `json:"checked_before_write,omitempty"`
	// Wakes says that the client counts the notifications that wake up who waits.
	Wakes bool `json:"wakes,omitempty"`

	Faults  []string `json:"faults,omitempty"`  // kinds asked for, but for those that are not supported
	MinOps  int64    `json:"min_ops"`           // acknowledged updates below which nothing is judged valid
	Require []string `json:"require,omitempty"` // properties that must hold on top of the usual ones
	Seed    uint64   `json:"seed"`

	// Unavailable says which kinds asked for were left out, as the user allowed, and
	// why.
	Unavailable []string `json:"unavailable,omitempty"`

	// Application describes the application of WorkloadApplication; nil for a test of a lock.
	Application *Application `json:"application,omitempty"`

	// Permits is how many may hold a key at once; 0 means 1. Reentrant is how often one
	// worker may hold it at a time; 0 means once.
	Permits   int `json:"permits,omitempty"`
	Reentrant int `json:"reentrant,omitempty"`

	// Imported names the form that a history of others was in; "" for one of ours. What
	// it does not say, such as the lease, is not judged.
	Imported string `json:"imported,omitempty"`

	// Cluster is the run for which the servers were started, and Earlier how many runs they have
	// served before; "" and 0 if they were started for this one.
	Cluster string `json:"cluster,omitempty"`
	Earlier int    `json:"earlier,omitempty"`

	Parameters map[string]string `json:"parameters,omitempty"` // the rest of what was asked for
	Versions   map[string]string `json:"versions,omitempty"`   // of servers and client libraries
	Images     map[string]string `json:"images,omitempty"`     // name to digest
	Source     string            `json:"source,omitempty"`     // where the servers come from, in words; "" for embedded ones
	Command    []string          `json:"command,omitempty"`
}

// Format is the value of Header.Format.
const Format = "lockcheck-history"

// History is a whole run in memory.
type History struct {
	Header Header
	Events []Event
	// Excerpt says that Events are only some of those of a history that does not fit in memory.
	Excerpt bool
	// Truncated is the number of the last line where it was cut off in
	// mid-write and therefore left out; 0 when the file is whole.
	Truncated int
}
