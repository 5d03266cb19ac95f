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
	Parallel int // how many trials are made side by side; at least 1
	Progress runs.Progress
	// Budget is how long to go on; trials that would take longer are not begun.
	Budget time.Duration
}

// wanted lists the points of the first grid, and all that are measured, in order.
func (f *Folder) wanted() []Point {
	var all []Point
	for _, c := range f.Plan.cells() {
		for _, at := range c.corners() {
			all = append(all, f.Plan.at(at))
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

// Cost is how many trials the first grid still needs, and how long they take one after the
// other.
func (f *Folder) Cost() (trials int, takes time.Duration) {
	for _, t := range f.unknown(f.wanted()) {
		trials++
		takes += t.takes
	}
	return trials, takes
}

// Run makes trials until the budget is spent, or none would tell more. When interrupt is
// closed, those in progress end without being counted. Its error says why the sweep could
// not go on; that single trials failed is in the ledger.
func (f *Folder) Run(ctx context.Context, m Machine, interrupt <-chan struct{}) (interrupted bool, err error) {
	end := time.Now().Add(m.Budget)
	for round := 1; ; round++ {
		trials := affordable(f.next(), time.Duration(m.Parallel)*time.Until(end))
		if len(trials) == 0 {
			return false, nil
		}
		m.Progress.Step("round %d: trials at %s", round, points(trials))
		interrupted, err := f.round(ctx, m, trials, interrupt)
		if interrupted || err != nil {
			return interrupted, err
		}
	}
}

// affordable are as many trials as there is time for, those that take the least first.
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
	// Long ones first, so that none of them is what everything waits for at the end.
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
		e, err := f.putDown(trials[i].point, made)
		text := e.Failed
		if text == "" {
			text = reports.Summary(made.Outcome.Results)
		}
		m.Progress.Step("%s: %s", jobs[i].Name, text)
		return err
	}
	return r.Run(ctx, jobs, interrupt)
}

// tried is how many trials there were at a point.
func (f *Folder) tried(p Point) int {
	if m := f.points[p]; m != nil {
		return len(m.results) + m.failed
	}
	return 0
}

// putDown puts a trial into the ledger.
func (f *Folder) putDown(p Point, made suites.Made) (entry, error) {
	e := entry{Point: p, Began: made.Began, Took: made.Took}
	err := made.Err
	if made.Outcome.History == nil {
		e.Failed, err = made.Err.Error(), nil
	} else if run, relErr := filepath.Rel(f.Path, made.Outcome.Folder); relErr != nil {
		return e, relErr
	} else if _, readErr := runs.ReadResults(made.Outcome.Folder); readErr != nil {
		e.Failed = readErr.Error()
	} else {
		e.Run = run
	}
	return e, cmp.Or(f.ledger.Add(e), f.addTrial(e), err)
}

// Bounds of what is spent on a point.
const (
	tries      = 2  // until any of its pauses met a holder
	manyPauses = 20 // where neighbours differ
)

// next lists the trials that would tell more: where nothing is known yet; else on a finer
// grid, where the corners of a cell differ; else more of the same there.
func (f *Folder) next() []trial {
	if all := f.unknown(f.wanted()); len(all) > 0 {
		return all
	}
	cells := f.differing(f.Plan.cells())
	for len(cells) > 0 {
		var finer []cell
		var points []Point
		for _, c := range cells {
			halves := c.halves()
			finer = append(finer, halves...)
			for _, h := range halves {
				points = append(points, f.pointsOf(h)...)
			}
		}
		if all := f.unknown(points); len(all) > 0 {
			return all
		}
		if len(finer) == 0 {
			break
		}
		cells = f.differing(finer)
	}
	return f.more()
}

func (f *Folder) pointsOf(c cell) []Point {
	var all []Point
	for _, at := range c.corners() {
		all = append(all, f.Plan.at(at))
	}
	return all
}

// differing are the cells in whose corners the lock keeps workers apart here, and does not
// there.
func (f *Folder) differing(cells []cell) []cell {
	return slices.DeleteFunc(cells, func(c cell) bool {
		kept, violated := false, false
		for _, point := range f.pointsOf(c) {
			if is, known := f.points[point].answer(); known {
				kept, violated = kept || !is, violated || is
			}
		}
		return !kept || !violated
	})
}

// unknown plans a trial at each of the points of which nothing is known. Those that make no
// sense for the lock are left out.
func (f *Folder) unknown(points []Point) []trial {
	seen := make(map[Point]bool)
	var all []trial
	for _, point := range points {
		_, known := f.points[point].answer()
		if known || seen[point] || f.tried(point) >= tries {
			continue
		}
		seen[point] = true
		if t, err := f.Plan.trial(point); err == nil {
			all = append(all, t)
		}
	}
	return all
}

// more plans another trial at the points around which the answer differs, as long as there
// were few pauses.
func (f *Folder) more() []trial {
	var all []trial
	seen := make(map[Point]bool)
	for _, c := range f.finest(f.Plan.cells()) {
		for _, point := range f.pointsOf(c) {
			m := f.points[point]
			if _, known := m.answer(); !known || seen[point] || m.pauses >= manyPauses {
				continue
			}
			seen[point] = true
			if t, err := f.Plan.trial(point); err == nil {
				all = append(all, t)
			}
		}
	}
	return all
}

// finest are the differing cells that are not divided further.
func (f *Folder) finest(cells []cell) []cell {
	var all []cell
	for _, c := range f.differing(cells) {
		halves := c.halves()
		if len(halves) == 0 {
			all = append(all, c)
		}
		all = append(all, f.finest(halves)...)
	}
	return all
}

// String is such as "lease 2s, pause 500ms, section 50ms".
func (p Point) String() string {
	return "lease " + p.TTL.String() + ", pause " + p.Pause.String() + ", section " + p.Section.String()
}

// points is how many, and the first of them.
func points(trials []trial) string {
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
