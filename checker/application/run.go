package application

import (
	"cmp"
	"slices"
	"sort"

	"lockcheck/checker"
	"lockcheck/history"
)

// run is a history put in order once for all checkers.
type run struct {
	header     history.Header
	app        history.Application
	begin, end int64
	cutOff     int // line of a truncated event, 0 for none
	phases     map[string]*history.Event
	faults     []fault
	replicas   []*replica
	answers    map[string][]*history.Event // to the question of an invariant, by its name, in the order of their times
	load       []*history.Event            // events of the load
	accepted   []*history.Event            // accepted work among load, in the same order
	holds      []*hold
	byKey      map[string][]*hold // by their starts
	effects    []*effect
	accesses   []*history.Event            // to the resource, in the order in which they were applied
	starts     map[string][]*history.Event // of programs, by replica or load
}

// replica is what one of them said.
type replica struct {
	name  string
	lines []*history.Event // of all functions, in order
	shown []*history.Event // events that it holds, did or wrote something, or that its program ended
	used  []*history.Event // what it read and wrote in the resource
	holds []*hold          // in the order of their lines
	spans covering         // when it may have held anything
}

// fault is one that was injected, and when it was over for certain; 0 if it never was.
type fault struct {
	checker.Fault
	over int64
}

func newRun(h *history.History) *run {
	r := &run{
		phases: make(map[string]*history.Event), answers: make(map[string][]*history.Event), byKey: make(map[string][]*hold),
		starts: make(map[string][]*history.Event),
	}
	if h == nil || h.Header.Application == nil {
		r.app = history.Application{}
	} else {
		r.app = *h.Header.Application
	}
	if h == nil {
		return r
	}
	r.header, r.cutOff = h.Header, h.Truncated
	byName := make(map[string]*replica)
	for _, name := range r.app.Replicas {
		if byName[name] == nil {
			byName[name] = &replica{name: name}
			r.replicas = append(r.replicas, byName[name])
		}
	}
	for i := range h.Events {
		r.add(&h.Events[i], byName)
	}
	for _, all := range r.answers {
		slices.SortStableFunc(all, func(a, b *history.Event) int { return cmp.Compare(a.Time, b.Time) })
	}
	r.collectFaults(h.Events)
	for _, p := range r.replicas {
		slices.SortStableFunc(p.shown, func(a, b *history.Event) int { return cmp.Compare(a.Time, b.Time) })
		r.collectHolds(p)
	}
	r.collectAppended()
	for _, holds := range r.byKey {
		slices.SortStableFunc(holds, func(a, b *hold) int { return cmp.Compare(a.start, b.start) })
	}
	return r
}

func (r *run) add(e *history.Event, byName map[string]*replica) {
	if r.begin == 0 || e.Time < r.begin {
		r.begin = e.Time
	}
	r.end = max(r.end, e.Time)
	if e.Process == history.Load {
		r.load = append(r.load, e)
	}
	if e.F == history.Started {
		r.starts[e.Process] = append(r.starts[e.Process], e)
	}
	switch p := byName[e.Process]; {
	case e.Process == history.Resource && r.app.Resource:
		r.accesses = append(r.accesses, e)
		if by := byName[e.Client]; by != nil && e.Type == history.OK {
			by.used = append(by.used, e)
			if e.F == history.Write {
				by.shown = append(by.shown, e)
			}
		}
	case e.F == history.Phase:
		r.phases[e.Note] = e
	case e.F == history.Asked:
		r.answers[e.Key] = append(r.answers[e.Key], e)
	case e.F == history.Accepted:
		r.accepted = append(r.accepted, e)
	case p != nil:
		p.lines = append(p.lines, e)
		if e.F == history.Holding || e.F == history.Did || e.F == history.Ended {
			p.shown = append(p.shown, e)
		}
	}
}

// collectFaults puts the stages of each fault together. A replica that is killed is started again, which its launcher
// says: the fault is over then, whether or not the nemesis says so as well.
func (r *run) collectFaults(events []history.Event) {
	for _, f := range checker.Faults(events) {
		all := fault{Fault: f, over: f.HealedAt()}
		if again := r.startedAgain(&all); all.over == 0 && again != 0 {
			all.over, all.End, all.Healed = again, max(all.End, again), true
		}
		if all.Applied && all.End == 0 {
			all.End = r.end
		}
		r.faults = append(r.faults, all)
	}
}

// startedAgain is when all targets of a kill, which are replicas, had been started again; 0 if they were not.
func (r *run) startedAgain(f *fault) int64 {
	if !f.Applied || !f.Does(history.Ends) {
		return 0
	}
	last := int64(0)
	for _, target := range f.Targets {
		p := r.replica(target)
		if p == nil {
			return 0
		}
		i := slices.IndexFunc(p.lines, func(e *history.Event) bool { return e.F == history.Started && e.From >= f.Begin })
		if i < 0 {
			return 0
		}
		last = max(last, p.lines[i].Time)
	}
	return last
}

func (r *run) replica(name string) *replica {
	i := slices.IndexFunc(r.replicas, func(p *replica) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return r.replicas[i]
}

// inForce returns the faults that may have been in force in [from, to].
func (r *run) inForce(from, to int64) []*fault {
	var found []*fault
	for i := range r.faults {
		if f := &r.faults[i]; f.Applied && f.Begin <= to && f.End >= from {
			found = append(found, f)
		}
	}
	return found
}

func ids(faults []*fault) []string {
	var names []string
	for _, f := range faults {
		names = append(names, f.ID)
	}
	return names
}

// stateOf is what faults did to a replica: the first of killed, paused and cut off that is true of it.
func stateOf(replica string, faults []*fault) checker.HolderState {
	does := func(effects ...history.Effect) bool {
		return slices.ContainsFunc(faults, func(f *fault) bool {
			return f.Involves(replica) && slices.ContainsFunc(effects, f.Does)
		})
	}
	switch {
	case does(history.Ends):
		return checker.HolderKilled
	case does(history.Stops):
		return checker.HolderPaused
	case does(history.Cuts, history.Disturbs):
		return checker.HolderCutOff
	}
	return checker.HolderHealthy
}

// phase is when a phase began, 0 if it never did.
func (r *run) phase(name string) int64 {
	if e := r.phases[name]; e != nil {
		return e.Time
	}
	return 0
}

// covering finds out whether spans that may overlap cover a time.
type covering struct {
	from []int64 // in order
	ends []int64 // the latest end of the spans up to here
}

func newCovering(spans [][2]int64) covering {
	slices.SortFunc(spans, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	var c covering
	for i, s := range spans {
		if i > 0 {
			s[1] = max(s[1], c.ends[i-1])
		}
		c.from, c.ends = append(c.from, s[0]), append(c.ends, s[1])
	}
	return c
}

// meets says whether any of the spans meets a time.
func (c covering) meets(from, to int64) bool {
	n := sort.Search(len(c.from), func(i int) bool { return c.from[i] > to })
	return n > 0 && c.ends[n-1] >= from
}
