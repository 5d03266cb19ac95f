package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/hunt"
	"lockcheck/internal/suites/matrix"
)

func mergeCommand(s *system) *cobra.Command {
	var out, baseline string
	cmd := &cobra.Command{
		Use:   "merge FOLDER FOLDER...",
		Short: "put the parts of one comparison or hunt together",
		Long: `Put together the parts of one comparison or hunt that were made with --shard,
copy what they keep into a new folder, and write its reports. What no part has
made leaves the whole undecided, unless a hunt has found something.

` + exitCodes,
		Example: "  lockcheck merge --out all part1 part2 part3",
		Args: usageArgs(func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the folders of the parts")
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.untilInterrupted(cmd.Context(), func(ctx context.Context) error { return s.merge(ctx, out, baseline, args) })
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&out, "out", "", "`folder` for the whole; it must be given")
	addBaseline(cmd.Flags(), &baseline)
	return cmd
}

func (s *system) merge(ctx context.Context, out, against string, paths []string) error {
	if out == "" {
		return &runs.UsageError{Err: errors.New("--out: name the folder for the whole")}
	}
	if hunt.Holds(paths[0]) {
		if against != "" {
			return &runs.UsageError{Err: errors.New("--baseline is for comparisons")}
		}
		return s.mergeHunt(ctx, out, "", paths)
	}
	return s.mergeComparison(ctx, out, against, paths)
}

func (s *system) mergeHunt(ctx context.Context, out string, expect checker.Verdict, paths []string) error {
	var parts []*hunt.Folder
	for _, path := range paths {
		part, err := hunt.Open(path)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	whole, err := hunt.Merge(ctx, out, parts)
	if err != nil {
		return err
	}
	return s.showHunt(whole, expect, nil)
}

func (s *system) mergeComparison(ctx context.Context, out, against string, paths []string) error {
	baseline, err := readBaseline(against)
	if err != nil {
		return err
	}
	var parts []*matrix.Folder
	for _, path := range paths {
		part, err := matrix.Open(path)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	whole, err := matrix.Merge(ctx, out, parts)
	if err != nil {
		return err
	}
	return s.showComparison(whole, baseline, nil)
}
