package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites/repros"
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
		Short: "reproduce a published finding, or run its control",
		Long: `Run a published finding as a fixed schedule. The exit code is 0 only if exactly
the expected verdict was reached; a broken or undecided run never counts as
reproduced. --control runs the same test with something changed that must make a
difference, and compares it with an expectation of its own.

A reproduction can be a file, whose lock can be a lock file next to it. One that
is made for many locks, such as holder-pause, takes any of them by --lock. With
--list name files or folders to list what is in them.

` + exitCodes,
		Example: `  lockcheck repro --list
  lockcheck repro redlock-clock-jump
  lockcheck repro redlock-clock-jump --control
  lockcheck repro holder-pause --lock examples/redis-py/lock.yaml
  lockcheck repro --list examples
  lockcheck repro examples/kazoo/leaked-contender.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.list:
				return s.listReproductions(args)
			case len(args) == 0:
				return &runs.UsageError{Err: errors.New("name a reproduction, or use --list")}
			case len(args) > 1:
				return &runs.UsageError{Err: fmt.Errorf("name at most 1 reproduction, not %d", len(args))}
			}
			return s.reproduce(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().BoolVar(&f.list, "list", false, "list the reproductions")
	cmd.Flags().StringVarP(&f.lock, "lock", "l", "", "`lock` for a reproduction that is made for many: a name, or a lock file")
	cmd.Flags().BoolVar(&f.form.Control, "control", false, "run the control in place of the finding")
	cmd.Flags().BoolVar(&f.form.Fast, "fast", false, "run a shorter form, where there is one")
	cmd.Flags().StringVar(&f.machine.Store, "store", "store", "`folder` for runs")
	return cmd
}

// listReproductions lists those in files and folders, or those that are built in.
func (s *system) listReproductions(paths []string) error {
	all, err := repros.All()
	if len(paths) > 0 {
		all, err = repros.In(paths)
	}
	if err != nil {
		return err
	}
	var items []item
	for _, r := range all {
		items = append(items, reproductionItem(r))
	}
	return s.printItems(items)
}

func reproductionItem(r repros.Reproduction) item {
	facts := []string{r.Summary, "expected: " + r.Expect.String()}
	if r.Source != "" {
		facts = append(facts, "source: "+r.Source)
	}
	if r.Control != nil {
		facts = append(facts, fmt.Sprintf("control: %s: %s", r.Control.Summary, r.Control.Expect))
	}
	return item{cmp.Or(r.Path, r.Name), facts}
}

func (s *system) reproduce(ctx context.Context, name string, f reproFlags) error {
	r, err := repros.Find(name, f.lock)
	if err != nil {
		return err
	}
	machine, form := f.machine, f.form
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
	for _, said := range []string{cmp.Or(r.Claim, r.Summary), labelled("source: ", r.Source)} {
		if said != "" {
			progress.Step("%s", said)
		}
	}
	outcome, missed, err := e.Run(ctx, machine, interrupt, progress)
	progress.Done()
	if outcome.History == nil {
		return err
	}
	err = errors.Join(err, s.report(outcome.Judgement))
	err = alsoFailed(s.conclude(r, form.Control, outcome, missed), err)
	if err != nil || form.Control || r.Control == nil {
		return err
	}
	return s.printItems([]item{{"its control", []string{r.Control.Summary, s.terminalOptions().CommandLine(controlCommand(name, f.lock))}}})
}

// labelled puts a label before what there is.
func labelled(label, text string) string {
	if text == "" {
		return ""
	}
	return label + text
}

// controlCommand runs the control of a reproduction that was asked for.
func controlCommand(name, lock string) string {
	command := "lockcheck repro " + name
	if lock != "" {
		command += " --lock " + lock
	}
	return command + " --control"
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
