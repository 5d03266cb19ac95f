// Package workloads holds what happens inside the critical section: the resource
// that a lock protects, with its guards, the update that each workload makes,
// the loop of a worker around them. Worker and resource are processes of their
// own, which report each event as a line of JSON on their standard output.
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
	// Update computes the new value from the one that was read, null at first;
	// nil for a workload that only reads.
	Update func(value json.RawMessage, element int64) (json.RawMessage, error)
	// Element chooses the element to be written from the value that was read; nil for a
	// workload of which each update has an element of its own.
	Element func(value json.RawMessage) (int64, error)
	// Readers: half of the holds share the lock, and read only.
	Readers bool
	// Updates is how many of them a worker makes in one hold if nobody says otherwise; 0 for one.
	Updates int
	// Renews: the holder renews its lease meanwhile, of a lock that it can renew.
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

// PerHold is how many updates a worker makes in one hold at most.
func (w Workload) PerHold(u Use) int { return cmp.Or(u.Updates, w.Updates, 1) }

// Bars says, in words that go on after the name of a lock, why a guard does not go with the workload; "" if it does.
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

// nextJob is the first job that is not done yet: they are numbered from 1 under each name of
// the lock.
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

// decodeValue leaves the target at its zero value where nothing was written yet.
func decodeValue(value json.RawMessage, target any) error {
	if len(value) == 0 {
		return nil
	}
	if err := json.Unmarshal(value, target); err != nil {
		return fmt.Errorf("value %s: %w", value, err)
	}
	return nil
}
