package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/remedied"
	"lockcheck/reports"
)

// testWithRemedies runs a test, and again with each remedy if it ends in a violation. The
// exit code is that of the first run.
func (s *system) testWithRemedies(ctx context.Context, o runs.Options, expect checker.Verdict) error {
	plan, err := remedied.New(o)
	if err != nil {
		return err
	}
	ctx, interrupt, release := s.interruptible(ctx)
	defer release()
	outcome, err := s.runTest(ctx, plan.Plain, interrupt)
	if outcome.History == nil {
		return err
	}
	failed := alsoFailed(verdictError(outcome, expect), err)
	if outcome.Interrupted || outcome.Results.Verdict != checker.Violation {
		fmt.Fprintf(s.stdout, "\nNo remedies were tried: the run is %s.\n", outcome.Results.Verdict)
		return failed
	}
	return s.tryRemedies(ctx, plan, o.Machine, outcome.Judgement, failed, interrupt)
}

// tryRemedies makes the runs with remedies; failed is how the first one ended.
func (s *system) tryRemedies(ctx context.Context, plan remedied.Plan, m runs.Machine, plain runs.Judgement, failed error, interrupt <-chan struct{}) error {
	progress := s.progress()
	tried, interrupted, err := plan.Run(ctx, m, plain, progress, interrupt)
	progress.Done()
	if interrupted {
		failed = &exitError{code: exitInterrupted}
	}
	err = errors.Join(err, reports.RemediesTerminal(s.stdout, tried, s.terminalOptions()))
	fmt.Fprintf(s.stdout, "\nfolder  %s\npage    %s\n", plan.Path, filepath.Join(plan.Path, runs.RemediesFile))
	return alsoFailed(failed, err)
}
