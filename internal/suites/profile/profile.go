// Package profile measures how the cost of a lock depends on the number of workers.
package profile

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/workloads"
)

// Plan says what is measured.
type Plan struct {
	Locks []string
	// Workers lists the numbers of workers, ascending.
	Workers []int
	Time    time.Duration // of each run, without its start and recovery period
	Think   workloads.Range
	Section workloads.Range
}

// Load is low, 2·low, 4·low… below high, and high itself.
func Load(low, high int) []int {
	var all []int
	for n := low; n < high; n *= 2 {
		all = append(all, n)
	}
	return append(all, high)
}

// Machine is what a profile is measured on.
type Machine struct {
	runs.Machine // Store is the folder of the profile
	Progress     runs.Progress
}

// jobs returns the runs of a plan and, in the same order, the points that they measure. Its error is one of
// usage.
func (p Plan) jobs() ([]suites.Job, []Point, error) {
	if len(p.Locks) == 0 || len(p.Workers) == 0 || p.Time <= 0 {
		return nil, nil, runs.Usagef("--locks, --load and --time: each needs a value, as in --locks redis --load 1..64 --time-limit 5s")
	}
	var jobs []suites.Job
	var points []Point
	for _, lock := range p.Locks {
		for _, workers := range p.Workers {
			for _, alone := range []bool{true, false} { // both on the same servers
				outline, err := p.outline(lock, alone, workers)
				if err != nil {
					return nil, nil, fmt.Errorf("%s with %d workers: %w", lock, workers, err)
				}
				point := Point{Lock: lock, Alone: alone, Workers: workers}
				jobs = append(jobs, suites.Job{Name: point.String(), Options: outline.Options, Outline: outline, Slots: suites.Alone})
				points = append(points, point)
			}
		}
	}
	return jobs, points, nil
}

func (p Plan) outline(lock string, alone bool, workers int) (runs.Outline, error) {
	o := runs.Options{
		Lock: lock, Workload: history.WorkloadMutex, Guard: string(workloads.NoGuard), Nemesis: "none",
		Interval: runs.DefaultInterval, Concurrency: workers, MinOps: 1, EndRecovered: true,
		Use: workloads.Use{Section: p.Section, Think: &p.Think, Bare: true, OwnKey: alone},
	}
	outline, err := runs.OutlineOf(o)
	if err != nil {
		return outline, err
	}
	o.TimeLimit = outline.Recovery + p.Time
	return runs.OutlineOf(o)
}

// Measure makes the runs one after another. When interrupt is closed, it returns what was measured so far.
func (p Plan) Measure(ctx context.Context, m Machine, interrupt <-chan struct{}) (profile Profile, interrupted bool, err error) {
	profile = Profile{Schema: Schema, Began: time.Now(), Time: p.Time, Think: p.Think.String(), Section: p.Section.String()}
	jobs, points, err := p.jobs()
	if err != nil {
		return profile, false, err
	}
	r := suites.Runner{Machine: m.Machine, Slots: 1, KeepClusters: true, Progress: m.Progress}
	r.Machine.Store = filepath.Join(m.Store, "runs")
	r.Done = func(_ int, made suites.Made) error {
		point := points[len(profile.Points)]
		if made.Outcome.History == nil {
			return made.Err
		}
		measure(&point, made.Outcome)
		profile.Points = append(profile.Points, point)
		m.Progress.Step("%s: %s", point.String(), point.figures())
		return made.Err
	}
	// Both runs for a number of workers share servers. The servers of other runs must not run at the same
	// time.
	for pair := range slices.Chunk(jobs, 2) {
		if interrupted, err = r.Run(ctx, pair, interrupt); interrupted || err != nil {
			break
		}
	}
	return profile, interrupted, err
}

// measure fills in a point from its run. A verdict other than valid stays with the point, because then the
// figures have another cause than the load.
func measure(point *Point, outcome runs.Outcome) {
	m := outcome.Results.Measures
	point.Verdict = outcome.Results.Verdict
	point.Holds, point.PerSecond = m.Work, 0
	if perSecond, known := m.Throughput(); known {
		point.PerSecond = perSecond
	}
	for q, to := range map[float64]*time.Duration{0.5: &point.P50, 0.99: &point.P99, 0.999: &point.P999} {
		*to, _ = m.Wait.Quantile(q)
	}
	if m.Waited > 0 {
		share := float64(m.Bypassed) / float64(m.Waited)
		point.Bypassed = &share
	}
	point.Fairness = jain(grantsPerWorker(outcome.History))
}

// grantsPerWorker lists how often each worker of a run was granted the lock.
func grantsPerWorker(h *history.History) []float64 {
	grants := make(map[string]float64)
	for _, e := range h.Events {
		if e.F == history.Acquire && e.Type == history.OK {
			grants[e.Process]++
		}
	}
	var all []float64
	for _, worker := range h.Header.Workers {
		all = append(all, grants[worker])
	}
	return all
}

// jain is Jain's fairness index (R. Jain et al., DEC-TR-301, 1984): 1 if all shares are equal, 1/n if one
// worker has everything; 0 if all shares are 0.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += s
		squares += s * s
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// Names of the files of a profile.
const (
	MarkdownFile = "profile.md"
	ChartFile    = "profile.svg"
)

// Verdict is the most serious verdict of the runs. There must be at least one run.
func (p Profile) Verdict() checker.Verdict {
	var all []checker.Verdict
	for _, point := range p.Points {
		if point.isConclusive() {
			all = append(all, checker.Valid)
		} else {
			all = append(all, point.Verdict)
		}
	}
	return checker.MostTelling(all)
}
