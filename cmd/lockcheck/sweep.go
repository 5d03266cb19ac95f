package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites/sweep"
	"lockcheck/workloads"
)

// sweepFlags are the flags of "lockcheck sweep".
type sweepFlags struct {
	sweep.Plan
	budget             time.Duration
	parallel           int
	resume, out, store string
}

func sweepCommand(s *system) *cobra.Command {
	f := &sweepFlags{Plan: sweep.Plan{
		TTL:     workloads.Range{Min: time.Second, Max: time.Second},
		Pause:   workloads.Range{Min: 100 * time.Millisecond, Max: 5 * time.Second},
		Section: workloads.Range{Min: 200 * time.Millisecond, Max: 200 * time.Millisecond},
	}}
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "chart over leases and pauses where a lock loses updates",
		Long: `Pause holders for times between two bounds, under leases and with critical
sections between others, and chart where they overlap, and how available the
lock was meanwhile. A coarse grid comes first; the rest of the budget goes to
where neighbours differ. Each point has its interval, over pauses that were
proven and met a holder; the line of theory is next to what was measured.

The exit code is 0 whatever the lock did.`,
		Example: `  lockcheck sweep --ttl 200ms..2s --pause 100ms..2s --budget 5m
  lockcheck sweep --lock redis --ttl 500ms..30s --pause 100ms..30s
  lockcheck sweep --resume store/sweep/latest --budget 10m`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.sweep(cmd, f) },
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *sweepFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVarP(&f.Lock, "lock", "l", "memory", "`name` of the lock, or a lock file of your own")
	flags.StringVar(&f.Version, "version", "", "`version` of the servers, see \"lockcheck list locks\"")
	flags.Var(&f.TTL, "ttl", "leases, as in 500ms..30s, or one")
	flags.Var(&f.Pause, "pause", "how long holders are paused, as in 100ms..30s, or one time")
	flags.Var(&f.Section, "section", "times in the critical section, as in 10ms..5s, or one")
	flags.IntVar(&f.Steps, "steps", 4, "how many values of each to begin with")
	flags.BoolVar(&f.Renew, "renew", false, "renew the lease while in the section")
	flags.BoolVar(&f.CheckBeforeWrite, "check-before-write", false, "look at the deadline before writing")
	flags.DurationVar(&f.budget, "budget", 15*time.Minute, "how long to go on")
	flags.IntVar(&f.parallel, "parallel", 2, "how many trials to make at a time")
	flags.Uint64Var(&f.Seed, "seed", 1, "seed of the first trial of each point")
	flags.StringVar(&f.resume, "resume", "", "go on with the sweep in this `folder`")
	flags.StringVar(&f.out, "out", "", "`folder` for the sweep (default: a new one in the store)")
	flags.StringVar(&f.store, "store", "store", "`folder` for runs")
}

// folder is a new one, or the one to go on with.
func (f *sweepFlags) folder(flags *pflag.FlagSet) (*sweep.Folder, error) {
	if f.parallel < 1 {
		return nil, runs.Usagef("--parallel must be at least 1")
	}
	if f.budget < 0 {
		return nil, runs.Usagef("--budget must not be negative")
	}
	if f.resume != "" {
		for _, name := range []string{"lock", "version", "ttl", "pause", "section", "steps", "renew", "check-before-write", "seed", "out"} {
			if flags.Changed(name) {
				return nil, &runs.UsageError{Err: fmt.Errorf("--resume and --%s exclude each other", name)}
			}
		}
		return sweep.Open(f.resume)
	}
	plan, err := f.Plan.Ready()
	if err != nil {
		return nil, err
	}
	path := f.out
	if path == "" {
		if path, err = runs.NewFolder(filepath.Join(f.store, runs.SweepFolder)); err != nil {
			return nil, err
		}
	}
	return sweep.Create(path, plan)
}

func (s *system) sweep(cmd *cobra.Command, f *sweepFlags) error {
	folder, err := f.folder(cmd.Flags())
	if err != nil {
		return err
	}
	machine := sweep.Machine{Parallel: f.parallel, Budget: f.budget}
	if err := s.machine(&machine.Machine); err != nil {
		return err
	}
	ctx, interrupt, release := s.interruptible(cmd.Context())
	defer release()
	progress := s.progress()
	machine.Progress = progress
	if trials, takes := folder.Cost(); trials > 0 {
		progress.Step("the first grid needs %d trials, about %s with %d at a time; the budget is %s",
			trials, (takes / time.Duration(f.parallel)).Round(time.Second), f.parallel, f.budget)
	}
	interrupted, err := folder.Run(ctx, machine, interrupt)
	progress.Done()
	if interrupted {
		err = errors.Join(err, &exitError{code: exitInterrupted})
	}
	swept := folder.Sweep()
	if trials, takes := folder.Cost(); trials > 0 && err == nil {
		fmt.Fprintf(s.stderr, "lockcheck: the budget ended before the first grid did; %s %s --budget %s goes on\n",
			s.terminalOptions().CommandLine("lockcheck sweep --resume"), folder.Path, (takes / time.Duration(f.parallel)).Round(time.Second))
	}
	err = errors.Join(err, folder.WriteReports(swept), swept.Terminal(s.terminalOptions().Width).WriteTerminal(s.stdout, s.terminalOptions()))
	fmt.Fprintf(s.stdout, "folder  %s\npage    %s\n", folder.Path, filepath.Join(folder.Path, sweep.HTMLFile))
	return err
}
