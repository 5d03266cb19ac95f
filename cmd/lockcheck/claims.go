package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/claims"
)

func claimsCommand(s *system) *cobra.Command {
	cmd := &cobra.Command{
		Use: "claims", Short: "hold what is said of locks against runs",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(claimsRunCommand(s), claimsTableCommand(s))
	return cmd
}

// claimsFlags choose experiments.
type claimsFlags struct {
	machine  runs.Machine
	only     string
	missing  bool
	parallel int
}

func claimsRunCommand(s *system) *cobra.Command {
	var f claimsFlags
	cmd := &cobra.Command{
		Use: "run", Short: "run the experiments that the claims rest on",
		Long: `Run the experiments that the claims rest on, and compare each run with what is
expected of it. The exit code is 0 only if all were as expected; the table shows
what they say of the claims. What a claim measures is measured with nothing else
next to it.`,
		Example: `  lockcheck claims run
  lockcheck claims run --only 'redlock|zookeeper'
  lockcheck claims run --missing
  lockcheck claims table`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.runClaims(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.only, "only", "", "run only what matches the regular `expression`, as in claim/wakes")
	cmd.Flags().BoolVar(&f.missing, "missing", false, "run only what no run is stored of")
	cmd.Flags().IntVar(&f.parallel, "parallel", 2, "how many runs to make at a time")
	cmd.Flags().StringVar(&f.machine.Store, "store", "store", "`folder` for runs")
	return cmd
}

func claimsTableCommand(s *system) *cobra.Command {
	var store, links string
	cmd := &cobra.Command{
		Use: "table", Short: "show claims, runs for and against them, and verdicts, as Markdown",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("links") {
				links = store
			}
			return s.claimsTable(store, links)
		},
	}
	cmd.Flags().StringVar(&store, "store", "store", "`folder` of runs")
	cmd.Flags().StringVar(&links, "links", "", "`path` of that folder from where the table will be; \"\" for no links (default: as --store)")
	return cmd
}

func (s *system) claimsTable(store, links string) error {
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
}

func (s *system) runClaims(ctx context.Context, f claimsFlags) error {
	series, err := f.series()
	if err != nil {
		return err
	}
	return s.runSeries(ctx, series)
}

// series is what the flags choose.
func (f claimsFlags) series() (suites.Series, error) {
	var none suites.Series
	only, err := seriesOf(f.only, f.parallel)
	if err != nil {
		return none, err
	}
	all, err := claims.Claims()
	if err != nil {
		return none, err
	}
	series, err := claims.Experiments(all, only)
	if err != nil {
		return none, err
	}
	if len(series.Experiments) == 0 {
		return none, &runs.UsageError{Err: fmt.Errorf("--only %s: nothing matches", f.only)}
	}
	series.Machine, series.Parallel = f.machine, f.parallel
	if _, err := os.Stat(f.machine.Store); !f.missing || errors.Is(err, os.ErrNotExist) {
		return series, nil
	}
	stored, err := suites.StoredRuns(f.machine.Store)
	return series.Without(stored), err
}
