package guide

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/stats"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// State is what is known of a lock under a fault.
type State string

const (
	Broken       State = "broken"        // by any run ever
	Held         State = "held"          // in all runs that tell, of which there are some
	TooShort     State = "too short"     // it held in sections that were over before anything could happen
	NotSupported State = "not supported" // the fault, or the guard
	NotTried     State = "not tried"     // or no run tells
)

// Cell is what is known of a lock under a fault behind a guard.
type Cell struct {
	Lock, Fault, Guard string
	State              State
	// Why it is not supported; "" for other states.
	Why string
	// Groups are the runs that tell, by experiment, the worst first.
	Groups []Group
	// Held is how many runs held, with so many Updates, and Bound how large the share of runs that break it can
	// be if it is Held: the end of the exact 95 % interval of 0 of that many.
	Held, Updates int64
	Bound         float64
	// Short are runs that held, but could hardly do otherwise: see Run.tooShort.
	Short []Run
	// Silent are runs that say nothing: undecided, broken, or without the fault ever proven.
	Silent []Run
}

// Group is the runs of one experiment, or those with random faults.
type Group struct {
	Experiment string // "" for random faults
	Version    string // of the servers, see Run.Version; runs of two versions are never one group
	// Case is the narrower fault that its runs had; "" for that of the cell.
	Case string
	// Class is how the lock broke, at worst; "" if it did not.
	Class Class
	// Broke is how many runs of N broke it so, from Low to High of such runs (exact 95 %
	// interval). Less is how many broke it less badly.
	Broke, Less, N int64
	Low, High      float64
	// Setup is what all runs that broke it so did otherwise than the lock is usually used.
	Setup []string
	// With are other faults that were in force in those, or in all runs if none broke it.
	With []string
	// Needed are those of another kind or target without which no run of the cell breaks it as badly.
	Needed []string
	Runs   []Run
	// Pool has the updates of its runs and what was lost of them.
	Pool checker.Pool
}

// Worst is the group that the cell is broken by; false if it is not.
func (c Cell) Worst() (Group, bool) {
	if c.State != Broken {
		return Group{}, false
	}
	return c.Groups[0], true
}

// Cell returns what is known of a lock under a fault (see Normal) behind a guard. The worst
// that is known makes its state, however many runs held, and whenever.
func (e Evidence) Cell(lock, fault, guard string) Cell {
	c := Cell{Lock: lock, Fault: fault, Guard: guard}
	for _, run := range e {
		if run.Lock != lock {
			continue
		}
		if run.Guard != guard {
			if alone, shows := run.unguarded(); shows && guard == history.GuardNone {
				c.addRefused(alone)
			}
			continue
		}
		switch tells, is := run.under(fault); {
		case is && !tells:
			c.Silent = append(c.Silent, run)
		case is && !run.Breaks() && run.tooShort(fault):
			c.Short = append(c.Short, run)
		case is:
			c.add(run, "")
		default:
			c.addNarrower(run)
		}
	}
	c.judge()
	return c
}

// addRefused adds a run whose guard refused what would have broken the lock.
func (c *Cell) addRefused(run Run) {
	if tells, is := run.under(c.Fault); tells && is {
		c.add(run, "")
	}
}

// under says whether the run is about a fault, and whether it tells anything of it.
func (r Run) under(fault string) (tells, is bool) {
	if fault == None {
		return r.decided(), len(r.Faults) == 0
	}
	f, asked := r.fault(fault)
	if !asked {
		return false, false
	}
	if r.Breaks() {
		return true, slices.Contains(r.blamed(), fault)
	}
	return r.Verdict == checker.Valid && f.Met > 0, true
}

// narrower are faults that are one case of another: what breaks a lock in that case breaks
// it; that it held in that case says little.
func narrower(fault string) []string {
	all := []string{fault + briefly, fault + backwards, fault + partly}
	if kind, isServer := strings.CutSuffix(fault, ":one server"); isServer {
		all = append(all, kind+":leader")
	}
	return all
}

// addNarrower adds a run under a case of the fault to the runs under that case.
func (c *Cell) addNarrower(run Run) {
	for _, fault := range narrower(c.Fault) {
		if tells, is := run.under(fault); tells && is {
			c.add(run, fault)
			return
		}
	}
}

func (r Run) decided() bool { return r.Breaks() || r.Verdict == checker.Valid }

// blamed are the faults by which a run that breaks is explained: those that do what its causes
// name, or all if none does.
func (r Run) blamed() []string {
	switch _, long := r.fault(LongWork); {
	case long:
		return []string{LongWork}
	case r.late():
		return r.clocksMoved()
	}
	var met, blamed []string
	for _, f := range r.Faults {
		if f.Met > 0 {
			met = append(met, f.Name)
		}
		if f.Met > 0 && slices.ContainsFunc(explained(f.Name), func(cause string) bool { return r.Causes[cause] > 0 }) {
			blamed = append(blamed, f.Name)
		}
	}
	switch {
	case len(blamed) > 0: // where one fault is a case of another, that is the whole
		return slices.DeleteFunc(blamed, func(f string) bool {
			return slices.ContainsFunc(met, func(whole string) bool { return slices.Contains(narrower(whole), f) })
		})
	case len(met) > 0:
		return met
	}
	for _, f := range r.Faults { // none was proven: it must not be lost
		blamed = append(blamed, f.Name)
	}
	return blamed
}

