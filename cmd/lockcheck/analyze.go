package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"lockcheck/harness"
)

func analyzeCommand(s *system) *cobra.Command {
	return &cobra.Command{
		Use:   "analyze RUN",
		Short: "judge a stored history again",
		Long: `Judge the history of a run, its folder or its file, from what is stored alone.
A history that a killed run left is accepted up to where it was cut off. In the
folder of a run its reports are written again.

` + exitCodes,
		Example: "  lockcheck analyze store/latest",
		Args: usageArgs(func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one run: its folder or its history")
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.untilInterrupted(cmd.Context(), func(context.Context) error { return s.analyze(args[0]) })
		},
	}
}

// collectAt is how much garbage there may be beside what is in use, in percent, while
// a history is judged: one of millions of operations fits in memory only with little.
const collectAt = 25

func (s *system) analyze(path string) error {
	debug.SetGCPercent(collectAt)
	judgement, err := harness.Judge(path)
	if err != nil {
		return err
	}
	// A run that was killed has no reports yet, and a newer lockcheck may see
	// more in an old one. A store that cannot be written is judged all the same.
	if err := judgement.WriteReports(); err != nil {
		fmt.Fprintln(s.stderr, "lockcheck: the reports could not be written:", err)
	}
	if err := s.report(judgement); err != nil {
		return err
	}
	return codeOnly(verdictCode(judgement.Results.Verdict))
}
