package checker

import (
	"time"

	"lockcheck/history"
)

// ApplicationSummary is the result of a test of an application in figures.
type ApplicationSummary struct {
	Invariants []InvariantSummary `json:"invariants"`
	Replicas   []ReplicaSummary   `json:"replicas"`
	Holds      int64              `json:"holds"`            // that replicas reported
	Effects    int64              `json:"effects"`          // pieces of work that replicas reported
	Repeated   int64              `json:"repeated"`         // Effects that had been done before
	Accepted   int64              `json:"accepted"`         // pieces of work that the application confirmed to the load
	Reads      int64              `json:"reads,omitempty"`  // of replicas in the resource
	Writes     int64              `json:"writes,omitempty"` // of replicas to the resource, without lines that are effects
	Restarts   int64              `json:"restarts"`
}

// InvariantSummary says how well an invariant was watched.
type InvariantSummary struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Asked    int64  `json:"asked"`
	Held     int64  `json:"held"`     // answers in which it held; of kind kept, all except a last one that lacks something
	Violated int64  `json:"violated"` // answers in which it did not hold
	Unknown  int64  `json:"unknown"`  // questions without an answer
	// Said is why the last unanswered question had no answer; "" if all were answered.
	Said string `json:"said,omitempty"`
	// Gap is the longest time in which nothing is known of the invariant.
	Gap Gap `json:"gap"`
}

// Gap is the time between two answers, from when the first was asked for to the end of the second. A
// violation that came and went within it was not seen. It is zero if there were no answers.
type Gap struct {
	From   int64    `json:"from"` // ns
	To     int64    `json:"to"`
	Faults []string `json:"faults,omitempty"` // ids of the faults that were in force during the gap
}

// Length of the gap.
func (g Gap) Length() time.Duration { return time.Duration(g.To - g.From) }

// ReplicaSummary is what one replica did, as far as it reported it.
type ReplicaSummary struct {
	Name    string `json:"name"`
	Started int64  `json:"started"`
	Ended   int64  `json:"ended"` // by itself, not killed
	Killed  int64  `json:"killed"`
	Holds   int64  `json:"holds"`
	Effects int64  `json:"effects"`
	Reads   int64  `json:"reads,omitempty"`  // in the resource
	Writes  int64  `json:"writes,omitempty"` // to the resource, without lines that are effects
}

// Overwrite is an update in the resource of an application that was overwritten by who had not seen it.
type Overwrite struct {
	// Seen is the version that the overwriting client had read last, or Wrote itself, at SeenAt, ns; 0 for a key that was not
	// there.
	Seen   int64 `json:"seen"`
	SeenAt int64 `json:"seen_at"`
	Wrote  bool  `json:"wrote,omitempty"`
	// Unseen is the first version that it had not seen, made at UnseenAt, ns; Appended is the line that this added, "" for a
	// new value.
	Unseen   int64  `json:"unseen"`
	UnseenAt int64  `json:"unseen_at"`
	Appended string `json:"appended,omitempty"`
}

// MaxSeenRows limits the rows that Seen keeps of an answer.
const MaxSeenRows = 5

// Seen is what the history shows of an invariant that did not hold.
type Seen struct {
	Invariant string `json:"invariant"` // its kind
	// Held is when the last answer that met the invariant was asked for, ns; 0 if there was none. The
	// invariant became false between that time and the time of the incident.
	Held  int64    `json:"held,omitempty"`
	Rows  []string `json:"rows,omitempty"` // the first MaxSeenRows of the answer, or of what it lacks
	Count int64    `json:"count"`          // number of all such rows
	Of    int64    `json:"of,omitempty"`   // how many were accepted, if some are missing
	// Columns are the names of the columns of Rows, which tabs separate; nil if they have no names.
	Columns []string `json:"columns,omitempty"`
	// Faults were in force in that time or shortly before. Hit are the replicas that these faults paused, cut
	// off or killed.
	Faults []InForce `json:"faults,omitempty"`
	Hit    []Hit     `json:"hit,omitempty"`
	Said   []Said    `json:"said,omitempty"` // the last report of each replica before
}

// Hit is a replica that was paused, cut off or killed.
type Hit struct {
	Replica string      `json:"replica"`
	State   HolderState `json:"state"`
}

// Said is the last report of a replica: that it holds Key, that it did the work ID, or how its program ended.
type Said struct {
	Replica string           `json:"replica"`
	F       history.Function `json:"f"`
	Key     string           `json:"key,omitempty"`
	ID      string           `json:"id,omitempty"`
	Exit    string           `json:"exit,omitempty"`
	At      int64            `json:"at"` // ns
}
