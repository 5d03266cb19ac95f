package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"lockcheck/harness"
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
	machine harness.Options
	only    string
	times   int
}

func findingsRunCommand(s *system) *cobra.Command {
	var f findingsFlags
	cmd := &cobra.Command{
		Use: "run", Short: "run every lock with and without pauses, every finding and control",
		Long: `Run every lock without faults and with stopped holders, and every reproduction
with its control, and compare each run with what is expected of it. The exit
code is 0 only if all of them were as expected. All of it takes hours: --only
chooses some.`,
		Example: `  lockcheck findings run --only '^lock/redis/'
  lockcheck findings run --only '^repro/' --times 5
  lockcheck findings table`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.runFindings(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.only, "only", "", "run only what matches the regular `expression`, as in lock/redis/paused")
	cmd.Flags().IntVar(&f.times, "times", 1, "how often each is run")
	cmd.Flags().StringVar(&f.machine.Store, "store", "store", "`folder` for runs")
	return cmd
}

func findingsTableCommand(s *system) *cobra.Command {
	var store string
	cmd := &cobra.Command{
		Use: "table", Short: "show expected against observed from stored runs, as Markdown",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			observed, err := harness.Observations(store)
			if err != nil {
				return err
			}
			return reports.FindingsTable(s.stdout, observed)
		},
	}
	cmd.Flags().StringVar(&store, "store", "store", "`folder` of runs")
	return cmd
}

func (s *system) runFindings(ctx context.Context, f findingsFlags) error {
	chosen, err := regexp.Compile(f.only)
	if err != nil {
		return &harness.UsageError{Err: fmt.Errorf("--only: %w", err)}
	}
	all, err := harness.Experiments()
	if err != nil {
		return err
	}
	if err := s.machine(&f.machine); err != nil {
		return err
	}
	ctx, interrupt, release := s.interruptible(ctx)
	defer release()
	ran, unexpected := 0, 0
	for _, e := range all {
		if !chosen.MatchString(e.Name) {
			continue
		}
		for range f.times {
			as, err := s.runExperiment(ctx, e, f.machine, interrupt)
			var code *exitError
			switch {
			case errors.As(err, &code) && code.code == exitInterrupted:
				return err
			case err != nil: // of this run alone
				fmt.Fprintf(s.stderr, "lockcheck: %v\n", err)
			}
			ran++
			if !as || err != nil {
				unexpected++
			}
		}
	}
	switch {
	case ran == 0:
		return &harness.UsageError{Err: fmt.Errorf("--only %s: nothing matches", f.only)}
	case unexpected > 0:
		return &exitError{code: exitViolation, err: fmt.Errorf("%d of %d runs were not as expected", unexpected, ran)}
	}
	return nil
}

// runExperiment runs an experiment once and says in a line what came of it.
func (s *system) runExperiment(ctx context.Context, e harness.Experiment, machine harness.Options, interrupt <-chan struct{}) (as bool, err error) {
	progress := s.progress()
	began := time.Now()
	outcome, missed, err := e.Run(ctx, machine, interrupt, progress)
	progress.Done()
	switch {
	case outcome.History == nil:
		return false, errors.Join(fmt.Errorf("%s could not be run", e.Name), err)
	case outcome.Interrupted:
		return false, &exitError{code: exitInterrupted}
	}
	fmt.Fprintln(s.stdout, ranLine(e.Name, time.Since(began), missed, outcome.Results.Sentence))
	return missed == "", err
}

// ranLine says what came of an experiment.
func ranLine(name string, took time.Duration, missed, sentence string) string {
	judged := "as expected"
	if missed != "" {
		judged = "NOT as expected: " + missed
	}
	return fmt.Sprintf("%-45s %4.0fs  %s: %s", name, took.Seconds(), judged, sentence)
}
