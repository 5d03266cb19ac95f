package runs

import (
	"slices"
	"strings"

	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/workloads"
)

// This file checks options of locks that several workers may hold at once.

// defaultPermits is the least number of permits with which several workers may hold a semaphore.
const defaultPermits = 2

// permits is how many workers may hold a key at once; 0 for a lock that is used as a mutex.
func (t *test) permits() int {
	if t.Workload != history.WorkloadSemaphore {
		return 0
	}
	return t.Permits
}

// checkPermits refuses a semaphore workload if the lock has no permits, or if they are enough for all
// workers.
func (t *test) checkPermits() error {
	asked := t.Workload == history.WorkloadSemaphore
	switch {
	case t.info.Permits && t.Permits < 1:
		return BadFlag("permits", t.Permits, "it must be at least 1")
	case !t.info.Permits && asked:
		return BadFlag("workload", t.Workload, "lock %s has no permits (it works with %s)", t.Lock, namesOf(semaphore))
	case !t.info.Permits && t.Permits != 0:
		return BadFlag("permits", t.Permits, "lock %s has no permits (it works with %s)", t.Lock, namesOf(semaphore))
	case !asked && t.Permits > 1:
		return BadFlag("permits", t.Permits, "workload %s lets one worker hold the lock at a time; write --workload %s", t.Workload, history.WorkloadSemaphore)
	case slices.ContainsFunc(t.Workers, func(u workloads.Use) bool { return u.Permits != 0 }):
		return Usagef("permits: all workers must have the same number")
	case asked && t.Permits >= t.Concurrency:
		return BadFlag("permits", t.Permits, "%d workers never compete for that many; write --concurrency %d", t.Concurrency, t.Permits+1)
	}
	return nil
}

func semaphore(i clients.Info) bool { return i.Permits }

// checkReaders refuses a workload with readers if they cannot share the lock.
func (t *test) checkReaders() error {
	switch {
	case !t.workload.Readers:
		return nil
	case !t.info.Shared:
		return BadFlag("workload", t.Workload, "readers cannot share lock %s (it works with %s)", t.Lock, namesOf(func(i clients.Info) bool { return i.Shared }))
	}
	return nil
}

// guardsOf lists the guards that go with a workload, in words.
func guardsOf(w workloads.Workload) string {
	return strings.Join(slices.DeleteFunc(workloads.Guards(), func(g string) bool { return w.Bars(workloads.Guard(g)) != "" }), ", ")
}

// namesOf lists the locks with a property, in words.
func namesOf(are func(clients.Info) bool) string {
	var names []string
	for _, info := range clients.Table() {
		if are(info) {
			names = append(names, info.Name)
		}
	}
	return strings.Join(names, ", ")
}
