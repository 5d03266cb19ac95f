package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/present"
)

// Guide is what is known of locks, for those who have to choose one.
type Guide struct {
	// Runs is how many runs it rests on, of which Silent say nothing: undecided or broken.
	Runs, Silent int64
	From, To     string   // days of the first and the last of them
	Faults       []string // columns, by name
	Tables       []GuideTable
	Needs        []GuideNeed
	Speeds       []GuideSpeed
}

// days are those of the first and the last run.
func (g Guide) days() string {
	if g.From == g.To {
		return clean(g.From)
	}
	return clean(g.From) + " to " + clean(g.To)
}

// GuideTable has what is known of locks behind one guard.
type GuideTable struct {
	Guard string
	Rows  []GuideRow
}

// GuideRow is a lock under the faults of the columns.
type GuideRow struct {
	Lock  string
	Note  string // why nobody should choose it; "" for others
	Cells []GuideCell
	// Others are those of faults that no column has.
	Others []GuideCell
}

// GuideCell is what is known of a lock under a fault behind a guard.
type GuideCell struct {
	Lock, Fault, Guard string
	// State is one of the Guide constants.
	State  string
	Why    string       // it is not supported
	Groups []GuideGroup // of runs that tell, the worst first
	Held   int64        // runs
	// Updates were acknowledged in the runs that tell.
	Updates int64
	Bound   float64    // the share of runs that may break it, if all held
	Short   []GuideRun // runs that held, with sections that were over before the lock could pass on
	Silent  []GuideRun // runs that say nothing
	// Kin are locks that end by the same rule and failed by themselves, of a cell that held.
	Kin []string
}

// States of a GuideCell.
const (
	GuideBroken       = "broken"        // by the lock
	GuideAfterExpiry  = "after expiry"  // by a holder that went on after its lease, at worst
	GuideUnlocked     = "without lock"  // written although the lock was not held, at worst
	GuideTokens       = "tokens"        // did not increase, at worst
	GuideStuck        = "stuck"         // at worst
	GuideLate         = "late"          // passed on much later than its rule says, at worst
	GuideHeld         = "held"          // in all runs that tell
	GuideTooShort     = "too short"     // held in sections that were over before anything could happen
	GuideNotSupported = "not supported" // the fault or the guard
	GuideNotTried     = "not tried"     // no run tells
)

// GuideGroup is the runs of one experiment.
type GuideGroup struct {
	Experiment string // "" for random faults
	Case       string // of the fault of the cell, that its runs had; "" for the fault itself
	State      string // what the worst of its runs shows: a Guide constant
	// Broke is how many runs of N broke it so, and Less how many did less badly.
	Broke, Less, N int64
	Low, High      float64  // 95 % interval of the share of runs that break it so
	Setup          []string // what the runs that broke it so did otherwise than usual
	With           []string
	Needed         []string // those of With without which no run shows that it breaks
	Pool           checker.Pool
	Runs           []GuideRun
}

// GuideRun is a run for those who want to see it.
type GuideRun struct {
	ID, When, Lockcheck, Lock, Line, Sentence string
	Verdict                                   checker.Verdict
	Broke                                     bool // the lock, in whichever way
	Seed                                      uint64
	Versions                                  map[string]string
	Setup                                     []string
	Report                                    string // address of its page; "" for none
}

// GuideNeed is what somebody needs of a lock, and which locks meet that.
type GuideNeed struct {
	Need, Rule string
	Fits       []GuideFit
	// Open are locks of which nobody can say whether they meet it, with what was not shown.
	Open []string
	// Out are locks that do not meet it, with what rules them out.
	Out []string
}

// OpenText names them in a sentence; "" for none.
func (n GuideNeed) OpenText() string {
	if len(n.Open) == 0 {
		return ""
	}
	return "Not shown either way, for want of runs that tell: " + strings.Join(n.Open, "; ") + "."
}

// OutText names those that do not meet it in a sentence; "" for none.
func (n GuideNeed) OutText() string {
	if len(n.Out) == 0 {
		return ""
	}
	return "Ruled out: " + strings.Join(n.Out, "; ") + "."
}

// GuideFit is a lock that meets a need behind a guard.
type GuideFit struct {
	Lock, Guard string
	What        string // the lock is; "" for one that lockcheck does not know
	Runs        int64  // in which no break was seen
	// Held of Settings, no fault among them, had such runs.
	Held, Settings int
	Bound          float64  // the share of runs that may break it all the same; 0 if none held
	Known          []string // what is known of it
	Unproven       []string // what no run has shown
}

// guideFitHead are the columns of the locks that meet a need.
var guideFitHead = []string{"lock", "guard", "held in", "not ruled out", "known of it", "of the usual faults, never tried"}

