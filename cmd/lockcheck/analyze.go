package main

import (
	"github.com/spf13/cobra"

	"lockcheck/harness"
)

func analyzeCommand(s *system) *cobra.Command {
	return &cobra.Command{
		Use:   "analyze RUN",
		Short: "judge a stored history again",
		Long: `Judge the history of a run, its folder or its file, from what is stored alone.
A history that a killed run left is accepted up to where it was cut off.

` + exitCodes,
		Example: "  lockcheck analyze store/latest",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			judgement, err := harness.Judge(args[0])
			if err != nil {
				return err
			}
			if err := s.report(judgement); err != nil {
				return err
			}
			return codeOnly(verdictCode(judgement.Results.Verdict))
		},
	}
}
