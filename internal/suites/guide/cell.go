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
	Broken       State = "broken"        // any run ever broke it
	Held         State = "held"          // in all conclusive runs, of which there is at least one
	TooShort     State = "too short"     // it held, but in sections that ended before anything could happen
	NotSupported State = "not supported" // the lock does not support the fault or the guard
	NotTried     State = "not tried"     // there is no conclusive run
)

// Cell is what is known of a lock under a fault behind a guard.
type Cell struct {
	Lock, Fault, Guard string
	State              State
	// Why says why the fault or guard is not supported; "" in other states.
	Why string
	// Groups are the conclusive runs, by experiment, the worst first.
	Groups []Group
	// Held is how many runs held, and Updates how many updates they acknowledged. If the state is Held, Bound
	// is the failure rate that these runs cannot rule out: the upper end of the exact 95 % interval for 0
	// failures in that many runs.
	Held, Updates int64
	Bound         float64
	// Short are runs that held but could hardly fail, see Run.tooShort.
	Short []Run
	// Silent are inconclusive runs: undecided, broken, or without a proof of the fault.
	Silent []Run
}

// Group is the runs of one experiment, or the runs with random faults.
type Group struct {
	Experiment string // "" for random faults
	Version    string // of the servers, see Run.Version; a group never mixes versions
	// Case is the special case of the cell's fault that the runs had; "" for the fault itself.
	Case string
	// Class is the worst way in which the lock broke; "" if it did not break.
	Class Class
	// Broke is how many of N runs broke the lock in the way of Class. Low and High are the exact 95 % interval
	// of that share. Less is how many runs broke it less badly.
	Broke, Less, N int64
	Low, High      float64
	// Setup lists the unusual settings that all runs counted in Broke share.
	Setup []string
	// With lists other faults that were in force in the runs counted in Broke; if no run broke the lock, in all
	// runs.
	With []string
	// Needed lists those faults of With, of another kind or target, without which no run of the cell breaks as
	// badly.
	Needed []string
	Runs   []Run
	// Pool has the acknowledged and lost updates of all runs of the group.
	Pool checker.Pool
}

// Worst is the group that broke the cell; false if the cell is not broken.
func (c Cell) Worst() (Group, bool) {
	if c.State != Broken {
		return Group{}, false
	}
	return c.Groups[0], true
}

