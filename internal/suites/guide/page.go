package guide

import (
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/stats"
	"lockcheck/reports"
)

// Page is the guide for people. Reports has the address of the page of a run, by its id,
// where there is one; it may be nil.
func (e Evidence) Page(pages map[string]string) reports.Guide {
	b := builder{e, pages}
	g := reports.Guide{Runs: int64(len(e)), Faults: Usual()}
	for _, r := range e {
		day, _, _ := strings.Cut(r.When, "T")
		if g.From == "" || day < g.From {
			g.From = day
		}
		g.To = max(g.To, day)
		g.Silent += int64(one(r.Verdict != checker.Valid && !r.Breaks()))
	}
	for _, guard := range e.guards() {
		g.Tables = append(g.Tables, b.table(guard))
	}
	for _, need := range Needs() {
		n := reports.GuideNeed{Need: need.Name, Rule: need.Rule}
		for _, fit := range need.Fits(e) {
			n.Fits = append(n.Fits, reports.GuideFit{
				Lock: fit.Lock, Guard: fit.Guard, Runs: fit.Runs, Held: fit.Held, Settings: fit.Settings, Bound: fit.Bound,
				Known: fit.Known, Unproven: fit.Unproven,
			})
		}
		g.Needs = append(g.Needs, n)
	}
	for _, lock := range e.Locks() {
		g.Speeds = append(g.Speeds, e.speed(lock))
	}
	return g
}

// View is a cell for people.
func (c Cell) View() reports.GuideCell { return builder{}.cell(c) }

// builder makes what package reports shows.
type builder struct {
	Evidence
	pages map[string]string
}

// guards lists those of all runs, none first.
func (e Evidence) guards() []string {
	var guards []string
	for _, r := range e {
		if !slices.Contains(guards, r.Guard) {
			guards = append(guards, r.Guard)
		}
	}
	slices.SortFunc(guards, compareGuards)
	return guards
}

// table has the locks of which there are runs behind a guard.
func (b builder) table(guard string) reports.GuideTable {
	t := reports.GuideTable{Guard: guard}
	usual := Usual()
	for _, lock := range b.Locks() {
		if !slices.Contains(b.guardsOf(lock), guard) {
			continue
		}
		row := reports.GuideRow{Lock: lock}
		for _, fault := range b.faultsOf(lock, guard) {
			cell := b.cell(b.Cell(lock, fault, guard))
			if slices.Contains(usual, fault) {
				row.Cells = append(row.Cells, cell)
			} else {
				row.Others = append(row.Others, cell)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (b builder) cell(c Cell) reports.GuideCell {
	view := reports.GuideCell{Lock: c.Lock, Fault: c.Fault, Guard: c.Guard, State: string(c.State), Why: c.Why, Held: c.Held, Bound: c.Bound, Silent: b.runs(c.Silent)}
	if c.State == Held {
		view.Kin = b.brokenKin(c.Lock, c.Fault, c.Guard)
	}
	if worst, broken := c.Worst(); broken {
		view.State = stateOf(worst.Class)
	}
	for _, g := range c.Groups {
		group := reports.GuideGroup{
			Experiment: g.Experiment, Case: g.Case, State: reports.GuideHeld, Broke: g.Broke, N: g.N, Low: g.Low, High: g.High,
			With: g.With, Pool: g.Pool, Runs: b.runs(g.Runs),
		}
		if g.Broke > 0 {
			group.State = stateOf(g.Class)
		}
		view.Groups = append(view.Groups, group)
	}
	return view
}

func stateOf(c Class) string {
	return map[Class]string{ByLock: reports.GuideBroken, ByExpiry: reports.GuideAfterExpiry, ByUse: reports.GuideUnlocked, ByToken: reports.GuideTokens, Stuck: reports.GuideStuck}[c]
}

func (b builder) runs(all []Run) []reports.GuideRun {
	var views []reports.GuideRun
	for _, r := range all {
		views = append(views, reports.GuideRun{
			ID: r.ID, When: r.When, Lockcheck: r.Lockcheck, Lock: r.Lock, Line: r.Line, Sentence: r.Sentence, Verdict: r.Verdict,
			Seed: r.Seed, Versions: r.Versions, Setup: r.Setup, Report: b.pages[r.ID],
		})
	}
	return views
}

// speed sums up how fast a lock was, without a guard.
func (e Evidence) speed(lock string) reports.GuideSpeed {
	s := reports.GuideSpeed{Lock: lock}
	var medians []time.Duration
	var stopped []Run
	for _, r := range e {
		if r.Lock != lock || r.Guard != history.GuardNone {
			continue
		}
		if f := r.Failover; f != nil && f.Holders > 0 && !r.movesClocks() {
			s.Lease = max(s.Lease, r.Lease)
			s.Failovers += f.Holders
			s.Stuck += f.Stuck
			s.FailoverMax = max(s.FailoverMax, f.Longest)
			if f.Holders > f.Stuck {
				medians = append(medians, f.Median)
			}
		}
		if f, asked := r.fault(Normal("pause:holder")); asked && f.Met > 0 {
			stopped = append(stopped, r)
		}
	}
	s.FailoverP50 = stats.Median(medians)
	if a := e.alone(lock); a != nil {
		s.Acquires, s.AcquireP50, s.AcquireP99 = a.N, a.P50, a.P99
	}
	s.Loss = poolOf(stopped)
	return s
}

// movesClocks says whether a clock was, by which a lease may end at any time.
func (r Run) movesClocks() bool {
	return slices.ContainsFunc(r.Faults, func(f Fault) bool {
		kind, _ := split(f.Name)
		return history.Does(kind, history.Steps)
	})
}
