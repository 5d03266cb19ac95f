package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
	"lockcheck/internal/runs"
	"lockcheck/internal/spelling"
)

// imagesFlags are the flags of "lockcheck images".
type imagesFlags struct {
	official, pin bool
	cache         string
}

func imagesCommand(s *system) *cobra.Command {
	f := new(imagesFlags)
	cmd := &cobra.Command{
		Use: "images [RECIPE]...", Short: "make server images now, not on first use",
		Long: `Make the images that servers run from, out of Debian packages and Go modules. With --official, pull the upstream images by their digests. ` + images.RegistryVariable + ` names another registry, such as a mirror; ` + images.TableVariable + ` names a file that replaces lockcheck's table of digests.`,
		Example: `  lockcheck images
  lockcheck images redis etcd-3.6.16
  lockcheck images --cache images.tar redis
  lockcheck images --official redis-official
  lockcheck images --official --pin-digests > official.txt`,
		Args: usageArgs(func(_ *cobra.Command, names []string) error {
			_, err := f.recipes(names)
			return err
		}),
		RunE: func(cmd *cobra.Command, names []string) error {
			list, err := f.recipes(names)
			if err != nil {
				return err
			}
			return s.untilInterrupted(cmd.Context(), func(ctx context.Context) error {
				if f.pin {
					return s.pinImages(ctx, list)
				}
				return s.makeImages(ctx, list, f.cache)
			})
		},
		ValidArgs: allRecipes(),
	}
	flags := flagsOf(cmd)
	flags.alsoCalled(map[string]string{"pin": "pin-digests"})
	flags.yes(&f.official, "official")
	flags.yes(&f.pin, "pin-digests")
	flags.text(&f.cache, "cache", "")
	return cmd
}

// recipes returns the named recipes, or all recipes of the kind.
func (f *imagesFlags) recipes(names []string) ([]string, error) {
	if f.pin && (!f.official || f.cache != "") {
		return nil, runs.BadFlag("pin-digests", nil, "it needs --official, and excludes --cache")
	}
	for _, name := range names {
		if !slices.Contains(allRecipes(), name) {
			return nil, &spelling.UnknownError{What: "recipe", Name: name, Known: allRecipes()}
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	if !f.official {
		return images.Names(), nil
	}
	all, err := images.OfficialImages()
	for _, official := range all {
		if f.pin || official.Digest != "" {
			names = append(names, official.Recipe)
		}
	}
	return names, err
}

// allRecipes lists the names of all recipes. It leaves out the recipes of a table that cannot be read.
func allRecipes() []string {
	names := images.Names()
	all, err := images.OfficialImages()
	if err != nil {
		return names
	}
	for _, official := range all {
		names = append(names, official.Recipe)
	}
	return names
}

func (s *system) makeImages(ctx context.Context, names []string, cache string) error {
	binary, err := s.binary()
	if err != nil {
		return err
	}
	progress := s.progress()
	made, err := runs.MakeImages(ctx, binary, names, cache, progress)
	progress.Done()
	for i, image := range made {
		fmt.Fprintf(s.stdout, "%s  %s", image.Ref, image.ID)
		if images.IsOfficial(names[i]) {
			official, err := images.OfficialNamed(names[i])
			if err != nil {
				return err
			}
			fmt.Fprintf(s.stdout, "  %s", official.Pinned())
		}
		fmt.Fprintln(s.stdout)
	}
	return err
}

// pinImages prints the table of official images with the current digests of their registries.
func (s *system) pinImages(ctx context.Context, names []string) error {
	all, err := images.OfficialImages()
	if err != nil {
		return err
	}
	docker, err := engine.Connect(ctx)
	if err != nil {
		return err
	}
	defer docker.Close()
	asked := slices.DeleteFunc(all, func(o images.OfficialImage) bool { return !slices.Contains(names, o.Recipe) })
	pinned, err := images.Maker{Engine: docker}.Pin(ctx, asked)
	for _, official := range pinned {
		fmt.Fprintln(s.stdout, official)
	}
	return err
}
