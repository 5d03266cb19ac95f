package main

import (
	"context"
	"errors"
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
		Use: "images [RECIPE]...", Short: "make all images now instead of on first use",
		Long: `Make the images that servers run from: of Debian packages and Go modules, or,
with --official, of the images that the makers of the servers publish, pulled
by their digests. ` + images.RegistryVariable + ` names the registry to ask, such as a
mirror; ` + images.TableVariable + ` a file in place of lockcheck's table of digests.`,
		Example: `  lockcheck images
  lockcheck images redis etcd-3.6.16
  lockcheck images --cache images.tar redis
  lockcheck images --official redis-official
  lockcheck images --official --pin > official.txt`,
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
	cmd.Flags().BoolVar(&f.official, "official", false, "the images that the makers of servers publish; all of which a digest is known")
	cmd.Flags().BoolVar(&f.pin, "pin", false, "with --official: print the table with the digests that the registry has now, and pull nothing")
	cmd.Flags().StringVar(&f.cache, "cache", "", "`file` to load images from if it is there, and to write them to if any is missing in it")
	return cmd
}

// recipes are those that are meant by names; without any, all of the kind.
func (f *imagesFlags) recipes(names []string) ([]string, error) {
	if f.pin && (!f.official || f.cache != "") {
		return nil, errors.New("--pin: it is for --official, and without --cache")
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

// allRecipes lists those that can be named; a table that cannot be read has none.
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

// pinImages prints the table of official images with the digests of their registries.
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
