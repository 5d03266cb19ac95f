package checker

import (
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"

	"lockcheck/history"
	"lockcheck/internal/stats"
)

// faultEvidence judges whether what was asked for was really done to the lock:
// a pause that hit nobody inside a section proves nothing.
func faultEvidence(r *run) (judged, []FaultCoverage) {
	j := judged{Finding: Finding{Property: FaultEvidence, Verdict: Valid}}
	coverage := []FaultCoverage{}
	var unhealed []string
	m := r.meetings()
	for i := range r.faults {
		f := &r.faults[i]
		f.cover(r, m)
		coverage = append(coverage, f.FaultCoverage)
		// A run that was interrupted twice heals nothing: it removes all.
		if (f.Applied && r.completed() || f.unhealed) && !f.Healed {
			unhealed = append(unhealed, f.ID)
		}
	}
	missing := missingKinds(r)
	switch {
	case len(unhealed) > 0:
		j.Verdict = Broken
		j.Summary = "fault " + unhealed[0] + " could not be proven healed"
		if len(unhealed) > 1 {
			j.Summary = "faults " + strings.Join(unhealed, ", ") + " could not be proven healed"
		}
	case len(missing) > 0:
		j.Verdict, j.Summary = Undecided, strings.Join(missing, "; ")
	case len(askedKinds(r)) == 0 && len(coverage) == 0:
		j.Verdict, j.Summary = NotApplicable, "no faults were asked for"
	default:
		j.Summary = summed(append(coverageClauses(coverage, r.header), reaction(coverage))...)
	}
	return j, coverage
}

