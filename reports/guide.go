package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
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

// GuideTable has what is known of locks behind one guard.
type GuideTable struct {
	Guard string
	Rows  []GuideRow
}

// GuideRow is a lock under the faults of the columns.
type GuideRow struct {
	Lock  string
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
	Bound  float64      // the share of runs that may break it, if all held
	Silent []GuideRun   // runs that say nothing
	// Kin are locks that end by the same rule and were broken, of a cell that held.
	Kin []string
}

// States of a GuideCell.
const (
	GuideBroken       = "broken"        // by the lock
	GuideAfterExpiry  = "after expiry"  // by a holder that went on after its lease, at worst
	GuideUnlocked     = "without lock"  // written although the lock was not held, at worst
	GuideTokens       = "tokens"        // did not increase, at worst
	GuideStuck        = "stuck"         // at worst
	GuideHeld         = "held"          // in all runs that tell
	GuideNotSupported = "not supported" // the fault or the guard
	GuideNotTried     = "not tried"     // no run tells
)

// GuideGroup is the runs of one experiment.
type GuideGroup struct {
	Experiment string // "" for random faults
	Case       string // of the fault of the cell, that its runs had; "" for the fault itself
	State      string // what the worst of its runs shows: a Guide constant
	Broke, N   int64
	Low, High  float64 // 95 % interval of the share of runs that break it
	With       []string
	Pool       checker.Pool
	Runs       []GuideRun
}

// GuideRun is a run for those who want to see it.
type GuideRun struct {
	ID, When, Lockcheck, Lock, Line, Sentence string
	Verdict                                   checker.Verdict
	Seed                                      uint64
	Versions                                  map[string]string
	Setup                                     []string
	Report                                    string // address of its page; "" for none
}

// GuideNeed is what somebody needs of a lock, and which locks meet that.
type GuideNeed struct {
	Need, Rule string
	Fits       []GuideFit
}

// GuideFit is a lock that meets a need behind a guard.
type GuideFit struct {
	Lock, Guard string
	Runs        int64 // in which no break was seen
	// Held of Settings, no fault among them, had such runs.
	Held, Settings int
	Bound          float64  // the share of runs that may break it all the same; 0 if none held
	Known          []string // what is known of it
	Unproven       []string // what no run has shown
}

// guideFitHead are the columns of the locks that meet a need, and guideFitNote tells what they say.
var guideFitHead = []string{"lock", "guard", "held in", "not ruled out", "known of it", "never tried"}

const guideFitNote = "Held: runs without a break, and under how many of the settings that the need is about; to have no fault is one of them. Not ruled out: how many of such runs may break it all the same, " +
	"by the upper end of the 95 % interval for the setting with the fewest runs that held. Left out are locks that are wrong on purpose, the embedded one, and other versions of servers. Rows of which the fewest settings did not hold come first, then the order is that of names: it is no ranking."

// Cells are those of guideFitHead.
func (f GuideFit) Cells() []string {
	bound := "unknown"
	if f.Held > 0 {
		bound = "up to " + wholePercent(f.Bound) + " %"
	}
	return []string{
		f.Lock, f.Guard, fmt.Sprintf("%s, %d of %s", many(f.Runs, "run"), f.Held, many(int64(f.Settings), "setting")), bound,
		strings.Join(f.Known, "; "), strings.Join(f.Unproven, "; "),
	}
}

// GuideSpeed is how fast a lock is, as measured.
type GuideSpeed struct {
	Lock               string
	Acquires           int64 // 0 where none was measured
	AcquireP50         time.Duration
	AcquireP99         time.Duration
	Failovers          int64
	FailoverP50        time.Duration
	FailoverMax, Lease time.Duration
	Stuck              int64
	Loss               checker.Pool // while holders were stopped
}

// text is a cell in a few words that mislead nobody who reads only them.
func (c GuideCell) text() string {
	switch c.State {
	case GuideHeld:
		return heldIn(c.Held, c.Bound) + c.kin()
	case GuideNotSupported, GuideNotTried:
		return c.State
	}
	g := c.Groups[0]
	word := map[string]string{GuideBroken: "broken", GuideAfterExpiry: "used after expiry", GuideUnlocked: "written without the lock", GuideTokens: "token out of order", GuideStuck: "stuck"}[g.State]
	return fmt.Sprintf("%s in %s of %s: %s", word, grouped(g.Broke), many(g.N, "run"), c.name(g))
}

