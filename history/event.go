// Package history holds the record of one run: the event type, an append-only writer, a reader that accepts
// what a killed run left behind, and a validator whose errors name the line. It is the contract between the
// processes that act and the checkers that judge, and the only input of the checkers.
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
	Fail   Type = "fail"   // it certainly had no effect, except that a repeated release of a user's client may have had one
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

	// Lost is a single Info event: the worker learned that its lock is gone. Error says how it was notified:
	// ByService or ByDeadline.
	Lost Function = "lost"

	// Caught is a single Info event of a worker. The call that Op, Key and Grant name is in flight, or about
	// to be sent, and waits there for the fault that Note names.
	Caught Function = "caught"

	// Client is a single Info event about the client of a user's own lock. It comes from a worker, or from
	// the Resource if that has a client of its own. Either the client has begun, with its name and version in
	// Note, or it can do nothing more, for the reason in Error. In that case it broke the protocol or ended
	// by itself, so its earlier answers cannot be trusted either.
	Client Function = "client"

	// Deferred is a single Info event of the resource: a write has arrived, and the fault that Note names
	// holds it back. A later Write event says what becomes of it.
	Deferred Function = "deferred"

	// Claimed and Dropped are single Info events of the lock service: a claim on a key, of a holder or in its
	// queue, is on record, or no longer is. Token identifies the claim. Their times are when the observer
	// learned of it. A Dropped event with a Client says that a connection of this worker removed the key itself, by the
	// command in Note. After an Unobserved event there are none, for the reason in Error.
	Claimed    Function = "claimed"
	Dropped    Function = "dropped"
	Unobserved Function = "unobserved"

	// Final is a single OK event of the resource: the final state of one key.
	Final Function = "final"

	// FaultPhase is a single Info event of the nemesis, described by Fault.
	FaultPhase Function = "fault"

	// Phase is a single Info event of the harness; Note has one of the Phase names.
	Phase Function = "phase"

	// Stalled is a single Info event of the harness. From From until Time the machine did not schedule it,
	// although it was due.
	Stalled Function = "stalled"
)

// Names of processes that are not workers.
const (
	Resource = "resource"
	Service  = "service" // the lock service, as an observer sees it
	Nemesis  = "nemesis"
	Harness  = "harness"
)

// Opens is the Note of a Renew event that opens a session.
const Opens = "opens"

// Phases of a run, in order, as found in Event.Note of a Phase event. The last is PhaseEnd, PhaseInterrupted
// or PhaseBroken. A run that was ended early from outside ends with PhaseInterrupted. A run that failed, even
// after an interruption, ends with PhaseBroken and the reason in Error. A history without any of them was cut
// short.
const (
	PhaseReady    = "ready"    // the cluster is healthy, workers start
	PhaseRecovery = "recovery" // no more faults
	// PhaseRecovered: the servers serve and the lock is granted again, or waiting for that was given up.
	// Error says so, or by how much the recovery period was too short.
	PhaseRecovered = "recovered"
	PhaseFinal     = "final"  // workers are told to stop, final reads follow when they have
	PhaseEnd       = "end"    // the run is complete
	PhaseBroken    = "broken" // the run itself failed

	PhaseInterrupted = "interrupted"
)

