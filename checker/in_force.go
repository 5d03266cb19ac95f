package checker

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"lockcheck/history"
)

// faultTimes indexes the times of faults, to find those that overlap another time. Runs of millions of
// operations have tens of thousands of faults, and as many violations to explain.
type faultTimes struct {
	times []faultTime // by their beginnings
	ends  endTree
	least []int32 // the lowest index of a fault in each part of the tree, as in endTree
}

// faultTime is a time of the fault at an index of run.faults.
type faultTime struct {
	span
	fault int32
}

// newFaultTimes indexes the times of the faults that were applied.
func newFaultTimes(faults []fault, times func(*fault) []span) *faultTimes {
	t := &faultTimes{}
	for i := range faults {
		f := &faults[i]
		if !f.Applied {
			continue
		}
		for _, s := range times(f) {
			t.times = append(t.times, faultTime{s, int32(i)})
		}
	}
	sorted(t.times, func(a, b faultTime) int { return cmp.Compare(a.from, b.from) })
	t.ends = newEndTree(len(t.times), func(i int) int64 { return t.times[i].to })
	t.least = make([]int32, len(t.times))
	t.fill(0, len(t.times))
	return t
}

func (t *faultTimes) fill(from, to int) int32 {
	if from == to {
		return math.MaxInt32
	}
	middle := (from + to) / 2
	t.least[middle] = min(t.times[middle].fault, t.fill(from, middle), t.fill(middle+1, to))
	return t.least[middle]
}

func (t *faultTimes) begunBy(to int64) int {
	return sort.Search(len(t.times), func(i int) bool { return t.times[i].from > to })
}

// first returns the index of the first fault that overlaps a time, -1 for none.
func (t *faultTimes) first(from, to int64) int {
	found := t.firstIn(0, len(t.times), from, t.begunBy(to), math.MaxInt32)
	if found == math.MaxInt32 {
		return -1
	}
	return int(found)
}

// firstIn searches times[begin:end] for a fault that overlaps a time and has a lower index than before. The
// first n times begin early enough.
func (t *faultTimes) firstIn(begin, end int, from int64, n int, before int32) int32 {
	middle := (begin + end) / 2
	if begin == end || begin >= n || t.ends[middle] < from || t.least[middle] >= before {
		return before
	}
	before = t.firstIn(begin, middle, from, n, before)
	if middle >= n {
		return before
	}
	if t.times[middle].to >= from {
		before = min(before, t.times[middle].fault)
	}
	return t.firstIn(middle+1, end, from, n, before)
}

// all returns the indexes of the faults that overlap a time, sorted.
func (t *faultTimes) all(from, to int64) []int32 {
	var found []int32
	t.ends.since(from, t.begunBy(to), func(i int) bool {
		if t.times[i].to >= from {
			found = append(found, t.times[i].fault)
		}
		return true
	})
	slices.Sort(found)
	return slices.Compact(found)
}

// inForce returns the ids of the faults that may have been in force in [from, to].
func (r *run) inForce(from, to int64) []string {
	var ids []string
	for _, i := range r.forces.all(from, to) {
		ids = append(ids, r.faults[i].ID)
	}
	return ids
}

// mayRepeat says whether the library of a user's client may have sent a call again because its answer was
// lost. The last answer then need not be that of the first request. Lockcheck's own clients report an unknown
// outcome in this case.
func (r *run) mayRepeat(w worker, c *call) bool {
	return len(r.clients) > 0 && slices.ContainsFunc(r.answerLosses.all(c.invoke, c.done), func(i int32) bool {
		f := &r.faults[i]
		return r.onServersAlone(f) || f.involves(r.name(w))
	})
}

// earlyEndReason is a reason why a grant may have ended early, with the faults that provide it.
type earlyEndReason struct {
	class  string
	faults *faultTimes
}

func (r *run) indexFaults() {
	whole := func(f *fault) []span { return []span{{f.Begin, f.End}} }
	r.forces = newFaultTimes(r.faults, whole)
	those := func(are func(*fault) bool, times func(*fault) []span) *faultTimes {
		return newFaultTimes(r.faults, func(f *fault) []span {
			if !are(f) {
				return nil
			}
			return times(f)
		})
	}
	doing := func(effects ...history.Effect) *faultTimes {
		return those(func(f *fault) bool { return r.onServers(f) && f.doesAny(effects...) }, whole)
	}
	r.serverFaults = those(r.mayEndGrants, whole)
	r.earlyEndReasons = []earlyEndReason{
		{CauseClock, newFaultTimes(r.faults, r.clockEndsLeases)},
		{CauseServerLost, doing(history.Ends)},
		{CauseServerFault, doing(history.Stops, history.Cuts, history.Disturbs, history.Impairs, history.Deposes)},
	}
	r.answerLosses = those(func(f *fault) bool {
		return f.doesAny(history.Ends, history.Stops, history.Cuts, history.Disturbs, history.Impairs, history.Deposes)
	}, func(f *fault) []span {
		// Servers that recover may still close connections; a former leader, for example, steps down.
		return []span{{f.Begin, later(f.End, r.header.Grace)}}
	})
	r.deferrals = make(map[grant]*fault)
	for i := range r.faults {
		if f := &r.faults[i]; f.deferred != 0 && r.deferrals[f.deferred] == nil {
			r.deferrals[f.deferred] = f
		}
	}
}

// clockEndsLeases returns when a fault of wall clocks can end leases early. Clients that compare their wall clocks count
// leases wrongly for as long as these differ.
func (r *run) clockEndsLeases(f *fault) []span {
	if f.does(history.Steps) && !r.onServers(f) {
		return []span{{f.Begin, f.End}}
	}
	return f.hastening()
}

// hastening returns when a fault may have moved a clock forward: when it was applied, or when it was healed
// if it had moved the clock back. A clock that is merely wrong ends no lease early.
func (f *fault) hastening() []span {
	if !f.does(history.Steps) {
		return nil
	}
	came := span{f.Begin, min(f.certainFrom, f.End)}
	went := span{max(f.certainTo, f.Begin), f.End}
	switch {
	case f.Kind == history.ClockStrobe, f.Kind == history.ClockRate && !(f.speed > 0 && f.speed < 1):
		return []span{{f.Begin, f.End}}
	case f.Kind == history.ClockRate:
		return []span{went} // the clock was behind until then
	case f.certainTo == 0 && f.step < 0:
		return nil
	case f.step > 0, f.certainTo == 0:
		return []span{came}
	case f.step < 0:
		return []span{went}
	}
	return []span{came, went}
}