// kin says what this lock may not have been tried with.
func (c GuideCell) kin() string {
	switch len(c.Kin) {
	case 0:
		return ""
	case 1:
		return "; " + clean(c.Kin[0]) + ", which ends by the same rule, is broken"
	}
	return "; " + strings.Join(cleanAll(c.Kin), ", ") + ", which end by the same rule, are broken"
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
	return slices.Contains([]string{GuideBroken, GuideAfterExpiry, GuideUnlocked, GuideTokens, GuideStuck}, c.State)
}

// hasRuns says whether there are any to show.
func (c GuideCell) hasRuns() bool { return len(c.Groups)+len(c.Silent) > 0 }

// sentences say all that is known of a cell.
func (c GuideCell) sentences() []string {
	var all []string
	if c.Why != "" {
		all = append(all, "Not supported: "+clean(c.Why)+".")
	}
	for _, g := range c.Groups {
		all = append(all, c.sentence(g))
	}
	if n := len(c.Silent); n > 0 {
		all = append(all, many(int64(n), "run")+" said nothing: undecided, broken, or without the fault ever proven.")
	}
	return all
}

func (c GuideCell) sentence(g GuideGroup) string {
	if g.Broke == 0 {
		return c.name(g) + ": " + heldIn(g.N, g.High) + "." + g.lost()
	}
	how := map[string]string{
		GuideBroken: "by the lock itself", GuideAfterExpiry: "by a holder that went on after its lease, which no lease prevents",
		GuideUnlocked: "by a worker that went on without the lock, for it ignored that it was refused",
		GuideTokens:   "a fencing token did not increase, and nothing else was violated", GuideStuck: "nobody was granted it again in time",
	}[g.State]
	text := fmt.Sprintf("%s: broken in %d of %s (95 %%: %s–%s %% of runs), %s.", c.name(g), g.Broke, many(g.N, "run"), inPercent(g.Low), inPercent(g.High), how)
	if len(g.With) > 0 {
		text += " Also in force: " + strings.Join(cleanAll(g.With), ", ") + "."
	}
	return text + g.lost()
}

func (g GuideGroup) lost() string {
	if g.Pool.Acknowledged == 0 {
		return ""
	}
	interval := strings.TrimPrefix(g.Pool.IntervalOver(), "over ") + ": too few for an interval"
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
	return append(all, c.Silent...)
}

// others sums up the cells that no column has: those in which the lock was broken.
func (r GuideRow) others() []GuideCell {
	return slices.DeleteFunc(slices.Clone(r.Others), func(c GuideCell) bool {
		return !c.broken()
	})
}

// otherFaults is the head of the column of others.
const otherFaults = "other faults that broke it (most were never tried)"

// tells says whether any cell of the row says more than that there was no run.
func (r GuideRow) tells() bool {
	return len(r.others()) > 0 || slices.ContainsFunc(r.Cells, GuideCell.hasRuns)
}

// guideLegend explains the words of the tables.
const guideLegend = "broken: by the lock itself, which gave itself to two or let a wrong release through. " +
	"used after expiry: a holder went on after its lease had ended, which no lease prevents: it needs a guard, or work that may be done twice. " +
	"written without the lock: a worker ignored that its request failed. " +
	"token out of order: a fencing token did not increase, and nothing else was violated; docs/locks says why. " +
	"stuck: nothing was lost, but nobody was granted the lock again in time. How often is said of the experiment that is named, the worst of the cell, alone. held: in all runs that tell, and how many of such runs may break it " +
	"all the same (upper end of the exact 95 % interval of 0 of that many; of one run up to 98 %). not tried: no run tells. Rows differ also because not every experiment was made with each lock; the last column has only what broke. " +
	"Guards are what the resource checks at each access. fence: that the token is not older than one it has seen. cas: that nothing was written since the worker read. match: that the last reader wrote. " +
	"ask: the service, whether the worker still holds the lock. database: nothing, for the data are in the database that is the lock, and written through the connection that holds it. idempotency-key: that the same work is not done twice."