// Cells are those of guideFitHead.
func (f GuideFit) Cells() []string {
	bound := "unknown"
	if f.Held > 0 {
		bound = "up to " + wholePercent(f.Bound) + " %"
	}
	return []string{
		lockLabel(f.Lock, f.What), f.Guard, fmt.Sprintf("%s, %d of %s", many(f.Runs, "run"), f.Held, many(int64(f.Settings), "setting")), bound,
		strings.Join(f.Known, "; "), strings.Join(f.Unproven, "; "),
	}
}

// GuideSpeed is how fast a lock is, as measured.
type GuideSpeed struct {
	Lock        string
	Note        string // see GuideRow
	Acquires    int64  // 0 where none was measured
	AcquireP50  time.Duration
	AcquireP99  time.Duration
	Failovers   int64
	FailoverP50 time.Duration
	FailoverMax time.Duration
	// Lease is that of the holders, which LockDelay is added to; 0 for none.
	Lease, LockDelay time.Duration
	Stuck            int64
	Loss             checker.Pool // while holders were stopped
	Stops            int64        // of holders, in the runs of Loss
	// NeedsNoFault: it loses updates anyhow, so that stops are not why.
	NeedsNoFault bool
}

// losesAnyhow is said of a lock instead of what it lost when its holder was stopped.
const losesAnyhow = "loses updates without any fault"

// empty says whether nothing was measured.
func (s GuideSpeed) empty() bool {
	return s.Acquires == 0 && s.Failovers == 0 && s.Loss.Acknowledged == 0 && !s.NeedsNoFault
}

// text is a cell in a few words that mislead nobody who reads only them.
func (c GuideCell) text() string {
	switch c.State {
	case GuideHeld:
		return heldIn(c.Held, c.Bound) + c.few() + c.ofAll() + c.kin()
	case GuideTooShort:
		return "too short to tell: held in " + many(int64(len(c.Short)), "run") + c.kin()
	case GuideNotSupported, GuideNotTried:
		return c.State
	}
	g := c.Groups[0]
	name := strings.Join(append([]string{c.name(g)}, cleanAll(g.Needed)...), " with ")
	return fmt.Sprintf("%s in %s of %s: %s", g.word(), grouped(g.Broke), many(g.N, "run"), name)
}

// word is how a lock broke.
func (g GuideGroup) word() string {
	return map[string]string{
		GuideBroken: guideBroken, GuideAfterExpiry: "used after expiry", GuideUnlocked: "written without the lock",
		GuideTokens: "token out of order", GuideStuck: "stuck", GuideLate: guideLate,
	}[g.State]
}

// fewUpdates are those that say little.
const fewUpdates = 20

// few says so where hardly anything was done under the lock.
func (c GuideCell) few() string {
	if c.Updates >= fewUpdates {
		return ""
	}
	return ", on only " + many(c.Updates, "update")
}

// ofAll says how many runs there were where not all of them tell.
func (c GuideCell) ofAll() string {
	if others := len(c.Short) + len(c.Silent); others > 0 {
		return fmt.Sprintf("; %d more did not tell", others)
	}
	return ""
}

// kin says what this lock may not have been tried with.
func (c GuideCell) kin() string {
	switch len(c.Kin) {
	case 0:
		return ""
	case 1:
		return "; " + clean(c.Kin[0]) + ", which ends by the same rule, failed by itself"
	}
	return "; " + strings.Join(cleanAll(c.Kin), ", ") + ", which end by the same rule, failed by themselves"
}

// heldIn says how little a few runs exclude.
func heldIn(runs int64, bound float64) string {
	if runs == 1 {
		return "held in the one run tried"
	}
	return fmt.Sprintf("held in %s (up to %s %% may break)", many(runs, "run"), wholePercent(bound))
}

// name is that of the reproduction or claim, without what all of them have in common.
func (c GuideCell) name(g GuideGroup) string {
	name := clean(strings.TrimPrefix(strings.TrimPrefix(g.Experiment, "repro/"), "claim/"))
	switch {
	case name == "" && c.Fault == guideNoFault:
		name = "plain runs"
	case name == "":
		name = "random faults"
	}
	if g.Case != "" {
		name += ", " + clean(g.Case)
	}
	if len(g.Setup) > 0 {
		name += " (" + strings.Join(cleanAll(g.Setup), ", ") + ")"
	}
	return name
}

// guideNoFault is the column of runs without one.
const guideNoFault = "none"

// wholePercent rounds up: a bound must not look better than it is.
func wholePercent(share float64) string { return trimmed(min(100, float64(int(100*share+0.999))), 0) }

// heading is the title of the runs of a cell, and what its anchor is made of.
func (c GuideCell) heading() string {
	return clean(c.Lock + ", " + c.Fault + ", guard " + c.Guard)
}