// explained are the causes of checker.Causes that a fault can be behind.
func explained(fault string) []string {
	kind, whom := split(fault)
	onWorkers := nemesis.MeansWorkers(whom)
	var causes []string
	add := func(effect history.Effect, ofWorkers bool, cause string) {
		if history.Does(kind, effect) && onWorkers == ofWorkers {
			causes = append(causes, cause)
		}
	}
	add(history.Stops, true, checker.CausePaused)
	add(history.Cuts, true, checker.CauseCutOff)
	add(history.Steps, false, checker.CauseClock)
	add(history.Ends, false, checker.CauseServerLost)
	for _, effect := range []history.Effect{history.Stops, history.Cuts, history.Disturbs} {
		add(effect, false, checker.CauseServerFault)
	}
	add(history.Defers, onWorkers, checker.CauseInFlight)
	return causes
}

func (c *Cell) add(run Run, narrower string) {
	i := slices.IndexFunc(c.Groups, func(g Group) bool {
		return g.Experiment == run.Experiment && g.Version == run.Version() && g.Case == narrower && g.Runs[0].refused == run.refused
	})
	if i < 0 {
		i = len(c.Groups)
		c.Groups = append(c.Groups, Group{Experiment: run.Experiment, Version: run.Version(), Case: narrower})
	}
	c.Groups[i].Runs = append(c.Groups[i].Runs, run)
}

// once drops what is there twice: the track record of an experiment may sum up single runs that are
// there as well, so the larger of the two counts. Single runs that break more often than the record says
// cannot be part of it, and stay.
func once(all []Run) []Run {
	var single, breaking, summed []Run
	var n, broke int64
	for _, r := range all {
		switch {
		case r.Of > 0:
			summed, n = append(summed, r), n+r.Of
			if r.Breaks() {
				broke += r.Met
			}
		case r.Breaks():
			single, breaking = append(single, r), append(breaking, r)
		default:
			single = append(single, r)
		}
	}
	switch {
	case n < int64(len(single)):
		return single
	case broke < int64(len(breaking)):
		return append(summed, breaking...)
	}
	return summed
}

// sum counts the runs of a group under a fault.
func (g *Group) sum(fault string) {
	g.Runs = once(g.Runs)
	breaks := slices.DeleteFunc(slices.Clone(g.Runs), func(r Run) bool { return !r.Breaks() })
	for _, r := range breaks {
		if class := r.Class(); g.Class == "" || class.severity() < g.Class.severity() {
			g.Class = class
		}
	}
	for _, r := range g.Runs {
		g.N += r.tells()
	}
	for _, r := range breaks {
		if r.Class() == g.Class {
			g.broke(r)
			g.with(r, fault)
		} else {
			g.Less += r.shows()
		}
	}
	if len(breaks) == 0 {
		for _, r := range g.Runs {
			g.with(r, fault)
		}
	}
	g.Low, g.High = stats.Exact(g.Broke, g.N)
	g.Pool = poolOf(g.Runs)
}

func (g *Group) broke(r Run) {
	if setup := r.setup(); g.Broke == 0 {
		g.Setup = setup
	} else {
		g.Setup = slices.DeleteFunc(g.Setup, func(s string) bool { return !slices.Contains(setup, s) })
	}
	g.Broke += r.shows()
}

// with adds the other faults that were in force in a run.
func (g *Group) with(run Run, fault string) {
	for _, f := range run.Faults {
		if f.Name != fault && f.Met > 0 && !slices.Contains(g.With, f.Name) {
			g.With = append(g.With, f.Name)
		}
	}
}

// needed leaves out what is of the kind and target of the cell: a clock that is set right again
// has moved back.
func (c Cell) needed(g Group) []string {
	thisKind, this := split(c.Fault)
	var all []string
	for _, with := range g.With {
		kind, whom := split(with)
		name := strings.TrimSuffix(with, briefly)
		if kind == thisKind && whom == this || slices.Contains(all, name) {
			continue
		}
		if !c.breaksWithout(kind, whom, g.Class) {
			all = append(all, name)
		}
	}
	return all
}

// breaksWithout says whether any run breaks the lock that badly where a fault met nobody.
func (c Cell) breaksWithout(kind, whom string, class Class) bool {
	return slices.ContainsFunc(c.Groups, func(g Group) bool {
		return slices.ContainsFunc(g.Runs, func(r Run) bool {
			return r.Breaks() && r.Class().severity() <= class.severity() && !r.met(kind, whom)
		})
	})
}