// Event is one line of a history.
type Event struct {
	Index   int64    `json:"index"`   // position in the file, from 0
	Time    int64    `json:"time"`    // ns of CLOCK_MONOTONIC of the Docker host, read where the event happened
	Process string   `json:"process"` // "w1"…, or Resource, Service, Nemesis, Harness
	Type    Type     `json:"type"`
	F       Function `json:"f"`
	Key     string   `json:"key,omitempty"`  // the lock's name
	Op      int64    `json:"op,omitempty"`   // pairs invocation and completion, unique within a process
	Node    string   `json:"node,omitempty"` // server that was asked, if the lock asks one

	// Grant identifies one attempt to acquire, unique in a run. It is on every event of that attempt, of the
	// hold that follows, and of accesses under it.
	Grant string `json:"grant,omitempty"`
	// Holder is the Grant that a refused acquire names as the holder.
	Holder string `json:"holder,omitempty"`
	// Token is the fencing token of the grant; 0 for a lock without tokens.
	Token uint64 `json:"token,omitempty"`
	// Until is the end of the validity on the worker's own monotonic clock, on acquire ok and renew ok; 0 if
	// the lock gives no deadline.
	Until int64 `json:"until,omitempty"`
	// Expired marks an acquire ok whose grant the service no longer had on record when its answer arrived.
	Expired bool `json:"expired,omitempty"`
	// Shared says that an acquire asks to share the lock with others that do so too. It is on the invocation,
	// only in WorkloadReadWrite.
	Shared bool `json:"shared,omitempty"`
	// From is when a stall began, on a Stalled event, on the clock of Time. On an event of an application it
	// is the earliest time at which it happened.
	From int64 `json:"from,omitempty"`
	// Wakes is how many notifications of the service an attempt received while it waited for its turn. It is
	// on the completion of an acquire, only if the header says that they are counted.
	Wakes int64 `json:"wakes,omitempty"`

	// Client is the worker behind an access of the Resource; Op and Grant are then the worker's own. On a
	// line of a replica it is the thread or task that printed the line, if the line names it.
	Client string `json:"client,omitempty"`
	// Seq numbers the accesses at the Resource from 1, refused ones included: the true order.
	Seq int64 `json:"seq,omitempty"`
	// Version of the data: what a read returned, what a write created, what a Final holds.
	Version int64 `json:"version,omitempty"`
	// Base is the version that a write was computed from.
	Base int64 `json:"base,omitempty"`

	// Element is the update of a write: what it adds to a set, or the ordinal of an increment. It is unique
	// in a run; 0 for an access that updates nothing.
	Element int64 `json:"element,omitempty"`
	// Value is the state of a key on a Final event: a JSON array of elements for a set, a number for a
	// counter, null if nothing was written.
	Value json.RawMessage `json:"value,omitempty"`

	// ID names a piece of work of an application, on Did and Accepted. Answer is the answer of an invariant,
	// on Asked.
	ID     string  `json:"id,omitempty"`
	Answer *Answer `json:"answer,omitempty"`

	Fault *Fault `json:"fault,omitempty"` // on FaultPhase events
	// Note is the name of the phase on Phase events, and the id of the fault on Deferred and Caught events.
	// On a refused access it is why the guard could not decide. On a Renew it is Opens, or empty.
	Note  string `json:"note,omitempty"`
	Error string `json:"error,omitempty"` // why, on fail and info
}

// Stage is one of the five stages of a fault, or why stages are missing.
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
	// Peers are the processes that a fault of the network separates from the targets.
	Peers []string `json:"peers,omitempty"`
	// From and To bracket the fault, in ns: it took effect somewhere between them.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
	// Evidence is what was read back from the target, for people.
	Evidence string `json:"evidence,omitempty"`
	// Moment is what the fault waited for, one of the Moment constants; "" if only for a time. Actor is the
	// worker that it waited for; "" if it waited for none.
	Moment string `json:"moment,omitempty"`
	Actor  string `json:"actor,omitempty"`
	// Since is how long after the awaited event the fault took effect, ns, on Applied; 0 if it waited for
	// none.
	Since int64 `json:"since,omitempty"`
	// Dropped is how many packets of other processes a network fault dropped or held back, or how many
	// operations of servers a fault of their disks failed or held back, by its own counters, on Healed; nil for
	// other kinds.
	Dropped *int64 `json:"dropped,omitempty"`
	// Step is how far a clock was moved, in ns.
	Step int64 `json:"step,omitempty"`
	// Version is that in which servers are started again; "" for the same.
	Version string `json:"version,omitempty"`
	// Speed is how many seconds a clock advanced per second; 0 for a fault that does not change the speed.
	Speed float64 `json:"speed,omitempty"`
	// Loss is the share of dropped packets. Delay is for how many ns each packet was held back, or each write and
	// sync of a disk. Rate is the bandwidth in bytes per second; 0 for a fault without that effect.
	Loss  float64 `json:"loss,omitempty"`
	Delay int64   `json:"delay,omitempty"`
	Rate  int64   `json:"rate,omitempty"`
}

