package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockcheck/internal/catalog"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/claims"
	"lockcheck/internal/suites/findings"
	"lockcheck/internal/suites/repros"
	"lockcheck/reports"
)

// reproFlags are the flags of "lockcheck repro".
type reproFlags struct {
	list    bool
	lock    string
	form    repros.Form
	machine runs.Machine
}

func reproCommand(s *system) *cobra.Command {
	var f reproFlags
	cmd := &cobra.Command{
		Use:   "repro NAME|FILE",
		Short: "reproduce published bugs, or check claims",
		Long: `Reproduce a published finding with a fixed schedule. The exit code is 0 only if exactly the expected verdict was reached; an undecided or broken run never counts as reproduced. --control runs the same test with the one change that must make the difference, and has its own expected verdict.

A reproduction can be a file, whose lock can be a lock file next to it, or which names an app file in place of a lock. A reproduction for many locks, such as holder-pause, takes any of them with --lock.

` + exitCodes,
		Example: `  lockcheck repro --list
  lockcheck repro redlock-clock-jump
  lockcheck repro redlock-clock-jump --control
  lockcheck repro holder-pause --lock examples/redis-py/lock.yaml
  lockcheck repro --list examples
  lockcheck repro examples/kazoo/leaked-contender.yaml`,
		Args: usageArgs(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.list:
				return s.listReproductions(args)
			case len(args) == 0:
				return runs.Usagef("name a reproduction, or use --list")
			case len(args) > 1:
				return runs.Usagef("name at most 1 reproduction, not %d", len(args))
			}
			return s.reproduce(cmd.Context(), args[0], f)
		},
	}
	flags := flagsOf(cmd)
	flags.yes(&f.list, "list")
	flags.text(&f.lock, "lock", "")
	flags.yes(&f.form.Control, "control")
	flags.yes(&f.form.Fast, "fast")
	flags.text(&f.machine.Store, "store", "store")
	cmd.AddCommand(reproAllCommand(s), reproTableCommand(s),
		group("claims", "check common claims about locks against runs", claimsRunCommand(s), claimsTableCommand(s)))
	return cmd
}

// listReproductions lists the reproductions in files and folders, or the built-in ones.
func (s *system) listReproductions(paths []string) error {
	all, err := repros.All()
	if len(paths) > 0 {
		all, err = repros.In(paths)
	}
	if err != nil {
		return err
	}
	var entries []catalog.Entry
	for _, r := range all {
		e := catalog.Entry{Name: cmp.Or(r.Path, r.Name), Summary: r.Summary, Details: []string{"expected: " + r.Expect.String()}}
		if r.Source != "" {
			e.Details = append(e.Details, "source: "+r.Source)
		}
		if r.Control != nil {
			e.Details = append(e.Details, fmt.Sprintf("control: %s: %s", r.Control.Summary, r.Control.Expect))
		}
		entries = append(entries, e)
	}
	return s.print(entries)
}

func (s *system) reproduce(ctx context.Context, name string, f reproFlags) error {
	r, err := repros.Find(name, f.lock)
	if err != nil {
		return err
	}
	if err := s.machine(&f.machine); err != nil {
		return err
	}
	e, err := r.Experiment(f.form)
	if err != nil {
		return err
	}
	var outcome runs.Outcome
	var missed string
	err = s.attended(ctx, func(ctx context.Context, progress *reports.Progress, interrupt <-chan struct{}) (_ bool, err error) {
		progress.Step("%s", cmp.Or(r.Claim, r.Summary))
		if r.Source != "" {
			progress.Step("source: %s", r.Source)
		}
		outcome, missed, err = e.Run(ctx, f.machine, interrupt, progress)
		return false, err // an interrupted run is reported below
	})
	if outcome.History == nil {
		return err
	}
	err = errors.Join(err, s.report(outcome.Judgement))
	err = alsoFailed(s.conclude(r, f.form.Control, outcome, missed), err)
	if err != nil || f.form.Control || r.Control == nil {
		return err
	}
	control := "lockcheck repro " + name
	if f.lock != "" {
		control += " --lock " + f.lock
	}
	return s.print([]catalog.Entry{{Name: "its control", Summary: r.Control.Summary, Details: []string{s.terminalOptions().CommandLine(control + " --control")}}})
}

