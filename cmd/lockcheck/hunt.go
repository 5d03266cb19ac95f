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
	"lockcheck/reports"
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
		Short: "search for a schedule that breaks a lock, and make it small",
		Long: `Make short runs of a lock under few faults each, aimed at roles and moments,
and learn from what each met. What no lock with leases can prevent is set aside.
What is left is confirmed by runs of its own, made smaller as long as it shows
again, compared with a control, and written as a file for "lockcheck repro". A
share of the trials is drawn blindly, to see what the guidance is worth; the
report tells both, and what was never met.

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
	flags.StringVarP(&f.Lock, "lock", "l", "memory", "`name` of the lock, or a lock file of your own")
	flags.StringVar(&f.Version, "version", "", "`version` of the servers, see \"lockcheck list locks\"")
	flags.IntVar(&f.Nodes, "nodes", 0, "number of servers in all trials (default: the usual number of the lock, and others in some trials)")
	flags.DurationVar(&f.TTL, "ttl", 0, "lease, except in the trials that have one of 10s (default: the shortest that tells something)")
	flags.DurationVar(&f.budget, "budget", 15*time.Minute, "how long to go on, with all that finds need")
	flags.IntVar(&f.trials, "trials", 0, "how many trials to make at most, in all parts together; 0 for as many as there is time for")
	flags.Float64Var(&f.Blind, "blind", hunt.DefaultBlind, "share of trials that are drawn blindly, 0 to 1")
	flags.IntVar(&f.parallel, "parallel", 4, "how many trials to make at a time")
	flags.Uint64Var(&f.Seed, "seed", 1, "seed of the search")
	flags.StringVar(&f.expect, "expect", "", "`verdict` that makes the exit code 0: valid if nothing is to be found, or violation")
	flags.StringVar(&f.shard, "shard", "", "make only this `part` of the trials, as in 2/8; lockcheck merge puts parts together")
	f.swarm.add(flags)
	flags.StringVar(&f.resume, "resume", "", "go on with the hunt in this `folder`")
	flags.StringVar(&f.out, "out", "", "`folder` for the hunt (default: a new one in the store)")
	flags.StringVar(&f.store, "store", "store", "`folder` for runs")
}

// check refuses values that make no sense.
func (f *huntFlags) check(flags *pflag.FlagSet) error {
	switch {
	case f.parallel < 1:
		return runs.Usagef("--parallel must be at least 1")
	case f.budget <= 0:
		return runs.Usagef("--budget %s: it must be positive; a trial takes seconds, a finding takes minutes", f.budget)
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
	interrupted, err := folder.Run(ctx, machine, interrupt)
	progress.Done()
	if interrupted {
		err = errors.Join(err, &exitError{code: exitInterrupted})
	}
	return s.showHunt(folder, expect, err)
}

// showHunt writes and prints what there is of a hunt, after an error too.
func (s *system) showHunt(folder *hunt.Folder, expect checker.Verdict, failed error) error {
	hunted := folder.Hunt()
	options := s.terminalOptions()
	options.Folder = folder.Path
	written := errors.Join(folder.WriteReports(hunted), reports.HuntTerminal(s.stdout, hunted, options))
	fmt.Fprintf(s.stdout, "\nfolder  %s\npage    %s\n", folder.Path, filepath.Join(folder.Path, hunt.HTMLFile))
	if failed != nil {
		return errors.Join(failed, written)
	}
	return alsoFailed(huntError(hunted, expect), written)
}

// huntError turns what was found into the exit code.
func huntError(h reports.Hunt, expect checker.Verdict) error {
	verdict := h.Verdict()
	switch {
	case h.Shard != "": // that of the whole counts, so that one find makes one job red
		return nil
	case expect == "":
		return codeOnly(verdictCode(verdict))
	case expect == verdict:
		return nil
	}
	return &exitError{code: max(exitViolation, verdictCode(verdict)), err: fmt.Errorf("not as expected: the verdict is %s, not %s", verdict, expect)}
}
