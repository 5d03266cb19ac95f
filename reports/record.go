package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// record is what pictures need of a history, gathered in one pass.
type record struct {
	begin, end int64
	workers    []string // in the order of lanes
	holds      []checker.Hold
	waits      []wait // acquires that led to no hold
	accesses   []access
	writes     map[int64]int // element to its place in accesses
	stages     map[string][]history.Event
	phases     []history.Event
	faults     []checker.FaultCoverage
	lost       map[int64]bool
	stale      map[int64]bool
	overlaps   []checker.Incident
	// unlisted says of which properties only the first incidents are known: a
	// picture that just stopped marking them would look like a recovery.
	unlisted []string
	// involved are the grants that any listed incident names.
	involved map[string]bool
}

// wait is an acquire without success.
type wait struct {
	worker, key string
	from, to    int64
	outcome     history.Type
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
		holds:    slices.Clone(r.Holds),
		writes:   map[int64]int{},
		stages:   map[string][]history.Event{},
		faults:   r.Faults,
		lost:     map[int64]bool{},
		stale:    map[int64]bool{},
		involved: map[string]bool{},
	}
	for _, f := range r.Findings {
		rec.incidents(f)
	}
	rec.events(h.Events)
	slices.SortStableFunc(rec.holds, func(a, b checker.Hold) int { return cmp.Compare(a.Start, b.Start) })
	rec.workers = lanes(h.Header.Workers, rec.holds)
	if rec.end <= rec.begin {
		rec.end = rec.begin + 1
	}
	return rec
}

func (rec *record) incidents(f checker.Finding) {
	if n := len(f.Violations); f.Total > n {
		rec.unlisted = append(rec.unlisted, fmt.Sprintf("%s: %d of %s", clean(string(f.Property)), n, grouped(int64(f.Total))))
	}
	for _, i := range f.Violations {
		for _, g := range i.Grants {
			rec.involved[g] = true
		}
		switch {
		case f.Property == checker.MutualExclusion:
			rec.overlaps = append(rec.overlaps, i)
		case i.Element == 0:
		case f.Property == checker.NoStaleWrite:
			rec.stale[i.Element] = true
		case f.Property == checker.NoLostUpdate && isLost(i):
			rec.lost[i.Element] = true
		}
	}
}

// isLost tells a lost update from the other two things that can be wrong with
// the final state.
func isLost(i checker.Incident) bool {
	return !strings.Contains(i.Class, "duplicate") && !strings.Contains(i.Class, "phantom")
}

func (rec *record) events(events []history.Event) {
	type operation struct {
		process string
		op      int64
	}
	open := map[operation]history.Event{}
	for _, e := range events {
		switch {
		case e.F == history.FaultPhase && e.Fault != nil:
			rec.stages[e.Fault.ID] = append(rec.stages[e.Fault.ID], e)
		case e.F == history.Phase:
			rec.phases = append(rec.phases, e)
		case e.Process == history.Resource:
			rec.access(e)
		case e.F == history.Acquire && e.Type == history.Invoke:
			open[operation{e.Process, e.Op}] = e
		case e.F == history.Acquire:
			id := operation{e.Process, e.Op}
			if begun, ok := open[id]; ok && e.Type != history.OK {
				rec.waits = append(rec.waits, wait{e.Process, e.Key, begun.Time, e.Time, e.Type})
			}
			delete(open, id)
		}
	}
}

func (rec *record) access(e history.Event) {
	if e.F != history.Read && e.F != history.Write || e.Type == history.Invoke {
		return
	}
	a := access{e.Client, e.Key, e.Grant, e.Time, e.Element, e.F == history.Write, e.Type != history.OK}
	if a.write && !a.refused && a.element != 0 {
		rec.writes[a.element] = len(rec.accesses)
	}
	rec.accesses = append(rec.accesses, a)
}

// lanes is every worker once, those of the header first.
func lanes(workers []string, holds []checker.Hold) []string {
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

// force is the time in which a fault was certainly in force, as opposed to the
// generous one of its coverage, which is the answer where nothing is certain.
func (rec *record) force(f checker.FaultCoverage) (from, to int64) {
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

// dead lists the targets that a fault is the end of: servers are started again
// after a kill, workers are not.
func (rec *record) dead(f checker.FaultCoverage) []string {
	if !history.Does(f.Kind, history.Ends) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.Targets), func(t string) bool { return !slices.Contains(rec.workers, t) })
}