// conclude says whether the finding was reproduced.
func (s *system) conclude(r repros.Reproduction, control bool, outcome runs.Outcome, missed string) error {
	what, done := r.Name, "reproduced"
	if control {
		what, done = "control of "+r.Name, "as expected"
	}
	switch {
	case outcome.Interrupted:
		return &exitError{code: exitInterrupted}
	case missed != "":
		return &exitError{code: max(exitViolation, verdictCode(outcome.Results.Verdict)), err: fmt.Errorf("%s: not %s: %s", what, done, missed)}
	}
	fmt.Fprintf(s.stdout, "\n%s: %s\n", what, done)
	return nil
}

// seriesFlags choose experiments of a series.
type seriesFlags struct {
	machine         runs.Machine
	only            string
	times, parallel int
	missing         bool
}

// add declares the flags that every series has.
func (f *seriesFlags) add(flags flags, parallel int) {
	f.times = 1
	flags.text(&f.only, "only", "")
	flags.number(&f.parallel, "parallel", parallel)
	flags.text(&f.machine.Store, "store", "store")
}

// chosen compiles --only, and checks the numbers.
func (f *seriesFlags) chosen() (*regexp.Regexp, error) {
	only, err := regexp.Compile(f.only)
	if err != nil {
		err = runs.BadFlag("only", nil, "%w", err)
	}
	return only, errors.Join(err, least("parallel", f.parallel, 1), least("times", f.times, 1))
}

// choose makes a series of the experiments that --only chooses.
func (f *seriesFlags) choose(all []suites.Experiment) (suites.Series, error) {
	only, err := f.chosen()
	if err != nil {
		return suites.Series{}, err
	}
	all = slices.DeleteFunc(all, func(e suites.Experiment) bool { return !only.MatchString(e.Name) })
	return suites.Series{Experiments: slices.Repeat(all, f.times), Machine: f.machine, Parallel: f.parallel}, f.any(all)
}

// any refuses an empty series.
func (f *seriesFlags) any(chosen []suites.Experiment) error {
	if len(chosen) == 0 {
		return runs.BadFlag("only", f.only, "nothing matches")
	}
	return nil
}

func reproAllCommand(s *system) *cobra.Command {
	var f seriesFlags
	cmd := &cobra.Command{
		Use: "all [FILE|FOLDER]...", Short: "run every lock, reproduction and control",
		Long: `Run every lock without faults and with paused holders, and every reproduction with its control, and compare each run with its expected verdict. The exit code is 0 only if all runs were as expected. Everything takes hours: --only chooses some. With files or folders, only the reproductions in them run.`,
		Example: `  lockcheck repro all --only '^lock/redis/'
  lockcheck repro all --only '^lock/' --parallel 4
  lockcheck repro all --only '^repro/' --times 5
  lockcheck repro all examples/applications --times 5`,
		Args: usageArgs(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			experiments, err := experimentsIn(args)
			if err != nil {
				return err
			}
			series, err := f.choose(experiments)
			if err != nil {
				return err
			}
			return s.runSeries(cmd.Context(), series)
		},
	}
	flags := flagsOf(cmd)
	f.add(flags, 1)
	flags.number(&f.times, "times", 1)
	return cmd
}

func reproTableCommand(s *system) *cobra.Command {
	var store string
	cmd := &cobra.Command{
		Use: "table [FILE|FOLDER]...", Short: "expected and observed verdicts, as Markdown",
		Example: `  lockcheck repro table
  lockcheck repro table examples`,
		Args: usageArgs(cobra.ArbitraryArgs),
		RunE: func(_ *cobra.Command, args []string) error {
			experiments, err := experimentsIn(args)
			if err != nil {
				return err
			}
			observed, err := findings.Observations(store, experiments)
			if err != nil {
				return err
			}
			return findings.Page("lockcheck "+strings.Join(append([]string{"repro table"}, args...), " "), observed).WriteMarkdown(s.stdout)
		},
	}
	flagsOf(cmd).text(&store, "store", "store")
	return cmd
}

