package runs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
	"lockcheck/internal/cleanup"
	"lockcheck/reports"
)

// MakeImages makes the missing images of recipes with the binary of lockcheck, and returns all images. The
// file cache keeps them; "" for no cache.
func MakeImages(ctx context.Context, binary string, recipes []string, cache string, progress Progress) (made []engine.Image, err error) {
	if err := ReadyForDocker(ctx, binary); err != nil {
		return nil, err
	}
	docker, err := engine.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer docker.Close()
	err = cleanup.WithReaper(binary, func(registry cleanup.Registry) error {
		count := imageCount{total: len(recipes), began: time.Now(), progress: progress}
		maker := images.Maker{
			Engine: docker, Progress: progress.Step, Status: progress.Status, Ensured: count.add,
			Launch: registry.Start, RegisterFolder: registry.Folder,
		}
		if cache != "" {
			made, err = maker.EnsureCached(ctx, recipes, cache)
			return err
		}
		made, err = maker.EnsureAll(ctx, recipes)
		return err
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// imageCount reports how many images exist, and the longest time that the others will take.
type imageCount struct {
	mu          sync.Mutex
	done, total int
	made        int // those of them that were made, not found
	began, last time.Time
	progress    Progress
}

func (c *imageCount) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.done++
	if now.Sub(c.last) > time.Second && now.Sub(c.began) > time.Second {
		c.made++
	}
	c.last = now
	if c.made == 0 || c.total == 1 {
		return
	}
	text := fmt.Sprintf("%d of %d images", c.done, c.total)
	if left := c.total - c.done; left > 0 {
		text += "; at most " + reports.Left(now.Sub(c.began)*time.Duration(left)/time.Duration(c.made))
	}
	c.progress.Step("%s", text)
}

// MakeImagesOf makes the images of tests before any of them runs, because measured runs need the processors.
// It ends when interrupt is closed.
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
	_, err := MakeImages(ctx, binary, recipes, "", progress)
	return err
}
