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
	for i := range r.faults {
		f := &r.faults[i]
		f.cover(r)
		coverage = append(coverage, f.FaultCoverage)
		if (f.Applied && r.ended() || f.unhealed) && !f.Healed {
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
			missing = append(missing, missingKind(kind, false, 0, 0))
		}
		for _, t := range []tallied{workers, servers} {
			if t.injected > 0 && t.counted == 0 {
				missing = append(missing, missingKind(kind, t.onWorkers, t.injected, t.proven))
			}
		}
	}
	return missing
}

// tallied counts the faults of a kind on workers, or on servers. Only those that
// act on processes are told apart.
type tallied struct {
	onWorkers                 bool
	injected, proven, counted int
}

func (r *run) tallied(kind string, onWorkers bool) tallied {
	t := tallied{onWorkers: onWorkers}
	for i := range r.faults {
		f := &r.faults[i]
		if f.Kind != kind || !f.Applied || onWorkers != (hitsProcesses(kind) && f.onWorkers(r.header)) {
			continue
		}
		t.injected++
		if f.Proven {
			t.proven++
		}
		if f.Counts() {
			t.counted++
		}
	}
	return t
}

func missingKind(kind string, onWorkers bool, injected, proven int) string {
	does := func(harm history.Effect) bool { return history.Does(kind, harm) }
	switch {
	case injected == 0:
		return "no " + kind + " was ever applied"
	case proven == 0:
		return "no " + kind + " could be proven"
	case does(history.Ends) && onWorkers:
		return "no " + kind + " hit a worker that held the lock or was about to"
	case does(history.Stops) && onWorkers, does(history.Defers):
		return "no " + kind + " hit a holder inside its section"
	case hitsProcesses(kind):
		return "no " + kind + " of a server met an operation"
	case does(history.Cuts), does(history.Disturbs):
		return "no " + kind + " met a packet"
	case does(history.Steps):
		return "no clock was moved while anybody held the lock or asked for it"
	}
	return "no " + kind + " is known to have mattered"
}

func (f *FaultCoverage) onlyWorkers(h history.Header) bool {
	return len(f.Targets) > 0 && !slices.ContainsFunc(f.Targets, func(t string) bool { return !slices.Contains(h.Workers, t) })
}

// meansWorkers goes by the role of a fault that was never begun.
func (f *FaultCoverage) meansWorkers(h history.Header) bool {
	if len(f.Targets) > 0 {
		return f.onWorkers(h)
	}
	return workerRole.MatchString(f.Role)
}

// workerRole is what a role that means workers has in it: "follower" has not.
var workerRole = regexp.MustCompile(`\b(holder|waiter|workers?|w[0-9]+)\b`)

func (f *FaultCoverage) onWorkers(h history.Header) bool {
	return slices.ContainsFunc(f.Targets, func(t string) bool { return slices.Contains(h.Workers, t) })
}

// cover fills in whether the fault mattered, and why not.
func (f *fault) cover(r *run) {
	if !f.Proven || !f.Applied {
		if f.Reason == "" {
			f.Reason = "not proven"
		}
		return
	}
	reason := ""
	switch {
	case f.does(history.Ends) && f.onWorkers(r.header):
		f.Exercised = f.killedAtWork(r)
		reason = "no target held the lock or was about to"
	case f.does(history.Stops) && f.onWorkers(r.header), f.does(history.Defers):
		f.hitHolder(r)
		reason = "no target held the lock"
		if f.Role == roleWaiter {
			f.Exercised = f.Exercised || f.hitWaiter(r)
			reason = "no target was asking for the lock"
		}
	case hitsProcesses(f.Kind):
		f.Exercised = f.metOperation(r)
		reason = "no operation was open meanwhile"
	case f.does(history.Cuts), f.does(history.Disturbs):
		f.Exercised = f.dropped != nil && *f.dropped > 0
		if reason = "it met no packet"; f.dropped == nil {
			reason = "how many packets it met is not known"
		}
	case f.does(history.Steps):
		f.Exercised = f.metHold(r) || f.metOperation(r)
		reason = "nobody held the lock or asked for it meanwhile"
	default:
		reason = "this version cannot tell whether a fault of this kind mattered"
	}
	if !f.Exercised && f.Reason == "" {
		f.Reason = reason
	}
}

func (f *fault) hitHolder(r *run) {
	if f.certainTo == 0 {
		return
	}
	for w := range r.workersOf(f) {
		for h := range w.heldBetween(f.certainFrom, f.certainTo) {
			if f.does(history.Defers) && h.grant != f.deferred {
				continue
			}
			f.Exercised = true
			f.Outlasted = f.Outlasted || h.deadline < f.certainTo
		}
	}
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
		for _, a := range w.between(f.certainFrom, f.certainTo) {
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
		for _, a := range w.between(r.end, r.end) {
			for c := range a.calls {
				if c.outcome == open {
					return true
				}
			}
		}
	}
	for range r.widowed(f) {
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

// widowed returns the holds that ended because a fault killed their holder: the last
// ones of the killed.
func (r *run) widowed(f *fault) iter.Seq[*attempt] {
	return func(yield func(*attempt) bool) {
		for w := range r.workersOf(f) {
			if n := len(w.attempts); f.does(history.Ends) && n > 0 {
				if last := w.attempts[n-1]; last.granted() && last.ended == withoutTrace && !yield(last) {
					return
				}
			}
		}
	}
}

// metHold says whether anybody held the lock while the fault certainly was in force.
func (f *fault) metHold(r *run) bool {
	if f.certainTo == 0 {
		return false
	}
	for _, w := range r.byWorker {
		for range w.heldBetween(f.certainFrom, f.certainTo) {
			return true
		}
	}
	return false
}

// meetsWorker says whether what was done to the targets is any business of a
// worker's: a stopped or dead server is none of those who do not know it.
func (f *fault) meetsWorker(r *run, worker string) bool {
	return !hitsProcesses(f.Kind) ||
		slices.ContainsFunc(r.reaches(worker), func(server string) bool { return slices.Contains(f.Targets, server) })
}

// metOperation says whether a call to the service was open while the fault certainly
// was in force.
func (f *fault) metOperation(r *run) bool {
	if f.certainTo == 0 {
		return false
	}
	for _, w := range r.byWorker {
		if !f.meetsWorker(r, w.name) {
			continue
		}
		for _, a := range w.between(f.certainFrom, f.certainTo) {
			for c := range a.calls {
				if c.invoke <= f.certainTo && c.over(r.end) >= f.certainFrom {
					return true
				}
			}
		}
	}
	return false
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
	for _, f := range coverage {
		name := f.group(h)
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
func (f *FaultCoverage) group(h history.Header) string {
	switch {
	case hitsProcesses(f.Kind) && !f.meansWorkers(h):
		return "server " + f.Kind
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
			outlasted := g.Count(func(f FaultCoverage) bool { return f.Outlasted })
			clause = fmt.Sprintf("%d of %s hit a holder, %d outlasted its promise", counted, count(all, g.Name, plural(g.Name)), outlasted)
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
