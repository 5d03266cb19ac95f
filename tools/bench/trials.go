package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// trials measures how many short runs are made in an hour: as a search makes them, and, for
// comparison, one after the other with servers and reports of their own.
func (b *bench) trials(ctx context.Context, locks string, n, slots int, apart bool) error {
	fmt.Fprint(b.out, "\n| lock | trials | side by side | time | trials/h | violation | valid | undecided | broken | new clusters | delayed | delay, median | load |\n",
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for lock := range strings.SplitSeq(locks, ",") {
		if err := b.trialsOf(ctx, lock, n, slots, false); err != nil {
			return err
		}
		if !apart {
			continue
		}
		if err := b.trialsOf(ctx, lock, max(1, n/10), 1, true); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) trialsOf(ctx context.Context, lock string, n, slots int, apart bool) error {
	folder, err := os.MkdirTemp("", "lockcheck-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	binary, err := filepath.Abs(b.binary)
	if err != nil {
		return err
	}
	began := time.Now()
	c := trialCount{verdicts: make(map[checker.Verdict]int)}
	r := suites.Runner{Machine: runs.Machine{Store: folder, Binary: binary}, Slots: slots, Progress: runs.Silent{}, Done: c.add}
	if !apart {
		r.Machine.Pool = runs.NewPool()
	}
	var jobs []suites.Job
	for seed := range n {
		o, err := trial(lock, seed, apart)
		if err != nil {
			return err
		}
		jobs = append(jobs, suites.Job{Options: o, MaxDelay: o.TTL / 4})
	}
	_, err = r.Run(ctx, jobs, nil)
	took := time.Since(began)
	if err = errors.Join(err, r.Machine.Pool.Close(ctx)); err != nil {
		return err
	}
	slices.Sort(c.delays)
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err
	}
	how := fmt.Sprint(slots)
	if apart {
		how = "none, nothing kept"
	}
	_, err = fmt.Fprintf(b.out, "| %s | %d | %s | %.0f s | %.0f | %d | %d | %d | %d | %d | %d | %.0f ms | %s |\n", lock, n, how, took.Seconds(), float64(n)/took.Hours(),
		c.verdicts[checker.Violation], c.verdicts[checker.Valid], c.verdicts[checker.Undecided], c.verdicts[checker.Broken],
		c.clusters, c.delayed, float64(c.delays[len(c.delays)/2].Microseconds())/1000, strings.Fields(string(load))[0])
	return err
}

// trialCount counts what became of trials.
type trialCount struct {
	verdicts          map[checker.Verdict]int
	clusters, delayed int
	delays            []time.Duration
}

func (c *trialCount) add(_ int, m suites.Made) error {
	if m.Err != nil {
		return m.Err
	}
	c.verdicts[m.Outcome.Results.Verdict]++
	c.delays = append(c.delays, m.Outcome.Delay)
	if m.Outcome.History.Header.Cluster == "" {
		c.clusters++
	}
	if m.Delayed {
		c.delayed++
	}
	return nil
}

// trial is a run with one fault of those that a search often tries, under the shortest lease; with
// all that a run of its own has, if it is to be apart.
func trial(lock string, seed int, apart bool) (runs.Options, error) {
	info, known := clients.ByName(lock)
	if !known {
		return runs.Options{}, fmt.Errorf("no lock %q", lock)
	}
	leases := func(n float64) nemesis.Span { return nemesis.Span{Leases: n} }
	steps := []nemesis.Step{
		{Fault: history.Pause, Target: "holder", When: nemesis.WhenHolding, For: leases(1.2)},
		{Fault: history.Pause, Target: "one server", For: leases(0.5)},
		{Fault: history.Kill, Target: "holder", When: nemesis.WhenHolding},
		{Fault: history.Pause, Target: "waiter", When: nemesis.WhenHolding, For: leases(0.5)},
	}
	ttl := info.ShortestTTL()
	o := runs.Options{
		Lock: lock, Workload: history.WorkloadSet, Guard: string(workloads.NoGuard), Concurrency: 3, MinOps: 1, Seed: uint64(seed),
		Use:      workloads.Use{TTL: ttl, Section: workloads.Range{Min: ttl / 10, Max: ttl / 5}},
		Schedule: &nemesis.Schedule{Seed: uint64(seed), Steps: steps[seed%len(steps) : seed%len(steps)+1]},
		EndEarly: true, EndRecovered: !apart, UntilViolation: !apart, ResultsOnly: !apart,
	}
	o.Schedule.Steps[0].After = leases(0.3)
	outline, err := runs.OutlineOf(o)
	if err != nil {
		return o, err
	}
	o.TimeLimit = outline.Recovery + 2*ttl + time.Second
	return o, nil
}
