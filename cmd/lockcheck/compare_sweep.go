package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites/profile"
	"lockcheck/internal/suites/sweep"
	"lockcheck/reports"
	"lockcheck/workloads"
)

// sweepFolder is a new folder, or the one to continue.
func (f *compareFlags) sweepFolder(flags *pflag.FlagSet) (*sweep.Folder, error) {
	if f.resume != "" {
		if err := exclusive(flags, "resume", planOfSweep()...); err != nil {
			return nil, err
		}
		return sweep.Open(f.resume)
	}
	if len(f.locks) > 1 {
		return nil, runs.BadFlag("locks", strings.Join(f.locks, ","), "a sweep is of one lock; write --locks and one name")
	}
	if flags.Changed("section") && !f.section.sweeps && f.section.Min != f.section.Max {
		return nil, runs.BadFlag("section", f.section, "a sweep has no random sections; write one time, or %s..%s to sweep them", f.section.Min, f.section.Max)
	}
	plan := sweep.Plan{
		Lock: "memory", Version: f.version, Steps: f.steps, Renew: f.renew, CheckBeforeWrite: f.checkBeforeWrite, Seed: f.seed,
		TTL:     workloads.Range{Min: time.Second, Max: time.Second},
		Pause:   workloads.Range{Min: 100 * time.Millisecond, Max: 5 * time.Second},
		Section: workloads.Range{Min: 200 * time.Millisecond, Max: 200 * time.Millisecond},
	}
	if len(f.locks) == 1 {
		plan.Lock = f.locks[0]
	}
	for name, axis := range map[string]struct {
		to   *workloads.Range
		from span
	}{"ttl": {&plan.TTL, f.ttl}, "pause": {&plan.Pause, f.pause}, "section": {&plan.Section, f.section}} {
		if flags.Changed(name) {
			*axis.to = axis.from.Range
		}
	}
	plan, err := plan.Ready()
	if err != nil {
		return nil, err
	}
	path, err := newFolder(f.out, f.store, runs.SweepFolder)
	if err != nil {
		return nil, err
	}
	return sweep.Create(path, plan)
}

// Defaults of a sweep.
const (
	sweepParallel = 2
	sweepBudget   = 15 * time.Minute
)

// roomyBudget is a budget for runs that take some time: half as much again, for a busy machine, in whole minutes.
func roomyBudget(takes time.Duration) time.Duration {
	return (takes + takes/2 + time.Minute - 1).Truncate(time.Minute)
}

// sweep charts where a lock loses updates.
func (s *system) sweep(cmd *cobra.Command, f *compareFlags) error {
	folder, err := f.sweepFolder(cmd.Flags())
	if err != nil {
		return err
	}
	machine := sweep.Machine{Parallel: cmp.Or(f.parallel, sweepParallel), Budget: f.budget}
	if !cmd.Flags().Changed("budget") {
		machine.Budget = sweepBudget
	}
	if err := s.machine(&machine.Machine); err != nil {
		return err
	}
	// grid returns how many trials of the first grid are missing, and how long they take.
	grid := func() (trials int, takes time.Duration) {
		trials, takes = folder.Cost()
		return trials, (takes / time.Duration(machine.Parallel)).Round(time.Second)
	}
	err = s.attended(cmd.Context(), func(ctx context.Context, progress *reports.Progress, interrupt <-chan struct{}) (bool, error) {
		machine.Progress = progress
		if trials, takes := grid(); trials > 0 {
			progress.Step("the first grid needs %d trials, about %s with %d at a time; the budget is %s", trials, takes, machine.Parallel, machine.Budget)
		}
		return folder.Run(ctx, machine, interrupt)
	})
	swept := folder.Sweep()
	if trials, takes := grid(); trials > 0 && err == nil {
		fmt.Fprintf(s.stderr, "lockcheck: the budget ended before the first grid was complete; continue with %s --budget %s\n",
			s.terminalOptions().CommandLine("lockcheck compare --resume "+folder.Path), roomyBudget(takes))
	}
	err = errors.Join(err, folder.WriteReports(swept), swept.Terminal(s.columns()).WriteTerminal(s.stdout, s.terminalOptions()))
	fmt.Fprintf(s.stdout, "folder  %s\npage    %s\n", folder.Path, filepath.Join(folder.Path, sweep.HTMLFile))
	return err
}

// parseLoad reads "1..64", or one number.
func parseLoad(text string) ([]int, error) {
	first, last, ranged := strings.Cut(text, "..")
	if !ranged {
		last = first
	}
	low, lowErr := strconv.Atoi(first)
	high, highErr := strconv.Atoi(last)
	if lowErr != nil || highErr != nil || low < 1 || high < low {
		return nil, runs.BadFlag("load", text, "write 8, or 1..64")
	}
	return profile.Load(low, high), nil
}

// profileTime is how long each run of a load profile lasts by default.
const profileTime = 5 * time.Second

// profile measures what locks cost under load.
func (s *system) profile(cmd *cobra.Command, f *compareFlags) error {
	plan := profile.Plan{Locks: f.locks, Think: f.think, Time: f.timeLimit}
	if plan.Locks == nil {
		plan.Locks = []string{"memory"}
	}
	if !cmd.Flags().Changed("time-limit") {
		plan.Time = profileTime
	}
	if cmd.Flags().Changed("section") {
		plan.Section = f.section.Range
	}
	var err error
	if plan.Workers, err = parseLoad(f.load); err != nil {
		return err
	}
	var m profile.Machine
	if err := s.machine(&m.Machine); err != nil {
		return err
	}
	if m.Store, err = newFolder(f.out, f.store, runs.ProfileFolder); err != nil {
		return err
	}
	var p profile.Profile
	err = s.attended(cmd.Context(), func(ctx context.Context, progress *reports.Progress, interrupt <-chan struct{}) (interrupted bool, err error) {
		m.Progress = progress
		p, interrupted, err = plan.Measure(ctx, m, interrupt)
		return interrupted, err
	})
	if len(p.Points) == 0 {
		return err
	}
	writeErr := errors.Join(p.WriteReports(m.Store), p.Page().WriteMarkdown(s.stdout))
	fmt.Fprintf(s.stdout, "\nfolder  %s\n", m.Store)
	return concluded(verdictCode(p.Verdict()), err, writeErr)
}
