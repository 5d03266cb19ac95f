package sweep

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/reports"
)

// Machine is what a sweep runs on.
type Machine struct {
	runs.Machine
	Parallel int // number of trials run in parallel; at least 1
	Progress runs.Progress
	// Budget is the time for the sweep. Trials that would exceed it are not begun.
	Budget time.Duration
}

// requiredPoints lists the points of the first grid and all measured points, in order.
func (f *Folder) requiredPoints() []Point {
	var all []Point
	for _, c := range f.Plan.cells() {
		for _, at := range c.corners() {
			all = append(all, f.Plan.pointAt(at))
		}
	}
	for point := range f.points {
		all = append(all, point)
	}
	slices.SortFunc(all, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Section, b.Section), cmp.Compare(a.TTL, b.TTL), cmp.Compare(a.Pause, b.Pause))
	})
	return slices.Compact(all)
}

// Cost is how many trials the first grid still needs, and their total time if run one after another.
func (f *Folder) Cost() (trials int, takes time.Duration) {
	for _, t := range f.trialsAtUnknown(f.requiredPoints()) {
		trials++
		takes += t.takes
	}
	return trials, takes
}

// Run makes trials until the budget is spent or no trial would add anything. When interrupt is closed, the
// trials in progress end without being counted. The error says why the sweep could not continue. Failures of
// single trials are in the ledger.
func (f *Folder) Run(ctx context.Context, m Machine, interrupt <-chan struct{}) (interrupted bool, err error) {
	end := time.Now().Add(m.Budget)
	for round := 1; ; round++ {
		trials := affordable(f.nextTrials(), time.Duration(m.Parallel)*time.Until(end))
		if len(trials) == 0 {
			return false, nil
		}
		m.Progress.Step("round %d: trials at %s", round, describePoints(trials))
		interrupted, err := f.round(ctx, m, trials, interrupt)
		if interrupted || err != nil {
			return interrupted, err
		}
	}
}

// affordable returns as many trials as there is time for, the shortest first.
func affordable(trials []trial, left time.Duration) []trial {
	slices.SortStableFunc(trials, func(a, b trial) int { return cmp.Compare(a.takes, b.takes) })
	for i, t := range trials {
		if left -= t.takes; left < 0 {
			return trials[:i]
		}
	}
	return trials
}

func (f *Folder) round(ctx context.Context, m Machine, trials []trial, interrupt <-chan struct{}) (bool, error) {
	// Long trials come first, so that the end does not wait for one of them.
	slices.Reverse(trials)
	var jobs []suites.Job
	for _, t := range trials {
		o := t.outline.Options
		o.Seed = f.Plan.Seed + uint64(f.tried(t.point))
		o.Parameters = map[string]string{"sweep": t.point.String()}
		jobs = append(jobs, suites.Job{Name: t.point.String(), Options: o, Outline: t.outline})
	}
	r := suites.Runner{Machine: m.Machine, Slots: m.Parallel, Progress: m.Progress, KeepClusters: true}
	r.Machine.Store = filepath.Join(f.Path, runsFolder)
	r.Done = func(i int, made suites.Made) error {
		e, err := f.record(trials[i].point, made)
		m.Progress.Step("%s: %s", jobs[i].Name, cmp.Or(e.Failed, reports.Summary(made.Outcome.Results)))
		return err
	}
	return r.Run(ctx, jobs, interrupt)
}

func (f *Folder) tried(p Point) int {
	if m := f.points[p]; m != nil {
		return len(m.results) + m.failed
	}
	return 0
}

// record adds a trial to the ledger. Its error is what went wrong after the run was judged.
func (f *Folder) record(p Point, made suites.Made) (entry, error) {
	recorded, err := suites.Record(f.Path, made)
	e := entry{p, recorded}
	return e, cmp.Or(f.ledger.Add(e), f.countTrial(e), err)
}

// Limits of what is spent on a point.
const (
	maxTries   = 2  // trials, as long as no pause hits a holder
	manyPauses = 20 // pauses at the corners of a cell whose neighbours differ
)

// nextTrials lists the trials to make. Points without a result come first. Then the grid is refined where the
// corners of a cell differ. On the finest grid, the differing corners get more trials.
func (f *Folder) nextTrials() []trial {
	if all := f.trialsAtUnknown(f.requiredPoints()); len(all) > 0 {
		return all
	}
	cells := slices.DeleteFunc(f.Plan.cells(), f.cornersAgree)
	var finest []cell
	for len(cells) > 0 {
		var finer []cell
		var points []Point
		for _, c := range cells {
			halves := c.halves()
			if len(halves) == 0 {
				finest = append(finest, c)
			}
			for _, h := range halves {
				points = append(points, f.pointsOf(h)...)
			}
			finer = append(finer, halves...)
		}
		if all := f.trialsAtUnknown(points); len(all) > 0 {
			return all
		}
		cells = slices.DeleteFunc(finer, f.cornersAgree)
	}
	return f.trialsAtFewPauses(finest)
}

func (f *Folder) pointsOf(c cell) []Point {
	var all []Point
	for _, at := range c.corners() {
		all = append(all, f.Plan.pointAt(at))
	}
	return all
}

// cornersAgree says whether all known corners of a cell have the same answer.
func (f *Folder) cornersAgree(c cell) bool {
	apart, overlapped := false, false
	for _, point := range f.pointsOf(c) {
		if violated, known := f.points[point].answer(); known {
			apart, overlapped = apart || !violated, overlapped || violated
		}
	}
	return !apart || !overlapped
}

// trialsAtUnknown plans a trial at each of the points without a result.
func (f *Folder) trialsAtUnknown(points []Point) []trial {
	return f.trialsAt(points, func(p Point) bool {
		_, known := f.points[p].answer()
		return !known && f.tried(p) < maxTries
	})
}

// trialsAtFewPauses plans another trial at those corners of the cells that have had few pauses.
func (f *Folder) trialsAtFewPauses(cells []cell) []trial {
	var points []Point
	for _, c := range cells {
		points = append(points, f.pointsOf(c)...)
	}
	return f.trialsAt(points, func(p Point) bool {
		_, known := f.points[p].answer()
		return known && f.points[p].pauses < manyPauses
	})
}

// trialsAt plans one trial at each point that is worth it. It leaves out points that make no sense for the
// lock.
func (f *Folder) trialsAt(points []Point, worth func(Point) bool) []trial {
	seen := make(map[Point]bool)
	var all []trial
	for _, point := range points {
		if seen[point] || !worth(point) {
			continue
		}
		seen[point] = true
		if t, err := f.Plan.trial(point); err == nil {
			all = append(all, t)
		}
	}
	return all
}

// String is, for example, "lease 2s, pause 500ms, section 50ms".
func (p Point) String() string {
	return "lease " + p.TTL.String() + ", pause " + p.Pause.String() + ", section " + p.Section.String()
}

// describePoints describes the points of the trials: the first few, and how many more there are.
func describePoints(trials []trial) string {
	const most = 3
	var names []string
	for _, t := range trials[:min(most, len(trials))] {
		names = append(names, t.point.String())
	}
	if more := len(trials) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, "; ")
}
