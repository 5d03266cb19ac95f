package checker

import (
	"time"

	"lockcheck/history"
)

// ApplicationSummary is what a test of an application amounts to in figures.
type ApplicationSummary struct {
	Invariants []InvariantSummary `json:"invariants"`
	Replicas   []ReplicaSummary   `json:"replicas"`
	Holds      int64              `json:"holds"`    // that replicas said they had
	Effects    int64              `json:"effects"`  // pieces of work that replicas said they did
	Repeated   int64              `json:"repeated"` // of those, how many had been done before
	Accepted   int64              `json:"accepted"` // pieces of work that were confirmed to the load
	Restarts   int64              `json:"restarts"`
}

// InvariantSummary says how well an invariant was watched.
type InvariantSummary struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Asked    int64  `json:"asked"`
	Held     int64  `json:"held"`     // answers that it held; of kept, all but a last one that lacks something
	Violated int64  `json:"violated"` // answers that it did not
	Unknown  int64  `json:"unknown"`  // questions without an answer
	// Said is why the last of these had none; "" if all were answered.
	Said string `json:"said,omitempty"`
	// Gap is the longest time in which nothing is known of the invariant.
	Gap Gap `json:"gap"`
}

// Gap is a time between two answers, from when the first of them was asked for to the end of the second: what became
// true and false again within it was not seen. It is zero if there were no answers.
type Gap struct {
	From   int64    `json:"from"` // ns
	To     int64    `json:"to"`
	Faults []string `json:"faults,omitempty"` // ids of those that were in force in it
}

// Length of the gap.
func (g Gap) Length() time.Duration { return time.Duration(g.To - g.From) }

// ReplicaSummary is what one replica did, as far as it said so.
type ReplicaSummary struct {
	Name    string `json:"name"`
	Started int64  `json:"started"`
	Ended   int64  `json:"ended"` // by itself
	Killed  int64  `json:"killed"`
	Holds   int64  `json:"holds"`
	Effects int64  `json:"effects"`
}

// MaxSeenRows is how many rows of an answer a Seen has.
const MaxSeenRows = 5

// Seen is what the history shows of an invariant that did not hold.
type Seen struct {
	Invariant string `json:"invariant"` // its kind
	// Held is when the last answer was asked for that still was as it must be, ns; 0 if none was. The
	// invariant became false between that and the time of the incident.
	Held  int64    `json:"held,omitempty"`
	Rows  []string `json:"rows,omitempty"` // the first MaxSeenRows of the answer, or of what it lacks
	Count int64    `json:"count"`          // of all of them
	Of    int64    `json:"of,omitempty"`   // how many were accepted, where some are missing
	// Faults were in force in that time or not long before, and Hit are the replicas that were paused, cut
	// off or killed by them.
	Faults []InForce `json:"faults,omitempty"`
	Hit    []Hit     `json:"hit,omitempty"`
	Said   []Said    `json:"said,omitempty"` // the last line of each replica before
}

// Hit is a replica that was paused, cut off or killed.
type Hit struct {
	Replica string      `json:"replica"`
	State   HolderState `json:"state"`
}

// Said is what a replica showed last: that it holds Key, that it did the work ID, or how its program ended.
type Said struct {
	Replica string           `json:"replica"`
	F       history.Function `json:"f"`
	Key     string           `json:"key,omitempty"`
	ID      string           `json:"id,omitempty"`
	Exit    string           `json:"exit,omitempty"`
	At      int64            `json:"at"` // ns
}
