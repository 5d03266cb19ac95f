package guide

import (
	"fmt"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/reports"
)

// Page is the guide for people. Reports has the address of the page of a run, by its id,
// where there is one; it may be nil.
func (e Evidence) Page(pages map[string]string) reports.Guide {
	b := builder{e, pages}
	g := e.Summary()
	for _, guard := range e.guards() {
		g.Tables = append(g.Tables, b.table(guard))
	}
	for _, lock := range e.Locks() {
		g.Speeds = append(g.Speeds, e.speed(lock))
	}
	return g
}

// Summary is what the guide rests on, and which locks meet which need.
func (e Evidence) Summary() reports.Guide {
	g := reports.Guide{Runs: int64(len(e)), Faults: Usual()}
	for _, r := range e {
		day, _, _ := strings.Cut(r.When, "T")
		if g.From == "" || day < g.From {
			g.From = day
		}
		g.To = max(g.To, day)
		g.Silent += int64(one(r.Verdict != checker.Valid && !r.Breaks()))
	}
	for _, need := range Needs() {
		n := reports.GuideNeed{Need: need.Name, Rule: need.Rule}
		choice := need.Choice(e)
		for _, fit := range choice.Open {
			n.Open = append(n.Open, fmt.Sprintf("%s (%s)", fit.behind(), strings.Join(fit.Open, ", ")))
		}
		for _, fit := range choice.Out {
			n.Out = append(n.Out, fmt.Sprintf("%s (%s)", fit.behind(), fit.Against))
		}
		for _, fit := range choice.Meet {
			info, _ := infoOf(fit.Lock)
			n.Fits = append(n.Fits, reports.GuideFit{
				Lock: fit.Lock, What: info.Summary, Guard: fit.Guard, Runs: fit.Runs, Held: fit.Held, Settings: fit.Settings, Bound: fit.Bound,
				Known: fit.Known, Unproven: fit.Unproven,
			})
		}
		g.Needs = append(g.Needs, n)
	}
	return g
}

// behind names a lock and its guard, if it has one.
func (f Fit) behind() string {
	name := f.Lock
	if name == history.LockNone {
		name = "no lock at all"
	}
	if f.Guard == history.GuardNone {
		return name
	}
	return name + " with guard " + f.Guard
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
		row := reports.GuideRow{Lock: lock, Note: noChoice(lock)}
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
	view := reports.GuideCell{Lock: c.Lock, Fault: c.Fault, Guard: c.Guard, State: string(c.State), Why: c.Why, Held: c.Held, Updates: c.Updates, Bound: c.Bound, Short: b.runs(c.Short), Silent: b.runs(c.Silent)}
	if c.State == Held || c.State == TooShort {
		view.Kin = b.brokenKin(c.Lock, c.Fault, c.Guard)
	}
	if worst, broken := c.Worst(); broken {
		view.State = stateOf(worst.Class)
	}
	for _, g := range c.Groups {
		group := reports.GuideGroup{
			Experiment: g.Experiment, Case: g.Case, State: reports.GuideHeld, Broke: g.Broke, Less: g.Less, N: g.N, Low: g.Low, High: g.High,
			Setup: g.Setup, With: g.With, Needed: g.Needed, Pool: g.Pool, Runs: b.runs(g.Runs),
		}
		if g.Broke > 0 {
			group.State = stateOf(g.Class)
		}
		view.Groups = append(view.Groups, group)
	}
	return view
}

func stateOf(c Class) string {
	return map[Class]string{ByLock: reports.GuideBroken, ByExpiry: reports.GuideAfterExpiry, ByUse: reports.GuideUnlocked, ByToken: reports.GuideTokens, Stuck: reports.GuideStuck, Late: reports.GuideLate}[c]
}

func (b builder) runs(all []Run) []reports.GuideRun {
	var views []reports.GuideRun
	for _, r := range all {
		views = append(views, reports.GuideRun{
			ID: r.ID, When: r.When, Lockcheck: r.Lockcheck, Lock: r.Lock, Line: r.Line, Sentence: r.sentence(), Verdict: r.Verdict, Broke: r.Breaks(),
			Seed: r.Seed, Versions: r.Versions, Setup: r.setup(), Report: b.pages[r.ID],
		})
	}
	return views
}