// experimentsIn returns the experiments in files and folders, or all built-in ones.
func experimentsIn(paths []string) ([]suites.Experiment, error) {
	if len(paths) > 0 {
		return findings.InFiles(paths)
	}
	return findings.Experiments()
}

func claimsRunCommand(s *system) *cobra.Command {
	var f seriesFlags
	cmd := &cobra.Command{
		Use: "run", Short: "run the experiments that the claims rest on",
		Long: `Run the experiments that the claims rest on, and compare each run with its expected verdict. The exit code is 0 only if all runs were as expected. "lockcheck repro claims table" shows what they say about the claims. An experiment that measures times runs alone.`,
		Example: `  lockcheck repro claims run
  lockcheck repro claims run --only 'redlock|zookeeper'
  lockcheck repro claims run --missing`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			series, err := f.claims()
			if err != nil {
				return err
			}
			return s.runSeries(cmd.Context(), series)
		},
	}
	flags := flagsOf(cmd)
	f.add(flags, 2)
	flags.yes(&f.missing, "missing")
	return cmd
}

// claims makes a series of the experiments of claims.
func (f *seriesFlags) claims() (suites.Series, error) {
	only, err := f.chosen()
	if err != nil {
		return suites.Series{}, err
	}
	all, err := claims.Claims()
	if err != nil {
		return suites.Series{}, err
	}
	series, err := claims.Experiments(all, only)
	if err == nil {
		err = f.any(series.Experiments)
	}
	series.Machine, series.Parallel = f.machine, f.parallel
	if err != nil || !f.missing {
		return series, err
	}
	if _, err := os.Stat(f.machine.Store); errors.Is(err, os.ErrNotExist) {
		return series, nil
	}
	stored, err := suites.StoredRuns(f.machine.Store)
	return series.Without(stored), err
}

func claimsTableCommand(s *system) *cobra.Command {
	var store, links string
	cmd := &cobra.Command{
		Use: "table", Short: "claims and the runs behind them, as Markdown",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("links") {
				links = store
			}
			all, err := claims.Claims()
			if err != nil {
				return err
			}
			stored, err := suites.StoredRuns(store)
			if err != nil {
				return err
			}
			judged, err := claims.Judge(all, stored)
			if err != nil {
				return err
			}
			return claims.WriteTable(s.stdout, judged, links)
		},
	}
	flags := flagsOf(cmd)
	flags.text(&store, "store", "store")
	flags.text(&links, "links", "")
	return cmd
}

// runSeries runs experiments and prints one line for each.
func (s *system) runSeries(ctx context.Context, series suites.Series) error {
	if err := s.machine(&series.Machine); err != nil {
		return err
	}
	ran, unexpected := 0, 0
	err := s.attended(ctx, func(ctx context.Context, progress *reports.Progress, interrupt <-chan struct{}) (bool, error) {
		series.Progress, series.Done = progress, func(r suites.Ran) {
			ran++
			if r.Unexpected() {
				unexpected++
			}
			progress.Done()
			s.printRan(r)
		}
		return series.Run(ctx, interrupt)
	})
	if err == nil && unexpected > 0 {
		return &exitError{code: exitViolation, err: fmt.Errorf("%d of %d runs were not as expected", unexpected, ran)}
	}
	return err
}

func (s *system) printRan(r suites.Ran) {
	if r.Outcome.History == nil {
		fmt.Fprintf(s.stderr, "lockcheck: %s could not be run: %v\n", r.Name, r.Err)
		return
	}
	if r.Err != nil {
		fmt.Fprintf(s.stderr, "lockcheck: %s: %v\n", r.Name, r.Err)
	}
	judged := "as expected"
	if r.Missed != "" {
		judged = "NOT as expected: " + r.Missed
	}
	fmt.Fprintf(s.stdout, "%-45s %4.0fs  %s: %s\n", r.Name, r.Took.Seconds(), judged, r.Outcome.Results.Sentence)
}
