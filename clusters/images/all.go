package images

import (
	"context"
	"io/fs"
	"slices"

	"golang.org/x/sync/errgroup"

	"lockcheck/clusters/engine"
)

// EnsureAll returns the images of several recipes, in their order, and makes
// those that are not there. Programs that are compiled and packages that are
// downloaded wait for different things, so that the two kinds are made side by
// side; within a kind one by one, because a base is made only once.
func (m Maker) EnsureAll(ctx context.Context, names []string) ([]engine.Image, error) {
	made := make([]engine.Image, len(names))
	group, ctx := errgroup.WithContext(ctx)
	for _, compiled := range []bool{true, false} {
		group.Go(func() (err error) {
			for i, name := range names {
				if NeedsGo(name) != compiled {
					continue
				}
				if made[i], err = m.Ensure(ctx, name); err != nil {
					return err
				}
				if m.Ensured != nil {
					m.Ensured()
				}
			}
			return nil
		})
	}
	return made, group.Wait()
}

// NeedsGo says whether a recipe is built with the go command of the machine.
func NeedsGo(name string) bool {
	info, err := fs.Stat(recipes, recipesFolder+"/"+name)
	return err == nil && info.IsDir()
}

// Missing lists the recipes that no image was made by yet. Those of the others
// may be of former recipes, and be made again on first use.
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
