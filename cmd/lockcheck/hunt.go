package main

import (
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
)

// huntFlags are the flags of "lockcheck hunt".
type huntFlags struct {
	hunt.Plan
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
		Short: "search for a schedule that breaks a lock, and reduce it",
		Long: `Search for a short schedule of faults that breaks a lock. Each trial is a short
run under at most three faults, aimed at a role and a moment, and later trials
learn from earlier ones.

Use after expiry is set aside: it is inherent in every lock with a lease. Any
other violation is a finding. The hunt reruns it to confirm it, reduces it to the
fewest faults and workers, looks for a control, and writes a file for
"lockcheck repro".

A share of the trials is blind: drawn by chance alone, as a baseline for the
guided ones. The report compares both and shows what no trial covered.

` + exitCodes,
		Example: `  lockcheck hunt --budget 5m
  lockcheck hunt --lock redlock --budget 1h
  lockcheck hunt --lock examples/redis-py/lock.yaml --budget 20m --seed 7
  lockcheck hunt --resume store/hunt/latest --budget 30m`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.hunt(cmd, f) },
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *huntFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVarP(&f.Lock, "lock", "l", "memory", "`name` of the lock, or the path of a lock file")
	flags.StringVar(&f.Version, "version", "", "`version` of the servers, see \"lockcheck list locks\"")
	flags.IntVar(&f.Nodes, "nodes", 0, "number of servers in all trials (default: the usual number, and others in some trials)")
	flags.DurationVar(&f.TTL, "ttl", 0, "lease of the trials, except those with a lease of 10s (default: the shortest useful one)")
	flags.DurationVar(&f.budget, "budget", 15*time.Minute, "how long the hunt takes, investigations of findings included")
	flags.IntVar(&f.trials, "trials", 0, "maximum number of trials, in all parts together; 0 for no maximum")
	flags.Float64Var(&f.Blind, "blind", hunt.DefaultBlind, "share of blind trials, from 0 to 1")
	flags.IntVar(&f.parallel, "parallel", 4, "number of trials to run at the same time")
	flags.Uint64Var(&f.Seed, "seed", 1, "seed of the search")
	flags.StringVar(&f.expect, "expect", "", "`verdict` that makes the exit code 0: valid (nothing found) or violation")
	flags.StringVar(&f.shard, "shard", "", "run only this `part` of the trials, such as 2/8; \"lockcheck merge\" joins the parts")
	f.swarm.add(flags)
	flags.StringVar(&f.resume, "resume", "", "continue the hunt in this `folder`")
	flags.StringVar(&f.out, "out", "", "`folder` for the hunt (default: a new one in the store)")
	flags.StringVar(&f.store, "store", "store", "`folder` for runs")
}

// check refuses values that make no sense.
func (f *huntFlags) check(flags *pflag.FlagSet) error {
	switch {
	case f.parallel < 1:
		return runs.Usagef("--parallel must be at least 1")
	case f.budget <= 0:
		return runs.Usagef("--budget %s: it must be positive; a trial takes seconds and a finding minutes", f.budget)
	case flags.Changed("ttl") && f.TTL <= 0:
		return runs.Usagef("--ttl %s: a lease must be positive", f.TTL)
	case f.trials < 0:
		return runs.Usagef("--trials must not be negative")
	}
	return f.swarm.check(flags)
}

// folder is a new one, or the one to go on with.
func (f *huntFlags) folder(flags *pflag.FlagSet) (*hunt.Folder, error) {
	if f.resume != "" {
		for _, name := range []string{"lock", "version", "nodes", "ttl", "blind", "seed", "shard", "out"} {
			if flags.Changed(name) {
				return nil, &runs.UsageError{Err: fmt.Errorf("--resume and --%s exclude each other", name)}
			}
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
	path := f.out
	if path == "" {
		if path, err = runs.NewFolder(filepath.Join(f.store, runs.HuntFolder)); err != nil {
			return nil, err
		}
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
		return s.spreadHunt(cmd, f)
	}
	folder, err := f.folder(cmd.Flags())
	if err != nil {
		return err
	}
	machine := hunt.Machine{Parallel: f.parallel, Budget: f.budget, Trials: f.trials}
	if err := s.machine(&machine.Machine); err != nil {
		return err
	}
	ctx, interrupt, release := s.interruptible(cmd.Context())
	defer release()
	progress := s.progress()
	machine.Progress = progress
	if f.resume == "" && !cmd.Flags().Changed("lock") {
		progress.Step("no --lock: hunting the embedded lock memory. Use after expiry is set aside, because no lock with a lease can prevent it; any other violation is a finding")
	}
	interrupted, err := folder.Run(ctx, machine, interrupt)
	progress.Done()
	if interrupted {
		err = errors.Join(err, &exitError{code: exitInterrupted})
	}
	return s.showHunt(folder, expect, err)
}

// showHunt writes and prints what there is of a hunt, after an error too.
func (s *system) showHunt(folder *hunt.Folder, expect checker.Verdict, failed error) error {
	result := folder.Result()
	written := errors.Join(folder.WriteReports(result), result.Terminal(folder.Path).WriteTerminal(s.stdout, s.terminalOptions()))
	fmt.Fprintf(s.stdout, "\nfolder  %s\npage    %s\n", folder.Path, filepath.Join(folder.Path, hunt.HTMLFile))
	if failed != nil {
		return errors.Join(failed, written)
	}
	return alsoFailed(huntError(result, expect), written)
}

// huntError turns what was found into the exit code.
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