// anchor is that of the heading, as GitHub makes it.
func (c GuideCell) anchor() string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z':
			return r
		case 'A' <= r && r <= 'Z':
			return r + ('a' - 'A')
		}
		return -1
	}, c.heading())
}

// broken says whether any run broke the lock, in whichever way.
func (c GuideCell) broken() bool {
	return slices.Contains([]string{GuideBroken, GuideAfterExpiry, GuideUnlocked, GuideTokens, GuideStuck, GuideLate}, c.State)
}

// Worst says how the lock broke, and which command shows it; false if no run broke it.
func (c GuideCell) Worst() (text, line string, broke bool) {
	if !c.broken() || len(c.Groups) == 0 {
		return "", "", false
	}
	runs := c.Groups[0].Runs
	i := slices.IndexFunc(runs, func(r GuideRun) bool { return r.Broke })
	return c.text(), runs[max(i, 0)].Line, true
}

// guideBroken is said of a lock that gave itself to two, or let a wrong release through.
const guideBroken = "failed by itself"

// guideLate is said of a lock of which nothing was lost, and that was not stuck for good.
const guideLate = "passed on late"

// hasRuns says whether there are any to show.
func (c GuideCell) hasRuns() bool { return len(c.Groups)+len(c.Short)+len(c.Silent) > 0 }

// sentences say all that is known of a cell.
func (c GuideCell) sentences() []string {
	var all []string
	if c.Why != "" {
		all = append(all, "Not supported: "+clean(c.Why)+".")
	}
	for _, g := range c.Groups {
		all = append(all, c.sentence(g))
	}
	if n := len(c.Short); n > 0 {
		all = append(all, many(int64(n), "run")+" held, too short to tell: work was over before the fault could do anything.")
	}
	if n := len(c.Silent); n > 0 {
		all = append(all, many(int64(n), "run")+" said nothing: undecided, broken, or without the fault ever proven.")
	}
	return all
}

func (c GuideCell) sentence(g GuideGroup) string {
	if g.Broke == 0 {
		return c.name(g) + ": " + heldIn(g.N, g.High) + "." + g.alsoInForce() + g.lost()
	}
	how := map[string]string{
		GuideBroken: "the lock gave itself to two, or let a wrong release through", GuideAfterExpiry: "by a holder that went on after its lease, or the connection that stands for one, had ended",
		GuideUnlocked: "by a worker that went on without the lock, for it ignored that it was refused",
		GuideTokens:   "a fencing token did not increase, and nothing else was violated", GuideStuck: "nobody was granted it again in time",
		GuideLate: "nothing was lost, but the lock of a dead or silent holder was free much later than its rule says",
	}[g.State]
	text := fmt.Sprintf("%s: %s in %d of %s (95 %%: %s–%s %% of runs), %s.", c.name(g), g.word(), g.Broke, many(g.N, "run"), inPercent(g.Low), inPercent(g.High), how)
	if g.Less > 0 {
		text += fmt.Sprintf(" In %s it broke less badly.", many(g.Less, "other"))
	}
	return text + g.alsoInForce() + g.lost()
}

func (g GuideGroup) alsoInForce() string {
	if len(g.With) == 0 {
		return ""
	}
	return " Also in force: " + strings.Join(cleanAll(g.With), ", ") + "."
}

func (g GuideGroup) lost() string {
	if g.Pool.Acknowledged == 0 {
		return ""
	}
	interval := present.Units(g.Pool.LossInterval) + ": too few for an interval"
	if g.Pool.IntervalKnown() {
		interval = "95 % interval " + brief(g.Pool.LossInterval)
	}
	return fmt.Sprintf(" Lost %s of %s, %s.", grouped(g.Pool.Lost), many(g.Pool.Acknowledged, "acknowledged update"), interval)
}

// all lists the runs of a cell, those of the worst group first.
func (c GuideCell) all() []GuideRun {
	var all []GuideRun
	for _, g := range c.Groups {
		all = append(all, g.Runs...)
	}
	return slices.Concat(all, c.Short, c.Silent)
}

// others sums up the cells that no column has: those in which the lock was broken.
func (r GuideRow) others() []GuideCell {
	return slices.DeleteFunc(slices.Clone(r.Others), func(c GuideCell) bool {
		return !c.broken()
	})
}

// lockLabel is the name of a lock at the beginning of a row, with a mark on what nobody should choose.
func lockLabel(lock, note string) string {
	if note == "" {
		return lock
	}
	return lock + " (" + note + ")"
}

// otherFaults is the head of the column of others.
const otherFaults = "other faults that broke it (most were never tried)"

// tells says whether any cell of the row says more than that there was no run.
func (r GuideRow) tells() bool {
	return len(r.others()) > 0 || slices.ContainsFunc(r.Cells, GuideCell.hasRuns)
}
