package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/hunt"
	"lockcheck/reports"
)

// huntFlags are the flags of "lockcheck hunt".
type huntFlags struct {
	hunt.Plan
	app                string
	budget             time.Duration
	trials, parallel   int
	expect             string
	shard              string
	swarm              swarmFlags
	resume, out, store string
}

func huntCommand(s *system) *cobra.Command {
	f := &huntFlags{}
	cmd := &cobra.Command{
		Use:   "hunt",
		Short: "search for faults that break a lock",
		Long: `Search for a short schedule of faults that breaks a lock. Each trial is a short run under at most three faults, aimed at a role and a moment, and later trials learn from earlier ones.

Use after expiry is set aside: it is inherent in every lock with a lease. Any other violation is a finding. The hunt reruns it to confirm it, reduces it to the fewest faults and workers, looks for a control, and writes a file for "lockcheck repro".

A share of the trials is blind: drawn by chance alone, as a baseline for the guided ones. The report compares both and shows what no trial covered.

With --app it searches for faults under which an application violates its invariants, and reduces the schedule. Each trial is a whole run.

` + exitCodes,
		Example: `  lockcheck hunt --budget 5m
  lockcheck hunt --lock redlock --budget 1h
  lockcheck hunt --lock examples/redis-py/lock.yaml --budget 20m
  lockcheck hunt --app app.yaml --budget 30m
  lockcheck hunt --resume store/hunt/latest --budget 30m
  lockcheck hunt merge --out whole part-*`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.app != "" {
				return s.huntApplication(cmd, f)
			}
			return s.hunt(cmd, f)
		},
	}
	f.add(flagsOf(cmd))
	cmd.AddCommand(s.mergeCommand("hunt", func(ctx context.Context, out string, parts []string) error { return s.mergeHunt(ctx, out, "", parts) }))
	return cmd
}

func (f *huntFlags) add(flags flags) {
	flags.text(&f.Lock, "lock", "memory")
	flags.text(&f.app, "app", "")
	flags.text(&f.Version, "version", "")
	flags.number(&f.Nodes, "nodes", 0)
	flags.length(&f.TTL, "ttl", 0)
	flags.length(&f.budget, "budget", 15*time.Minute)
	flags.number(&f.trials, "trials", 0)
	flags.share(&f.Blind, "blind", hunt.DefaultBlind)
	flags.number(&f.parallel, "parallel", 4)
	flags.seed(&f.Seed, "seed", 1)
	flags.text(&f.expect, "expect", "")
	flags.text(&f.shard, "shard", "")
	f.swarm.add(flags)
	flags.text(&f.resume, "resume", "")
	flags.text(&f.out, "out", "")
	flags.text(&f.store, "store", "store")
	flags.otherwise("nodes", "the lock's usual number, and others in some trials", "ttl", "the shortest useful lease, and 10s in some trials")
}

// check refuses values that make no sense.
func (f *huntFlags) check(flags *pflag.FlagSet) error {
	switch {
	case f.budget <= 0:
		return runs.BadFlag("budget", f.budget, "it must be positive; write --budget 5m, or omit it (15m)")
	case flags.Changed("ttl") && f.TTL <= 0:
		return runs.BadFlag("ttl", f.TTL, "a lease must be positive, as in --ttl 2s")
	}
	return errors.Join(least("parallel", f.parallel, 1), least("trials", f.trials, 0), f.swarm.check(flags))
}

// folder is a new folder, or the one to continue.
func (f *huntFlags) folder(flags *pflag.FlagSet) (*hunt.Folder, error) {
	if f.resume != "" {
		if err := exclusive(flags, "resume", "lock", "version", "nodes", "ttl", "blind", "seed", "shard", "out"); err != nil {
			return nil, err
		}
		return hunt.Open(f.resume)
	}
	var err error
	if f.Shard, err = suites.ParseShard(f.shard); err != nil {
		return nil, err
	}
	plan, err := f.Plan.Ready()
	if err != nil {
		return nil, err
	}
	path, err := newFolder(f.out, f.store, runs.HuntFolder)
	if err != nil {
		return nil, err
	}
	return hunt.Create(path, plan)
}

func (s *system) hunt(cmd *cobra.Command, f *huntFlags) error {
	expect, err := parseVerdict(f.expect)
	if err != nil {
		return err
	}
	if err := f.check(cmd.Flags()); err != nil {
		return err
	}
	if f.swarm.parts > 0 {
		return s.spreadHunt(cmd, f, expect)
	}
	folder, err := f.folder(cmd.Flags())
	if err != nil {
		return err
	}
	machine := hunt.Machine{Parallel: f.parallel, Budget: f.budget, Trials: f.trials}
	if err := s.machine(&machine.Machine); err != nil {
		return err
	}
	err = s.attended(cmd.Context(), func(ctx context.Context, progress *reports.Progress, interrupt <-chan struct{}) (bool, error) {
		machine.Progress = progress
		if f.resume == "" && !cmd.Flags().Changed("lock") {
			progress.Step("no --lock: hunting the embedded lock memory. Use after expiry is set aside, because no lock with a lease can prevent it; any other violation is a finding")
		}
		return folder.Run(ctx, machine, interrupt)
	})
	return s.showHunt(folder, expect, err)
}

func (s *system) mergeHunt(ctx context.Context, out string, expect checker.Verdict, paths []string) error {
	var parts []*hunt.Folder
	for _, path := range paths {
		part, err := hunt.Open(path)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	whole, err := hunt.Merge(ctx, out, parts)
	if err != nil {
		return err
	}
	return s.showHunt(whole, expect, nil)
}

// showHunt writes and prints the results so far, even after an error.
func (s *system) showHunt(folder *hunt.Folder, expect checker.Verdict, failed error) error {
	result := folder.Result()
	written := errors.Join(folder.WriteReports(result), result.Terminal(folder.Path).WriteTerminal(s.stdout, s.terminalOptions()))
	fmt.Fprintf(s.stdout, "\nfolder  %s\npage    %s\n", folder.Path, filepath.Join(folder.Path, hunt.HTMLFile))
	if failed != nil {
		return errors.Join(failed, written)
	}
	return alsoFailed(huntError(result, expect), written)
}

// huntError turns the findings into the exit code.
func huntError(r hunt.Result, expect checker.Verdict) error {
	verdict := r.Verdict()
	switch {
	case r.Shard.Of > 0: // the whole hunt decides, so that one finding makes one job red
		return nil
	case expect == "":
		return codeOnly(verdictCode(verdict))
	case expect == verdict:
		return nil
	}
	return &exitError{code: max(exitViolation, verdictCode(verdict)), err: fmt.Errorf("not as expected: the verdict is %s, not %s", verdict, expect)}
}
