package engine

import (
	"context"
	"time"

	"github.com/docker/docker/api/types/filters"
)

// RemoveLayers removes the nameless images with a label, which a failed build leaves behind for the next
// attempt.
func (e *Engine) RemoveLayers(ctx context.Context, label string) error {
	_, err := e.api.ImagesPrune(ctx, filters.NewArgs(filters.Arg("dangling", "true"), filters.Arg("label", label)))
	return err
}

// FirstSubnet returns the number of the subnet at which the search for a network of this name begins.
func FirstSubnet(name string) int { return firstSubnet(name) }

// Limit changes how long the engine may be silent.
func (e *Engine) Limit(answer, output time.Duration) {
	e.limits = limits{answer: answer, output: output}
}