// met says whether a kind of fault met anybody, in any special case.
func (r Run) met(kind, whom string) bool {
	return slices.ContainsFunc(r.Faults, func(f Fault) bool {
		thisKind, this := split(f.Name)
		return f.Met > 0 && kind == thisKind && whom == this
	})
}

// under names a fault, and those without which no run shows that it breaks the lock.
func (g Group) under(fault string) string {
	return strings.Join(append([]string{fault}, g.Needed...), " with ")
}

// judge makes the state of what was added.
func (c *Cell) judge() {
	for i := range c.Groups {
		c.Groups[i].sum(cmp.Or(c.Groups[i].Case, c.Fault))
	}
	c.Groups = slices.DeleteFunc(c.Groups, func(g Group) bool { return g.Case != "" && g.Broke == 0 })
	for _, g := range c.Groups {
		if g.Case == "" {
			c.Held += g.N - g.Broke - g.Less
			c.Updates += g.Pool.Acknowledged
		}
	}
	slices.SortStableFunc(c.Groups, compareGroups)
	for i := range c.Groups {
		if c.Groups[i].Broke > 0 {
			c.Groups[i].Needed = c.needed(c.Groups[i])
		}
	}
	switch {
	case len(c.Groups) > 0 && c.Groups[0].Broke > 0:
		c.State = Broken
	case c.Held > 0:
		c.State = Held
		_, c.Bound = stats.Exact(0, c.Held)
	case len(c.Short) > 0:
		c.State = TooShort
	default:
		c.State = NotTried
		if c.Why = unsupported(c.Lock, c.Fault, c.Guard); c.Why != "" {
			c.State = NotSupported
		}
	}
}

// compareGroups puts the worst first: what breaks the lock at all, by whose fault, and then
// what does so where no guard hides it. What is made to break it comes before what did by chance,
// for its command shows the break each time; then the lock as it is usually used, and what breaks
// it most surely.
func compareGroups(a, b Group) int {
	return cmp.Or(
		cmp.Compare(one(b.Broke > 0), one(a.Broke > 0)),
		cmp.Compare(a.Class.severity(), b.Class.severity()),
		cmp.Compare(one(a.Runs[0].refused), one(b.Runs[0].refused)),
		cmp.Compare(a.chance(), b.chance()),
		cmp.Compare(one(len(a.Setup) > 0), one(len(b.Setup) > 0)),
		cmp.Compare(b.Low, a.Low),
		cmp.Compare(b.N, a.N),
		cmp.Compare(a.Experiment, b.Experiment),
		cmp.Compare(b.Version, a.Version),
	)
}

// chance is how much of it there is in what broke the lock.
func (g Group) chance() int {
	switch {
	case g.Broke == 0:
		return 0
	case g.Experiment == "":
		return 2
	case strings.HasPrefix(g.Experiment, attackPrefix):
		return 1 // it may miss, so it comes in series
	}
	return one(g.Runs[0].Control())
}

// poolOf adds up what became of the updates of runs.
func poolOf(all []Run) checker.Pool {
	var results []checker.Results
	for _, r := range all {
		result := checker.Results{Verdict: r.Verdict}
		if u := r.Updates; u != nil {
			result.Losses, result.Updates.Acknowledged, result.Updates.Lost = u.Units, u.Acknowledged, u.Lost
			result.Updates.LostOver = u.Over
		}
		results = append(results, result)
	}
	return checker.PoolOf(results)
}

// split takes the name of a fault apart, without what makes it a special case.
func split(fault string) (kind, whom string) {
	kind, whom, _ = strings.Cut(fault, ":")
	for _, special := range []string{briefly, backwards, partly, amongOnes} {
		whom = strings.TrimSuffix(whom, special)
	}
	return kind, whom
}

// unsupported says why there can be no run of a lock under a fault behind a guard; "" if
// there can, or if lockcheck does not know the lock.
func unsupported(lock, fault, guard string) string {
	lock, _, _ = strings.Cut(lock, useSign)
	name, version, _ := strings.Cut(lock, "@")
	found, err := lockfile.Find(name)
	if err != nil {
		return ""
	}
	if lacks := workloads.Guard(guard).Lacks(found.Info); lacks != "" {
		return "the lock " + lacks
	}
	workload := history.WorkloadSet
	if guard == string(workloads.IdempotencyKey) {
		workload = history.WorkloadJobs
	}
	_, err = runs.OutlineOf(runs.Options{
		Lock: name, ServerVersion: version, Workload: workload, Guard: guard, Nemesis: fault, Interval: runs.DefaultInterval,
		Concurrency: runs.DefaultConcurrency, Use: workloads.Use{Section: runs.DefaultSection()}, MinOps: runs.DefaultMinOps, Seed: 1,
	})
	var lacking *nemesis.UnsupportedError
	if errors.As(err, &lacking) {
		return lacking.Fault + ": " + lacking.Err.Error()
	}
	return ""
}
