package checker

import (
	"cmp"
	"iter"
	"regexp"
	"slices"

	"lockcheck/history"
)

// faultEvidence judges whether the requested faults really hit the lock. For example, a pause that hit no
// worker inside its section proves nothing.
func faultEvidence(r *run) (judged, []FaultCoverage) {
	j := judged{Finding: Finding{Property: FaultEvidence, Verdict: Valid}}
	coverage := []FaultCoverage{}
	var unhealed []string
	m := r.meetings()
	for i := range r.faults {
		f := &r.faults[i]
		f.cover(r, m)
		coverage = append(coverage, f.FaultCoverage)
		// A run that was interrupted twice heals no faults; it removes everything.
		if (f.Applied && r.completed() || f.unhealed) && !f.Healed {
			unhealed = append(unhealed, f.ID)
		}
	}
	missing := missingKinds(r)
	switch {
	case len(unhealed) > 0:
		j.because(Broken, Fact{Kind: FactNotProvenHealed, Faults: unhealed})
	case len(missing) > 0:
		j.because(Undecided, missing...)
	case len(AskedKinds(r.header)) == 0 && len(coverage) == 0:
		j.because(NotApplicable, Fact{Kind: FactNoFaults})
	default:
		j.because(Valid, Fact{Kind: FactFaultsCovered})
	}
	return j, coverage
}

