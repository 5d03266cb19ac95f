package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// record has what pictures need from a history.
type record struct {
	begin, end int64
	workers    []string // in the order of rows
	holds      []checker.Hold
	waits      []wait // acquires that led to no hold
	accesses   []access
	calls      map[history.Function][]call // successful calls
	claims     []claim                     // sorted by their beginnings
	unowned    []claim                     // claims without a hold
	restarted  bool                        // replicas of an application are restarted after a kill
	blind      int64                       // when the observer of the service stopped; 0 for never
	ttl        time.Duration
	session    bool // leases are renewed without a record
	stages     map[string][]history.Event
	phases     []history.Event
	faults     []checker.FaultCoverage
	lost       map[int64]bool
	stale      map[int64]bool
	// overwritten maps the write that caused a loss to the listed losses.
	overwritten map[resourceWrite][]checker.Incident
	// badUntil is the time in ns up to which all lost updates and stale writes are known.
	badUntil int64
	expired  map[string]bool // grants that had expired when they arrived
	overlaps []checker.Incident
	// unlisted names the properties of which only the first incidents are known. A picture that just stopped
	// marking them would look like a recovery.
	unlisted []string
	links    links
	// involved has the grants that any listed incident names.
	involved map[string]bool
}

// wait is an unsuccessful acquire, or several of them.
type wait struct {
	worker, key string
	from, to    int64
	outcome     history.Type
	times       int
}

// access is what the resource did with one read or write.
type access struct {
	worker, key, grant string
	time               int64
	element            int64
	write, refused     bool
}

func newRecord(h *history.History, r checker.Results) *record {
	rec := &record{
		begin: r.Begin, end: r.End,
		holds:       slices.Clone(r.Holds),
		ttl:         h.Header.Lease,
		session:     h.Header.Session,
		restarted:   h.Header.Application != nil,
		calls:       map[history.Function][]call{},
		stages:      map[string][]history.Event{},
		faults:      r.Faults,
		lost:        map[int64]bool{},
		stale:       map[int64]bool{},
		badUntil:    math.MaxInt64,
		overwritten: map[resourceWrite][]checker.Incident{},
		expired:     map[string]bool{},
		involved:    map[string]bool{},
		links:       newLinks(r),
	}
	for _, f := range r.Findings {
		rec.incidents(f)
	}
	rec.events(h.Events)
	rec.observe(h.Events)
	slices.SortStableFunc(rec.holds, func(a, b checker.Hold) int { return cmp.Compare(a.Start, b.Start) })
	rec.workers = everyWorker(h.Header.Workers, rec.holds)
	if rec.end <= rec.begin {
		rec.end = rec.begin + 1
	}
	return rec
}

func (rec *record) incidents(f checker.Finding) {
	if n := len(f.Violations); f.Total > n {
		rec.unlisted = append(rec.unlisted, fmt.Sprintf("%s: %d of %s", clean(string(f.Property)), n, Grouped(int64(f.Total))))
		if n > 0 && (f.Property == checker.NoLostUpdate || f.Property == checker.NoStaleWrite) {
			rec.badUntil = min(rec.badUntil, f.Violations[n-1].From) // violations are sorted by time
		}
	}
	for _, i := range f.Violations {
		for _, g := range i.Grants {
			rec.involved[g] = true
		}
		switch {
		case f.Property == checker.MutualExclusion:
			rec.overlaps = append(rec.overlaps, i)
		case f.Property == checker.NoExpiredGrant:
			for _, g := range i.Grants {
				rec.expired[g] = true
			}
		case i.Element == 0:
		case f.Property == checker.NoStaleWrite:
			rec.stale[i.Element] = true
		case f.Property == checker.NoLostUpdate && isLost(i):
			rec.lost[i.Element] = true
			if by, known := overwriter(i); known {
				rec.overwritten[by] = append(rec.overwritten[by], i)
			}
		}
	}
}

// isLost says whether an incident is a lost update, and not another fault of the final state.
func isLost(i checker.Incident) bool { return i.Class == checker.ClassLost }

func (rec *record) events(events []history.Event) {
	open, names, timed := history.Open[int64]{}, history.NewNames(), operations()
	for _, e := range events {
		switch {
		case e.F == history.FaultPhase && e.Fault != nil:
			rec.stages[e.Fault.ID] = append(rec.stages[e.Fault.ID], e)
		case e.F == history.Phase:
			rec.phases = append(rec.phases, e)
		case e.Process == history.Resource:
			rec.access(e)
		case slices.Contains(timed, e.F):
			rec.addCall(e, names.Of(e.Process), open)
		}
	}
}

func (rec *record) access(e history.Event) {
	if e.F != history.Read && e.F != history.Write || e.Type == history.Invoke {
		return
	}
	a := access{e.Client, e.Key, e.Grant, e.Time, e.Element, e.F == history.Write, e.Type != history.OK}
	rec.accesses = append(rec.accesses, a)
}

// everyWorker lists every worker once, the workers of the header first.
func everyWorker(workers []string, holds []checker.Hold) []string {
	out := slices.Clone(workers)
	seen := map[string]bool{}
	for _, w := range out {
		seen[w] = true
	}
	for _, h := range holds {
		if !seen[h.Worker] {
			seen[h.Worker] = true
			out = append(out, h.Worker)
		}
	}
	return out
}

// inForce is the time in which a fault was certainly in force. If nothing is certain, it is the more generous
// time of the fault's coverage.
func (rec *record) inForce(f checker.FaultCoverage) (from, to int64) {
	from, to = f.Begin, f.End
	for _, e := range rec.stages[f.ID] {
		switch e.Fault.Stage {
		case history.Applied:
			from = cmp.Or(e.Fault.To, e.Time)
		case history.Healed:
			to = cmp.Or(e.Fault.From, e.Time)
		}
	}
	if to < from {
		return f.Begin, f.End
	}
	return from, to
}

// permanentlyEnded lists the targets that a fault ended for good. Servers and replicas are restarted after a kill, but
// workers are not.
func (rec *record) permanentlyEnded(f checker.FaultCoverage) []string {
	if rec.restarted || !history.Does(f.Kind, history.Ends) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.Targets), func(t string) bool { return !slices.Contains(rec.workers, t) })
}

// usedAfterExpiry says whether the worker acted after its deadline.
func usedAfterExpiry(h checker.Hold) bool { return h.Deadline < h.End }
