package runs

import (
	"context"
	"os/exec"
	"slices"

	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
)

// MakeImages makes the images of recipes that are not there yet, with the binary of
// lockcheck, and returns all of them.
func MakeImages(ctx context.Context, binary string, recipes []string, progress Progress) (made []engine.Image, err error) {
	docker, err := engine.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer docker.Close()
	err = Errand(binary, func(registry Registry) error {
		maker := images.Maker{
			Engine: docker, Progress: progress.Step, Status: progress.Status,
			Launch: func(c *exec.Cmd) error { return launch(c, registry.Process) }, RegisterFolder: registry.Folder,
		}
		made, err = maker.EnsureAll(ctx, recipes)
		return err
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// MakeImagesOf makes the images of tests before any of them runs, for what is measured
// needs the processors then. When interrupt is closed it ends.
func MakeImagesOf(ctx context.Context, interrupt <-chan struct{}, binary string, tests []Outline, progress Progress) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer cancelOn(ctx, cancel, interrupt)()
	var recipes []string
	for _, t := range tests {
		if t.Recipe != "" && !slices.Contains(recipes, t.Recipe) {
			recipes = append(recipes, t.Recipe)
		}
	}
	if len(recipes) == 0 {
		return nil
	}
	_, err := MakeImages(ctx, binary, recipes, progress)
	return err
}