// AskedKinds returns the kinds of faults that the run requested.
func AskedKinds(h history.Header) []string {
	var kinds []string
	for _, kind := range h.Faults {
		if kind != "" && kind != "none" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// missingKinds says, for each requested kind whose faults never counted, what they missed.
func missingKinds(r *run) []Fact {
	var missing []Fact
	miss := func(kind string, t tallied) { missing = append(missing, Fact{Kind: t.missed(kind), FaultKind: kind}) }
	for _, kind := range AskedKinds(r.header) {
		// A proven pause of a worker says nothing about a pause of a server.
		workers, servers := r.tallied(kind, true), r.tallied(kind, false)
		if workers.injected == 0 && servers.injected == 0 {
			miss(kind, tallied{})
		}
		for _, t := range []tallied{workers, servers} {
			if t.injected > 0 && t.counted == 0 {
				miss(kind, t)
			}
		}
	}
	return missing
}

// tallied counts the faults of a kind on workers, or on servers. Only faults that act on processes are split
// that way.
type tallied struct {
	onWorkers                 bool
	aimed                     bool // at least one was aimed at a moment other than holding, or at a hold that was over
	injected, proven, counted int
}

func (r *run) tallied(kind string, onWorkers bool) tallied {
	t := tallied{onWorkers: onWorkers}
	for i := range r.faults {
		f := &r.faults[i]
		if f.Kind != kind || !f.Applied || onWorkers != (hitsProcesses(kind) && f.onWorkers(r.workers)) {
			continue
		}
		t.injected++
		t.aimed = t.aimed || f.strikesCall() || f.Missed == MissHoldOver
		if f.Proven {
			t.proven++
		}
		if f.Counts() {
			t.counted++
		}
	}
	return t
}

// missed says what a kind of fault missed whose faults never counted.
func (t tallied) missed(kind string) FactKind {
	does := func(effect history.Effect) bool { return history.Does(kind, effect) }
	switch {
	case t.injected == 0:
		return FactNeverApplied
	case t.proven == 0:
		return FactNeverProven
	case t.aimed:
		return FactMissedMoment
	case does(history.Ends) && t.onWorkers:
		return FactMissedWorkers
	case does(history.Stops) && t.onWorkers, does(history.Defers):
		return FactMissedHolders
	case does(history.Impairs):
		return FactMissedDisk
	case hitsProcesses(kind):
		return FactMissedOperations
	case does(history.Cuts), does(history.Disturbs):
		return FactMissedPackets
	case does(history.Steps):
		return FactMissedAll
	case does(history.Deposes):
		return FactMissedOperations
	}
	return FactEffectUnknown
}

type nameSet map[string]bool

// workersIn returns the names of the workers of a run, possibly thousands, or of the replicas of an
// application.
func workersIn(h history.Header) nameSet {
	names := make(nameSet, len(h.Workers))
	for _, w := range h.Workers {
		names[w] = true
	}
	if h.Application != nil {
		for _, replica := range h.Application.Replicas {
			names[replica] = true
		}
	}
	return names
}

func (f *FaultCoverage) onlyWorkers(workers nameSet) bool {
	return len(f.Targets) > 0 && !slices.ContainsFunc(f.Targets, func(t string) bool { return !workers[t] })
}

// meansWorkers says whether a fault is aimed at workers. If the fault never began, its role decides.
func (f *FaultCoverage) meansWorkers(workers nameSet) bool {
	if len(f.Targets) > 0 {
		return f.onWorkers(workers)
	}
	return workers[f.Role] || workerRole.MatchString(f.Role)
}

// workerRole matches roles that mean workers. "follower", for example, means a server.
var workerRole = regexp.MustCompile(`\b(actor|holder|waiter|workers?|w[0-9]+)\b`)

func (f *FaultCoverage) onWorkers(workers nameSet) bool {
	return slices.ContainsFunc(f.Targets, func(t string) bool { return workers[t] })
}

// cover sets whether the fault mattered, and if not, why.
func (f *fault) cover(r *run, m meetings) {
	if !f.Proven || !f.Applied {
		f.Missed = cmp.Or(f.Missed, MissUnproven)
		return
	}
	var reason MissReason
	hitsWorker := f.does(history.Ends) || f.does(history.Stops)
	switch {
	case hitsWorker && f.strikesCall() && slices.Contains(f.Targets, f.Actor):
		f.hitHolder(r) // sets Outlasted
		f.Exercised = true
	case f.does(history.Ends) && f.onWorkers(r.workers):
		f.Exercised = f.killedAtWork(r)
		reason = MissNoWorker
	case f.does(history.Stops) && f.onWorkers(r.workers), f.does(history.Defers):
		reason = f.hitHolder(r)
		if f.Role == roleWaiter {
			f.Exercised = f.Exercised || f.hitWaiter(r)
			reason = MissNoWaiter
		}
	case f.does(history.Impairs):
		f.Exercised, reason = f.Met()
	case hitsProcesses(f.Kind):
		f.Exercised = m.metOperation(f)
		reason = MissNoOperation
	case f.does(history.Cuts), f.does(history.Disturbs):
		f.Exercised, reason = f.Met()
	case f.does(history.Steps) && f.onWorkers(r.workers):
		f.Exercised = f.hitUse(r)
		reason = MissNobody
	case f.does(history.Steps), f.does(history.Deposes):
		f.Exercised = m.metHold(f) || m.metOperation(f)
		reason = MissNobody
	default:
		reason = MissKind
	}
	if missed := f.missedMoment(r); f.Exercised && missed != "" {
		f.Exercised, f.Outlasted, reason = false, false, missed
	}
	if !f.Exercised {
		f.Missed = cmp.Or(f.Missed, reason)
	}
}

// hitUse says whether a target asked for a lock or held one while the fault certainly was in force. The clock of a worker
// matters to nobody else.
func (f *fault) hitUse(r *run) bool {
	certain, is := f.certain()
	return is && slices.ContainsFunc(f.Targets, func(target string) bool {
		for range r.actor(target).between(certain.from, certain.to) {
			return true
		}
		return false
	})
}

// hitHolder sets whether a target held the lock during the fault while another worker asked for it. If not,
// it returns why. A lock that no other worker asks for shows no effect of the fault.
func (f *fault) hitHolder(r *run) MissReason {
	reason := MissNoHolder
	if f.certainTo == 0 {
		return reason
	}
	met := func(h *attempt) {
		if !r.contended(h, f.certainFrom, max(f.certainTo, h.holdEnd)) {
			if reason = MissNotWanted; permits(r.header) > 1 {
				reason = MissPermitsLeft
			}
			return
		}
		f.Exercised = true
		f.Outlasted = f.Outlasted || h.deadline < f.certainTo
	}
	for w := range r.workersOf(f) {
		if f.does(history.Defers) {
			if h := r.attempt(f.deferred); h != nil && r.byWorker[h.worker] == w && h.heldIn(f.certainFrom, f.certainTo) {
				met(h)
			}
			continue
		}
		for h := range w.heldBetween(f.certainFrom, f.certainTo) {
			met(h)
			if f.Outlasted {
				break
			}
		}
	}
	return reason
}

// contended says whether, within a time, as many others as the lock permits asked for the lock of a hold or
// held it. Others that share the lock with the hold do not count. It is true if there are no other workers.
func (r *run) contended(h *attempt, from, to int64) bool {
	others := 0
	for name, w := range r.byWorker {
		if name == h.worker {
			continue
		}
		for a := range w.between(from, to) {
			asked := a.acquire.invoke <= to && a.acquire.doneOr(r.end) >= from
			if a.key == h.key && !a.shares(h) && (asked || a.heldIn(from, to)) {
				if others++; others >= permits(r.header) {
					return true
				}
				break
			}
		}
	}
	return max(len(r.workers), len(r.byWorker)) <= 1
}

// roleWaiter is the role of a fault that is aimed at a worker that asks for the lock. The answer to its
// acquire may be a grant whose lease is over when the worker goes on.
const roleWaiter = "waiter"

// hitWaiter says whether an acquire of a target was open for as long as the fault was certainly in force.
func (f *fault) hitWaiter(r *run) bool {
	if f.certainTo == 0 {
		return false
	}
	for w := range r.workersOf(f) {
		for a := range w.between(f.certainFrom, f.certainTo) {
			if a.acquire.invoke <= f.certainFrom && a.acquire.doneOr(r.end) >= f.certainTo {
				return true
			}
		}
	}
	return false
}

// killedAtWork says whether a killed target held the lock or had a call to the service open.
func (f *fault) killedAtWork(r *run) bool {
	for w := range r.workersOf(f) {
		if w.hasOpenCall {
			return true
		}
	}
	for range r.holdsOfKilled(f) {
		return true
	}
	return false
}

// workersOf yields the workers among the targets of an applied fault.
func (r *run) workersOf(f *fault) iter.Seq[*actor] {
	return func(yield func(*actor) bool) {
		for _, target := range f.Targets {
			if w := r.byWorker[r.names.Of(target)]; w != nil && f.Applied && !yield(w) {
				return
			}
		}
	}
}

// holdsOfKilled yields the holds that ended because a fault killed their holder.
func (r *run) holdsOfKilled(f *fault) iter.Seq[*attempt] {
	return func(yield func(*attempt) bool) {
		for w := range r.workersOf(f) {
			if !f.does(history.Ends) {
				return
			}
			for _, a := range w.abandoned {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// FaultGroup is the faults of one kind that are judged by the same rule. For example, a fault aimed at a
// waiter or at a server need not hit a holder.
type FaultGroup struct {
	Kind string
	Name string // of the group, such as "server pause"
	// OfHolders means that a fault counts only if it hit a worker inside its section.
	OfHolders bool
	Faults    []FaultCoverage
}

// Count is the number of faults for which is returns true.
func (g FaultGroup) Count(is func(FaultCoverage) bool) int64 {
	n := int64(0)
	for _, f := range g.Faults {
		if is(f) {
			n++
		}
	}
	return n
}

// FaultGroups groups faults. Groups are in the order of their first faults.
func FaultGroups(coverage []FaultCoverage, h history.Header) []FaultGroup {
	var groups []FaultGroup
	workers := workersIn(h)
	if h.Application != nil { // its replicas have the roles that servers have elsewhere
		workers["leader"], workers["follower"] = true, true
	}
	for _, f := range coverage {
		name := f.group(workers)
		i := slices.IndexFunc(groups, func(g FaultGroup) bool { return g.Name == name })
		if i < 0 {
			i = len(groups)
			stays := history.Does(f.Kind, history.Stops) || history.Does(f.Kind, history.Defers)
			groups = append(groups, FaultGroup{Kind: f.Kind, Name: name, OfHolders: stays && name == f.Kind && h.Application == nil})
		}
		groups[i].Faults = append(groups[i].Faults, f)
	}
	return groups
}

func (f *FaultCoverage) group(workers nameSet) string {
	switch {
	case hitsProcesses(f.Kind) && !f.meansWorkers(workers):
		return "server " + f.Kind
	case f.strikesCall() && (history.Does(f.Kind, history.Stops) || history.Does(f.Kind, history.Ends)):
		return f.Moment + " " + f.Kind
	case f.Role == roleWaiter && history.Does(f.Kind, history.Stops):
		return roleWaiter + " " + f.Kind
	}
	return f.Kind
}
