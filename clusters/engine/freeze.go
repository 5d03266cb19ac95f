package engine

import (
	"context"
	"fmt"
)

// Freeze stops all processes of a container by the freezer of its control group.
// They get no signal, and cannot be killed until Thaw.
func (e *Engine) Freeze(ctx context.Context, name string) error {
	if err := e.api.ContainerPause(ctx, name); err != nil {
		return fmt.Errorf("container %s: %w", name, err)
	}
	return nil
}

// Thaw lets the processes of a frozen container go on.
func (e *Engine) Thaw(ctx context.Context, name string) error {
	if err := e.api.ContainerUnpause(ctx, name); err != nil {
		return fmt.Errorf("container %s: %w", name, err)
	}
	return nil
}

// Frozen says whether a container is frozen.
func (e *Engine) Frozen(ctx context.Context, name string) (bool, error) {
	container, err := e.api.ContainerInspect(ctx, name)
	if err != nil {
		return false, fmt.Errorf("container %s: %w", name, err)
	}
	return container.State.Paused, nil
}
