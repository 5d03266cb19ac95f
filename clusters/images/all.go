package images

import (
	"context"
	"io/fs"
	"slices"

	"golang.org/x/sync/errgroup"

	"lockcheck/clusters/engine"
)

// EnsureAll returns the images of several recipes, in their order, and makes the missing ones. Go programs are
// compiled one after another, because one go command keeps all processors busy. The other images are made at
// the same time as those and as each other, once their common parent exists.
func (m Maker) EnsureAll(ctx context.Context, names []string) ([]engine.Image, error) {
	made := make([]engine.Image, len(names))
	group, ctx := errgroup.WithContext(ctx)
	ensure := func(i int) (err error) {
		if made[i], err = m.Ensure(ctx, names[i]); err == nil && m.Ensured != nil {
			m.Ensured()
		}
		return err
	}
	group.Go(func() error {
		for i, name := range names {
			if !NeedsGo(name) {
				continue
			}
			if err := ensure(i); err != nil {
				return err
			}
		}
		return nil
	})
	group.Go(func() error {
		if slices.ContainsFunc(names, onServers) {
			if _, err := m.servers(ctx); err != nil {
				return err
			}
		}
		for i, name := range names {
			if !NeedsGo(name) {
				group.Go(func() error { return ensure(i) })
			}
		}
		return nil
	})
	return made, group.Wait()
}

// NeedsGo says whether a recipe is built with the machine's go command.
func NeedsGo(name string) bool {
	info, err := fs.Stat(recipes, recipesFolder+"/"+name)
	return err == nil && info.IsDir()
}

// Missing lists the recipes of which no image exists. An existing image may be of an earlier form of its
// recipe, and is then made again on first use.
func Missing(ctx context.Context, docker *engine.Engine) ([]string, error) {
	made, err := docker.ImagesWith(ctx, RecipeLabel)
	if err != nil {
		return nil, err
	}
	missing := Names()
	for _, image := range made {
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == image.Labels[RecipeLabel] })
	}
	return missing, nil
}
