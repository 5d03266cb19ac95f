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
		Short: "undo and remove what killed runs have left",
		Long: `Remove the processes, containers, networks and volumes of runs whose lockcheck
is dead. Runs that are going on, and all that is not lockcheck's, are left
alone.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.untilInterrupted(cmd.Context(), func(ctx context.Context) error { return s.clean(ctx, withImages) })
		},
	}
	cmd.Flags().BoolVar(&withImages, "images", false, "remove the images that lockcheck has made, too")
	return cmd
}

func (s *system) clean(ctx context.Context, withImages bool) error {
	left, unavailable, err := cleanup.Clean(ctx, true)
	for _, l := range left {
		fmt.Fprintf(s.stdout, "run %s: removed %d processes, %d Docker objects\n", l.Run, l.Processes, l.Objects)
		for _, undone := range l.Undone {
			fmt.Fprintf(s.stdout, "  undone with them: %s\n", undone)
		}
	}
	if unavailable != nil && !withImages { // with them it fails below
		fmt.Fprintf(s.stdout, "not looked at: %v\n", unavailable)
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