// Header is the first line of a history: what the checkers must know of a run that its events do not say.
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
	// Reaches names the servers that a worker was told of, if these are not all servers.
	Reaches map[string][]string `json:"reaches,omitempty"`

	// Lease is the time after which the lock can end by itself; 0 for a lock that never does.
	Lease time.Duration `json:"lease_ns"`
	// Grace is the grace period beyond Lease that the lock needs until a waiter is granted it. A lock with
	// Grace but without Lease ends with the connection of its holder; Grace is how long its servers may take
	// to notice that. A lock with neither ends only by its release.
	Grace time.Duration `json:"grace_ns"`
	// Tokens says that the lock hands out fencing tokens.
	Tokens bool `json:"tokens"`
	// Session says that the client renews its lease in the background for as long as it runs and reaches its
	// servers. Renewals says that these renewals are on record. Their Renew events have no Key and no Grant if one
	// session serves all attempts of a worker. Note says which of them open a session.
	Session  bool `json:"session,omitempty"`
	Renewals bool `json:"renewals,omitempty"`
	// Supports lists the features of the lock that help against violations, as Supports constants; nil in
	// older histories.
	Supports []string `json:"supports,omitzero"`
	// Renewed says that each worker extended its lease while it was in its section. Checked says that each
	// worker checked its deadline before it wrote. Both are also false in older histories.
	Renewed bool `json:"renewed,omitempty"`
	Checked bool `json:"checked_before_write,omitempty"`
	// Wakes says that the client counts the notifications that wake waiters.
	Wakes bool `json:"wakes,omitempty"`

	Faults  []string `json:"faults,omitempty"`  // requested kinds, without the unsupported ones
	MinOps  int64    `json:"min_ops"`           // minimal number of acknowledged updates for a valid verdict
	Require []string `json:"require,omitempty"` // properties that must hold in addition to the usual ones
	Seed    uint64   `json:"seed"`
	// Handover is how long a released lock may be idle while a worker asks for it; 0 for the default.
	Handover time.Duration `json:"handover_ns,omitempty"`

	// Unavailable says which requested kinds were left out, as the user allowed, and why.
	Unavailable []string `json:"unavailable,omitempty"`

	// Application describes the application of WorkloadApplication; nil for a test of a lock.
	Application *Application `json:"application,omitempty"`

	// Permits is how many workers may hold a key at once; 0 means 1. Reentrant is how often one worker may
	// hold it at a time; 0 means once.
	Permits   int `json:"permits,omitempty"`
	Reentrant int `json:"reentrant,omitempty"`

	// Imported names the original format of an imported history; "" for one of lockcheck. What such a history
	// does not say, such as the lease, is not judged.
	Imported string `json:"imported,omitempty"`

	// Cluster is the run that the servers were started for, and Earlier is how many runs they have served
	// before; "" and 0 if they were started for this run.
	Cluster string `json:"cluster,omitempty"`
	Earlier int    `json:"earlier,omitempty"`

	Parameters map[string]string `json:"parameters,omitempty"` // all other options
	Versions   map[string]string `json:"versions,omitempty"`   // of servers and client libraries
	Images     map[string]string `json:"images,omitempty"`     // name to digest
	Source     string            `json:"source,omitempty"`     // where the servers come from, in words; "" for embedded servers
	Command    []string          `json:"command,omitempty"`
}

// Format is the value of Header.Format.
const Format = "lockcheck-history"

// History is a whole run in memory.
type History struct {
	Header Header
	Events []Event
	// Excerpt says that Events are only a part of a history that does not fit in memory.
	Excerpt bool
	// Truncated is the number of the last line if it was cut off while it was written, and is therefore left
	// out; 0 if the file is complete.
	Truncated int
}
