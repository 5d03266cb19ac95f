package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
	"lockcheck/internal/cleanup"
)

func cleanCommand(s *system) *cobra.Command {
	var withImages bool
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "remove what killed runs left behind",
		Long:  `Undo the faults of runs whose lockcheck was killed, and remove their processes, containers, networks and volumes. Other runs, and everything that is not lockcheck's, stay untouched.`,
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.untilInterrupted(cmd.Context(), func(ctx context.Context) error { return s.clean(ctx, withImages) })
		},
	}
	flagsOf(cmd).yes(&withImages, "images")
	return cmd
}

func (s *system) clean(ctx context.Context, withImages bool) error {
	left, unavailable, err := cleanup.Clean(ctx, true)
	for _, l := range left {
		fmt.Fprintf(s.stdout, "run %s: removed %d processes, %d Docker objects\n", l.Run, l.Processes, l.Objects)
		for _, undone := range l.Undone {
			fmt.Fprintf(s.stdout, "  undone: %s\n", undone)
		}
	}
	if unavailable != nil && !withImages { // else removing images fails below
		fmt.Fprintf(s.stdout, "not checked: %v\n", unavailable)
	}
	if err != nil {
		return err
	}
	if len(left) == 0 {
		fmt.Fprintln(s.stdout, "nothing to clean")
	}
	if withImages {
		return s.removeImages(ctx)
	}
	return nil
}

func (s *system) removeImages(ctx context.Context) error {
	docker, err := engine.Connect(ctx)
	if err != nil {
		return err
	}
	defer docker.Close()
	removed, err := images.Maker{Engine: docker, Progress: s.progress().Step}.Remove(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "removed %d images\n", removed)
	return nil
}