// outlived says that the worker acted on a promise that had ended.
func outlived(h checker.Hold) bool { return h.Deadline < h.End }

// scene is the stretch of a run that a close-up shows.
type scene struct {
	example
	from, to int64
	key      string          // the only one drawn; empty for all
	cast     map[string]bool // grants that play a part
	harmless bool            // nothing was violated
}

// scene chooses what to look at closely: the most telling incident, else a
// fault that mattered, else the beginning. It is false where there are no holds.
func (rec *record) scene(r checker.Results) (scene, bool) {
	if len(rec.holds) == 0 {
		return scene{}, false
	}
	for _, e := range examples(r, len(r.Findings)) {
		if s, ok := rec.sceneOf(e); ok {
			return s, true
		}
	}
	for _, want := range []func(checker.FaultCoverage) bool{
		func(f checker.FaultCoverage) bool { return counts(f) && f.Outlasted },
		counts,
	} {
		if i := slices.IndexFunc(rec.faults, want); i >= 0 {
			return rec.sceneOfFault(rec.faults[i]), true
		}
	}
	last := rec.holds[min(len(rec.holds), 12)-1]
	return scene{from: rec.holds[0].Invoked, to: last.End, cast: map[string]bool{}, harmless: true}.framed(rec), true
}

// sceneOf frames the holds of an incident together with those of the same key
// that meet them: a lost update names only the loser, but the picture is about
// who overwrote it.
func (rec *record) sceneOf(e example) (scene, bool) {
	s := scene{example: e, key: e.Incident.Key, cast: map[string]bool{}}
	s.from, s.to = math.MaxInt64, math.MinInt64
	for _, h := range rec.holds {
		if slices.Contains(e.Incident.Grants, h.Grant) {
			s.include(h)
		}
	}
	if len(s.cast) == 0 {
		return scene{}, false
	}
	core := s
	for _, h := range rec.holds {
		if h.Key == s.key && h.Start < core.to && h.End > core.from && !s.cast[h.Grant] && len(s.cast) < 6 {
			s.include(h)
		}
	}
	if s.to-s.from > 4*(core.to-core.from) {
		s = core
	}
	return s.framed(rec), true
}

func (s *scene) include(h checker.Hold) {
	s.cast[h.Grant] = true
	s.from, s.to = min(s.from, h.Start), max(s.to, h.End)
}

func (rec *record) sceneOfFault(f checker.FaultCoverage) scene {
	if dead := rec.dead(f); len(dead) > 0 {
		return rec.sceneOfDeath(f, dead)
	}
	s := scene{from: f.Begin, to: f.End, cast: map[string]bool{}, harmless: true}
	for _, h := range rec.holds {
		if slices.Contains(f.Targets, h.Worker) && h.Start < f.End && h.End > f.Begin {
			s.include(h)
			s.key = h.Key
		}
	}
	s.from, s.to = min(s.from, f.Begin), max(s.to, f.End)
	return s.framed(rec)
}

// sceneOfDeath shows the holds that a kill ended and the next ones of the same key.
func (rec *record) sceneOfDeath(f checker.FaultCoverage, dead []string) scene {
	s := scene{from: f.Begin, to: f.Begin, cast: map[string]bool{}, harmless: true}
	for _, h := range rec.holds { // by start
		switch {
		case slices.Contains(dead, h.Worker) && h.Ended == checker.EndedWithoutTrace:
			s.include(h)
			s.key = h.Key
		case len(s.cast) > 0 && h.Key == s.key && h.Start > f.Begin:
			s.include(h)
			return s.framed(rec)
		}
	}
	if len(s.cast) == 0 {
		s.to += time.Second.Nanoseconds()
	}
	return s.framed(rec)
}

// framed adds a margin, so that it can be seen what came before and after.
func (s scene) framed(rec *record) scene {
	margin := max((s.to-s.from)/8, int64(2e6))
	s.from, s.to = max(s.from-margin, rec.begin), min(s.to+margin, rec.end)
	if s.to <= s.from {
		s.to = s.from + 1
	}
	return s
}