// Cell returns what is known of a lock under a fault (see Normal) behind a guard. The worst known result
// determines its state, however many runs held, and however old that result is.
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
		switch tells, is := run.conclusiveUnder(fault); {
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

// addRefused adds a run in which the guard refused accesses that would have broken the lock.
func (c *Cell) addRefused(run Run) {
	if tells, is := run.conclusiveUnder(c.Fault); tells && is {
		c.add(run, "")
	}
}

// conclusiveUnder says whether the run had the fault (is), and whether the run is conclusive about it (tells).
func (r Run) conclusiveUnder(fault string) (tells, is bool) {
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

// narrower lists faults that are special cases of a fault. What breaks a lock in a special case breaks the
// lock in general. That the lock held in a special case says little.
func narrower(fault string) []string {
	all := []string{fault + briefly, fault + backwards, fault + partly}
	if kind, isServer := strings.CutSuffix(fault, ":one server"); isServer {
		all = append(all, kind+":leader")
	}
	return all
}

// addNarrower adds a run with a special case of the fault to the runs of that case.
func (c *Cell) addNarrower(run Run) {
	for _, fault := range narrower(c.Fault) {
		if tells, is := run.conclusiveUnder(fault); tells && is {
			c.add(run, fault)
			return
		}
	}
}

func (r Run) decided() bool { return r.Breaks() || r.Verdict == checker.Valid }

// blamed lists the faults that explain why a run broke: the faults that can have its causes, or all faults if
// none can.
func (r Run) blamed() []string {
	switch _, long := r.fault(LongWork); {
	case long:
		return []string{LongWork}
	case r.passedOnLate():
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
	case len(blamed) > 0: // if one fault is a special case of another, blame the general fault
		return slices.DeleteFunc(blamed, func(f string) bool {
			return slices.ContainsFunc(met, func(whole string) bool { return slices.Contains(narrower(whole), f) })
		})
	case len(met) > 0:
		return met
	}
	for _, f := range r.Faults { // no fault was proven, but the break must still count
		blamed = append(blamed, f.Name)
	}
	return blamed
}

// explained lists the causes of checker.Causes that a fault can explain.
func explained(fault string) []string {
	kind, whom := splitFault(fault)
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
	for _, effect := range []history.Effect{history.Stops, history.Cuts, history.Disturbs, history.Impairs, history.Deposes} {
		for _, cause := range []string{checker.CauseServerFault, checker.CauseUnrenewed, checker.CauseLateRelease} {
			add(effect, false, cause)
		}
	}
	for _, cause := range []string{checker.CauseUnrenewed, checker.CauseLateRelease} { // an answer was lost
		add(history.Cuts, true, cause)
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

// dropDuplicates drops duplicates. The track record of an experiment may sum up single runs that are stored as well, so
// the larger count wins. If single runs break more often than the record says, they cannot be part of it and
// are kept.
func dropDuplicates(all []Run) []Run {
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

// countRuns counts the runs of a group under a fault.
func (g *Group) countRuns(fault string) {
	if !g.Runs[0].isTrial() {
		g.Runs = dropDuplicates(g.Runs)
	}
	breaks := slices.DeleteFunc(slices.Clone(g.Runs), func(r Run) bool { return !r.Breaks() })
	for _, r := range breaks {
		if class := r.Class(); g.Class == "" || class.severity() < g.Class.severity() {
			g.Class = class
		}
	}
	for _, r := range g.Runs {
		g.N += r.conclusiveRuns()
	}
	for _, r := range breaks {
		if r.Class() == g.Class {
			g.broke(r)
			g.addOtherFaults(r, fault)
		} else {
			g.Less += r.runsWithVerdict()
		}
	}
	if len(breaks) == 0 {
		for _, r := range g.Runs {
			g.addOtherFaults(r, fault)
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
	g.Broke += r.runsWithVerdict()
}

// addOtherFaults adds the other faults that were in force in a run.
func (g *Group) addOtherFaults(run Run, fault string) {
	for _, f := range run.Faults {
		if f.Name != fault && f.Met > 0 && !slices.Contains(g.With, f.Name) {
			g.With = append(g.With, f.Name)
		}
	}
}

// neededFaults leaves out faults with the kind and target of the cell itself: a clock that is set right again has
// also moved back.
func (c Cell) neededFaults(g Group) []string {
	thisKind, this := splitFault(c.Fault)
	var all []string
	for _, with := range g.With {
		kind, whom := splitFault(with)
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

// breaksWithout says whether any run breaks the lock as badly although the other fault was not exercised.
func (c Cell) breaksWithout(kind, whom string, class Class) bool {
	return slices.ContainsFunc(c.Groups, func(g Group) bool {
		return slices.ContainsFunc(g.Runs, func(r Run) bool {
			return r.Breaks() && r.Class().severity() <= class.severity() && !r.hasExercised(kind, whom)
		})
	})
}

// hasExercised says whether a kind of fault was proven and exercised on a target, special cases included.
func (r Run) hasExercised(kind, whom string) bool {
	return slices.ContainsFunc(r.Faults, func(f Fault) bool {
		thisKind, this := splitFault(f.Name)
		return f.Met > 0 && kind == thisKind && whom == this
	})
}

// faultNames names a fault, and the faults without which no run shows that it breaks the lock.
func (g Group) faultNames(fault string) string {
	return strings.Join(append([]string{fault}, g.Needed...), " with ")
}

// judge derives the state of the cell from the added runs.
func (c *Cell) judge() {
	for i := range c.Groups {
		c.Groups[i].countRuns(cmp.Or(c.Groups[i].Case, c.Fault))
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
			c.Groups[i].Needed = c.neededFaults(c.Groups[i])
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

// compareGroups sorts the worst first: groups that broke the lock, by severity, and then breaks that no guard
// refused. Aimed experiments come before random faults, because their commands show the break each time. Then
// come locks used in the normal way, and then breaks that are most certain.
func compareGroups(a, b Group) int {
	return cmp.Or(
		cmp.Compare(boolToInt(b.Broke > 0), boolToInt(a.Broke > 0)),
		cmp.Compare(a.Class.severity(), b.Class.severity()),
		cmp.Compare(boolToInt(a.Runs[0].refused), boolToInt(b.Runs[0].refused)),
		cmp.Compare(a.chance(), b.chance()),
		cmp.Compare(boolToInt(len(a.Setup) > 0), boolToInt(len(b.Setup) > 0)),
		cmp.Compare(b.Low, a.Low),
		cmp.Compare(b.N, a.N),
		cmp.Compare(a.Experiment, b.Experiment),
		cmp.Compare(b.Version, a.Version),
	)
}

// chance ranks how much a break depended on chance, 0 for none.
func (g Group) chance() int {
	switch {
	case g.Broke == 0:
		return 0
	case !g.Runs[0].aimed():
		return 2
	case g.Runs[0].isTrial():
		return 1 // a trial may miss, which is why trials come in series
	}
	return boolToInt(g.Runs[0].Control())
}

// poolOf adds up the acknowledged and lost updates of runs.
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

// splitFault splits the name of a fault into kind and target, without the suffixes of special cases.
func splitFault(fault string) (kind, whom string) {
	kind, whom, _ = strings.Cut(fault, ":")
	whom, _, _ = strings.Cut(whom, inVersion)
	for _, special := range []string{briefly, backwards, partly, amongOnes} {
		whom = strings.TrimSuffix(whom, special)
	}
	return kind, whom
}

// unsupported says why a lock under a fault behind a guard cannot be run; "" if it can, or if lockcheck does
// not know the lock.
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