func askedKinds(r *run) []string {
	var kinds []string
	for _, kind := range r.header.Faults {
		if kind != "" && kind != "none" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// missingKinds says of each kind asked for that never counted why.
func missingKinds(r *run) []string {
	var missing []string
	for _, kind := range askedKinds(r) {
		// That a pause of a worker was real says nothing of one of a server.
		workers, servers := r.tallied(kind, true), r.tallied(kind, false)
		if workers.injected == 0 && servers.injected == 0 {
			missing = append(missing, missingKind(kind, tallied{}))
		}
		for _, t := range []tallied{workers, servers} {
			if t.injected > 0 && t.counted == 0 {
				missing = append(missing, missingKind(kind, t))
			}
		}
	}
	return missing
}

// tallied counts the faults of a kind on workers, or on servers. Only those that
// act on processes are told apart.
type tallied struct {
	onWorkers                 bool
	aimed                     bool // one at least at another moment of a worker than holding
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
		t.aimed = t.aimed || f.strikesCall()
		if f.Proven {
			t.proven++
		}
		if f.Counts() {
			t.counted++
		}
	}
	return t
}

func missingKind(kind string, t tallied) string {
	does := func(effect history.Effect) bool { return history.Does(kind, effect) }
	switch {
	case t.injected == 0:
		return "no " + kind + " was ever applied"
	case t.proven == 0:
		return "no " + kind + " could be proven"
	case t.aimed:
		return "no " + kind + " came at the moment that it was aimed at"
	case does(history.Ends) && t.onWorkers:
		return "no " + kind + " hit a worker that held the lock or was about to"
	case does(history.Stops) && t.onWorkers, does(history.Defers):
		return "no " + kind + " hit a holder inside its section while another worker asked for the lock"
	case hitsProcesses(kind):
		return "no " + kind + " of a server met an operation"
	case does(history.Cuts), does(history.Disturbs):
		return "no " + kind + " met a packet"
	case does(history.Steps):
		return "no clock was moved while anybody held the lock or asked for it"
	}
	return "no " + kind + " is known to have mattered"
}

// nameSet is a set of names of processes.
type nameSet map[string]bool

// workersIn returns the names of the workers of a run, of which there can be thousands.
func workersIn(h history.Header) nameSet {
	names := make(nameSet, len(h.Workers))
	for _, w := range h.Workers {
		names[w] = true
	}
	return names
}

func (f *FaultCoverage) onlyWorkers(workers nameSet) bool {
	return len(f.Targets) > 0 && !slices.ContainsFunc(f.Targets, func(t string) bool { return !workers[t] })
}

// meansWorkers goes by the role of a fault that was never begun.
func (f *FaultCoverage) meansWorkers(workers nameSet) bool {
	if len(f.Targets) > 0 {
		return f.onWorkers(workers)
	}
	return workerRole.MatchString(f.Role)
}

// workerRole is what a role that means workers has in it: "follower" has not.
var workerRole = regexp.MustCompile(`\b(actor|holder|waiter|workers?|w[0-9]+)\b`)

func (f *FaultCoverage) onWorkers(workers nameSet) bool {
	return slices.ContainsFunc(f.Targets, func(t string) bool { return workers[t] })
}

// cover fills in whether the fault mattered, and why not.
func (f *fault) cover(r *run, m meetings) {
	if !f.Proven || !f.Applied {
		if f.Reason == "" {
			f.Reason = "not proven"
		}
		return
	}
	reason := ""
	hitsWorker := f.does(history.Ends) || f.does(history.Stops)
	switch {
	case hitsWorker && f.strikesCall() && slices.Contains(f.Targets, f.Actor):
		f.hitHolder(r) // for whether it outlasted
		f.Exercised = true
	case f.does(history.Ends) && f.onWorkers(r.workers):
		f.Exercised = f.killedAtWork(r)
		reason = "no target held the lock or was about to"
	case f.does(history.Stops) && f.onWorkers(r.workers), f.does(history.Defers):
		reason = f.hitHolder(r)
		if f.Role == roleWaiter {
			f.Exercised = f.Exercised || f.hitWaiter(r)
			reason = "no target was asking for the lock"
		}
	case hitsProcesses(f.Kind):
		f.Exercised = m.metOperation(f)
		reason = "no operation was open meanwhile"
	case f.does(history.Cuts), f.does(history.Disturbs):
		f.Exercised = f.dropped != nil && *f.dropped > 0
		if reason = "it met no packet"; f.dropped == nil {
			reason = "how many packets it met is not known"
		}
	case f.does(history.Steps):
		f.Exercised = m.metHold(f) || m.metOperation(f)
		reason = "nobody held the lock or asked for it meanwhile"
	default:
		reason = "this version cannot tell whether a fault of this kind mattered"
	}
	if missed := f.missedMoment(r); f.Exercised && missed != "" {
		f.Exercised, reason = false, missed
	}
	if !f.Exercised && f.Reason == "" {
		f.Reason = reason
	}
}

// hitHolder fills in whether a target held the lock meanwhile that somebody else asked for, and says why
// not: a lock that nobody asks for any more has nothing to show of what the fault does to it.
func (f *fault) hitHolder(r *run) string {
	reason := "no target held the lock"
	if f.certainTo == 0 {
		return reason
	}
	met := func(h *attempt) {
		if !r.contended(h, f.certainFrom, max(f.certainTo, h.holdEnd)) {
			if reason = "nobody else asked for the lock that its target held"; permits(r.header) > 1 {
				reason = "permits were left for all who asked"
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

// contended says whether as many others as the lock permits asked for the lock of a hold in a time, or held it, not
// to share it; or there is nobody else.
func (r *run) contended(h *attempt, from, to int64) bool {
	others := 0
	for name, w := range r.byWorker {
		if name == h.worker {
			continue
		}
		for a := range w.between(from, to) {
			asked := a.acquire.invoke <= to && a.acquire.over(r.end) >= from
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

// roleWaiter is the role of a fault that is aimed at who asks for the lock: its answer
// may be a grant whose lease is over when it goes on.
const roleWaiter = "waiter"

// hitWaiter says whether an acquire of a target was open for as long as the fault
// certainly was in force.
func (f *fault) hitWaiter(r *run) bool {
	if f.certainTo == 0 {
		return false
	}
	for w := range r.workersOf(f) {
		for a := range w.between(f.certainFrom, f.certainTo) {
			if a.acquire.invoke <= f.certainFrom && a.acquire.over(r.end) >= f.certainTo {
				return true
			}
		}
	}
	return false
}

// killedAtWork says whether a target held the lock when it was killed, or had a
// call to the service open.
func (f *fault) killedAtWork(r *run) bool {
	for w := range r.workersOf(f) {
		if w.waits {
			return true
		}
	}
	for range r.holdsOfKilled(f) {
		return true
	}
	return false
}

// workersOf returns what the workers among the targets of a fault did.
func (r *run) workersOf(f *fault) iter.Seq[*actor] {
	return func(yield func(*actor) bool) {
		for _, target := range f.Targets {
			if w := r.byWorker[r.names.Of(target)]; w != nil && f.Applied && !yield(w) {
				return
			}
		}
	}
}

// holdsOfKilled returns the holds that ended because a fault killed their holder.
func (r *run) holdsOfKilled(f *fault) iter.Seq[*attempt] {
	return func(yield func(*attempt) bool) {
		for w := range r.workersOf(f) {
			if !f.does(history.Ends) {
				return
			}
			for _, a := range w.left {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// reaction says how quickly faults followed the events that they waited for.
func reaction(coverage []FaultCoverage) string {
	var since []time.Duration
	for _, f := range coverage {
		if f.Since > 0 {
			since = append(since, f.Since)
		}
	}
	if len(since) == 0 {
		return ""
	}
	return fmt.Sprintf("in force %s after the event waited for (median of %d; longest %s)",
		dur(int64(stats.Median(since))), len(since), dur(int64(slices.Max(since))))
}

// FaultGroup is the faults of one kind that are judged by the same rule: one that is aimed
// at who waits, or at servers, need not have hit a holder.
type FaultGroup struct {
	Kind string
	Name string // of the group, such as "server pause"
	// OfHolders: to count, a fault had to hit a worker inside its section.
	OfHolders bool
	Faults    []FaultCoverage
}

// Count is how many of the faults are so.
func (g FaultGroup) Count(is func(FaultCoverage) bool) int64 {
	n := int64(0)
	for _, f := range g.Faults {
		if is(f) {
			n++
		}
	}
	return n
}

// FaultGroups sorts faults, by the first of each group.
func FaultGroups(coverage []FaultCoverage, h history.Header) []FaultGroup {
	var groups []FaultGroup
	workers := workersIn(h)
	for _, f := range coverage {
		name := f.group(workers)
		i := slices.IndexFunc(groups, func(g FaultGroup) bool { return g.Name == name })
		if i < 0 {
			i = len(groups)
			stays := history.Does(f.Kind, history.Stops) || history.Does(f.Kind, history.Defers)
			groups = append(groups, FaultGroup{Kind: f.Kind, Name: name, OfHolders: stays && name == f.Kind})
		}
		groups[i].Faults = append(groups[i].Faults, f)
	}
	return groups
}

// group is the name of the group of a fault.
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

// coverageClauses says per group how many faults counted.
func coverageClauses(coverage []FaultCoverage, h history.Header) []string {
	var clauses []string
	for _, g := range FaultGroups(coverage, h) {
		// What a run that was ended early never came to is not held against it.
		all := cmp.Or(g.Count(func(f FaultCoverage) bool { return f.Applied }), int64(len(g.Faults)))
		counted, clause := g.Count(FaultCoverage.Counts), ""
		switch {
		case g.OfHolders:
			clause = fmt.Sprintf("%d of %s hit a holder", counted, count(all, g.Name, plural(g.Name)))
			if h.Lease > 0 { // or there is nothing to outlast
				clause += fmt.Sprintf(", %d outlasted its validity", g.Count(func(f FaultCoverage) bool { return f.Outlasted }))
			}
		case g.Name == g.Kind && history.Does(g.Kind, history.Ends):
			clause = fmt.Sprintf("%d of %s hit a worker that held the lock or was about to", counted, count(all, g.Name, plural(g.Name)))
		default:
			clause = fmt.Sprintf("%d of %s proven and exercised", counted, count(all, g.Name+" fault", g.Name+" faults"))
		}
		clauses = append(clauses, clause)
	}
	return clauses
}

// plural of the name of a kind of fault.
func plural(kind string) string {
	if strings.HasSuffix(kind, "sh") {
		return kind + "es"
	}
	return kind + "s"
}
