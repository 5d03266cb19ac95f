package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/findings"
	"lockcheck/reports"
)

func findingsCommand(s *system) *cobra.Command {
	findings := &cobra.Command{
		Use: "findings", Short: "run all locks and findings, and compare with what is expected",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	findings.AddCommand(findingsRunCommand(s), findingsTableCommand(s))
	return findings
}

// findingsFlags choose experiments.
type findingsFlags struct {
	machine  runs.Machine
	only     string
	times    int
	parallel int
}

func findingsRunCommand(s *system) *cobra.Command {
	var f findingsFlags
	cmd := &cobra.Command{
		Use: "run [FILE|FOLDER]...", Short: "run every lock with and without pauses, every finding and control",
		Long: `Run every lock without faults and with stopped holders, and every reproduction
with its control, and compare each run with what is expected of it. The exit
code is 0 only if all of them were as expected. All of it takes hours: --only
chooses some. With files, or folders of them, it runs the reproductions in
them in place of all that.`,
		Example: `  lockcheck findings run --only '^lock/redis/'
  lockcheck findings run --only '^lock/' --parallel 4
  lockcheck findings run --only '^repro/' --times 5
  lockcheck findings run examples
  lockcheck findings table`,
		RunE: func(cmd *cobra.Command, args []string) error {
			experiments, err := experimentsIn(args)
			if err != nil {
				return err
			}
			series, err := f.series(experiments)
			if err != nil {
				return err
			}
			return s.runSeries(cmd.Context(), series)
		},
	}
	cmd.Flags().StringVar(&f.only, "only", "", "run only what matches the regular `expression`, as in lock/redis/paused")
	cmd.Flags().IntVar(&f.times, "times", 1, "how often each is run, all of them once before any again")
	cmd.Flags().IntVar(&f.parallel, "parallel", 1, "how many runs to make at a time")
	cmd.Flags().StringVar(&f.machine.Store, "store", "store", "`folder` for runs")
	return cmd
}

func findingsTableCommand(s *system) *cobra.Command {
	var store string
	cmd := &cobra.Command{
		Use: "table [FILE|FOLDER]...", Short: "show expected against observed from stored runs, as Markdown",
		Example: `  lockcheck findings table
  lockcheck findings table examples`,
		RunE: func(_ *cobra.Command, args []string) error {
			experiments, err := experimentsIn(args)
			if err != nil {
				return err
			}
			observed, err := findings.Observations(store, experiments)
			if err != nil {
				return err
			}
			return reports.FindingsTable(s.stdout, "lockcheck "+strings.Join(append([]string{"findings table"}, args...), " "), observed)
		},
	}
	cmd.Flags().StringVar(&store, "store", "store", "`folder` of runs")
	return cmd
}

// experimentsIn are those in files and folders, or all that are built in.
func experimentsIn(paths []string) ([]suites.Experiment, error) {
	if len(paths) > 0 {
		return findings.InFiles(paths)
	}
	return findings.Experiments()
}

// seriesOf reads the flags that every series of experiments has: which are run, and how many at a time.
func seriesOf(only string, parallel int) (*regexp.Regexp, error) {
	if parallel < 1 {
		return nil, &runs.UsageError{Err: errors.New("--parallel must be at least 1")}
	}
	chosen, err := regexp.Compile(only)
	if err != nil {
		return nil, &runs.UsageError{Err: fmt.Errorf("--only: %w", err)}
	}
	return chosen, nil
}

// series is what the flags choose of experiments.
func (f findingsFlags) series(all []suites.Experiment) (suites.Series, error) {
	var none suites.Series
	chosen, err := seriesOf(f.only, f.parallel)
	if err != nil {
		return none, err
	}
	if f.times < 1 {
		return none, &runs.UsageError{Err: fmt.Errorf("--times %d: at least one run has to be made", f.times)}
	}
	all = slices.DeleteFunc(all, func(e suites.Experiment) bool { return !chosen.MatchString(e.Name) })
	if len(all) == 0 {
		return none, &runs.UsageError{Err: fmt.Errorf("--only %s: nothing matches", f.only)}
	}
	return suites.Series{Experiments: slices.Repeat(all, f.times), Machine: f.machine, Parallel: f.parallel}, nil
}

// runSeries runs experiments and says in a line what came of each.
func (s *system) runSeries(ctx context.Context, series suites.Series) error {
	if err := s.machine(&series.Machine); err != nil {
		return err
	}
	ctx, interrupt, release := s.interruptible(ctx)
	defer release()
	progress := s.progress()
	ran, unexpected := 0, 0
	series.Progress, series.Done = progress, func(r suites.Ran) {
		ran++
		if r.Unexpected() {
			unexpected++
		}
		progress.Done()
		s.tellRan(r)
	}
	interrupted, err := series.Run(ctx, interrupt)
	progress.Done()
	switch {
	case interrupted:
		return errors.Join(err, &exitError{code: exitInterrupted})
	case err != nil:
		return err
	case unexpected > 0:
		return &exitError{code: exitViolation, err: fmt.Errorf("%d of %d runs were not as expected", unexpected, ran)}
	}
	return nil
}

func (s *system) tellRan(r suites.Ran) {
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
