// Package workloads has what happens inside the critical section: the resource that a lock protects, its
// guards, the update that each workload makes, and the loop of a worker around them. Worker and resource are
// separate processes, which write each event as a line of JSON to their standard output.
package workloads

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"lockcheck/history"
)

// Workload is what a worker does with the value that it reads in its section.
type Workload struct {
	Name    string
	Summary string
	// Update computes the new value from the value that was read, which is null at first; nil for a workload
	// that only reads.
	Update func(value json.RawMessage, element int64) (json.RawMessage, error)
	// Element chooses the element to write from the value that was read; nil for a workload in which every
	// update has a distinct element.
	Element func(value json.RawMessage) (int64, error)
	// Readers: half of the holds share the lock, and only read.
	Readers bool
	// Updates is the default number of updates in one hold; 0 for one.
	Updates int
	// Renews: the holder renews its lease during the hold, if the lock can be renewed.
	Renews bool
}

// Table lists all workloads.
func Table() []Workload {
	return []Workload{
		{Name: history.WorkloadSet, Summary: "read a set, add one element, write it back", Update: addToSet},
		{Name: history.WorkloadCounter, Summary: "read a counter, add one, write it back", Update: increment},
		{Name: history.WorkloadJobs, Summary: "read which jobs are done, do the next one, write that it is done", Update: addToSet, Element: nextJob},
		{Name: history.WorkloadElection, Summary: "lead for a term: update the set as `set` does, several times in one hold; then resign", Update: addToSet, Updates: termUpdates, Renews: true},
		{Name: history.WorkloadReadWrite, Summary: "share the lock and read a set twice, or hold it alone and add an element, at even odds", Update: addToSet, Readers: true},
		{Name: history.WorkloadMutex, Summary: "hold the lock and read, without an update"},
		{Name: history.WorkloadSemaphore, Summary: "hold one of the permits of a semaphore and read, without an update"},
	}
}

// PerHold returns how many updates a worker makes in one hold at most.
func (w Workload) PerHold(u Use) int { return cmp.Or(u.Updates, w.Updates, 1) }

// Bars returns why a guard cannot be used with the workload, as a phrase that follows the lock's name; "" if it
// can.
func (w Workload) Bars(g Guard) string {
	switch {
	case g == NoGuard:
		return ""
	case w.Name == history.WorkloadSemaphore:
		return "is a semaphore, whose holders share by right what a guard would keep for one"
	case w.Readers && g != CompareAndSet:
		return "is shared by readers, whom this guard refuses if another one came later"
	case g == IdempotencyKey && w.Element == nil:
		return "protects no work that could be done twice"
	case g == Database && w.Element != nil:
		return "protects a list of jobs, which this guard cannot store"
	}
	return ""
}

// termUpdates is how many updates a leader makes in its term.
const termUpdates = 10

// ByName finds a workload in Table.
func ByName(name string) (Workload, bool) {
	for _, w := range Table() {
		if w.Name == name {
			return w, true
		}
	}
	return Workload{}, false
}

// Names lists the names in Table.
func Names() []string {
	var names []string
	for _, w := range Table() {
		names = append(names, w.Name)
	}
	return names
}

func addToSet(value json.RawMessage, element int64) (json.RawMessage, error) {
	var set []int64
	if err := decodeValue(value, &set); err != nil {
		return nil, err
	}
	return json.Marshal(append(set, element))
}

// nextJob returns the first job that is not done yet. Jobs are numbered from 1 for each key.
func nextJob(value json.RawMessage) (int64, error) {
	var done []int64
	if err := decodeValue(value, &done); err != nil {
		return 0, err
	}
	slices.Sort(done)
	next := int64(1)
	for _, job := range done {
		if job == next {
			next++
		}
	}
	return next, nil
}

func increment(value json.RawMessage, _ int64) (json.RawMessage, error) {
	var counter int64
	if err := decodeValue(value, &counter); err != nil {
		return nil, err
	}
	return json.Marshal(counter + 1)
}

// decodeValue leaves the target at its zero value if nothing was written yet.
func decodeValue(value json.RawMessage, target any) error {
	if len(value) == 0 {
		return nil
	}
	if err := json.Unmarshal(value, target); err != nil {
		return fmt.Errorf("value %s: %w", value, err)
	}
	return nil
}
