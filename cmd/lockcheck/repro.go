package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites/repros"
)

func reproCommand(s *system) *cobra.Command {
	var list bool
	var form repros.Form
	var machine runs.Machine
	cmd := &cobra.Command{
		Use:   "repro NAME",
		Short: "reproduce a published finding, or run its control",
		Long: `Run a published finding as a fixed schedule. The exit code is 0 only if exactly
the expected verdict was reached; a broken or undecided run never counts as
reproduced. --control runs the same test with something changed that must make a
difference, and compares it with an expectation of its own.

` + exitCodes,
		Example: `  lockcheck repro --list
  lockcheck repro redlock-clock-jump
  lockcheck repro redlock-clock-jump --control`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case list:
				return s.listReproductions()
			case len(args) == 0:
				return &runs.UsageError{Err: errors.New("name a reproduction, or use --list")}
			}
			return s.reproduce(cmd.Context(), args[0], form, machine)
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the reproductions")
	cmd.Flags().BoolVar(&form.Control, "control", false, "run the control in place of the finding")
	cmd.Flags().BoolVar(&form.Fast, "fast", false, "run a shorter form, where there is one")
	cmd.Flags().StringVar(&machine.Store, "store", "store", "`folder` for runs")
	return cmd
}

func (s *system) listReproductions() error {
	all, err := repros.All()
	if err != nil {
		return err
	}
	var items []item
	for _, r := range all {
		items = append(items, item{r.Name, []string{
			r.Summary,
			"expected: " + r.Expect.String(),
			"source: " + r.Source,
			fmt.Sprintf("control: %s: %s", r.Control.Summary, r.Control.Expect),
		}})
	}
	return s.printItems(items)
}

func (s *system) reproduce(ctx context.Context, name string, form repros.Form, machine runs.Machine) error {
	r, err := repros.ByName(name)
	if err != nil {
		return err
	}
	if err := s.machine(&machine); err != nil {
		return err
	}
	e, err := r.Experiment(form)
	if err != nil {
		return err
	}
	ctx, interrupt, release := s.interruptible(ctx)
	defer release()
	progress := s.progress()
	progress.Step("%s", r.Claim)
	progress.Step("source: %s", r.Source)
	outcome, missed, err := e.Run(ctx, machine, interrupt, progress)
	progress.Done()
	if outcome.History == nil {
		return err
	}
	err = errors.Join(err, s.report(outcome.Judgement))
	return alsoFailed(s.conclude(r, form.Control, outcome, missed), err)
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
	if !control {
		return s.printItems([]item{{"its control", []string{r.Control.Summary, "lockcheck repro " + r.Name + " --control"}}})
	}
	return nil
}
