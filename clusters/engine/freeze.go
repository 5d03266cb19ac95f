package engine

import (
	"context"
	"strings"
)

// Freeze stops all processes of a container by the freezer of its control group.
// They get no signal, and cannot be killed until Thaw.
func (e *Engine) Freeze(ctx context.Context, name string) (err error) {
	const tries = 5
	for range tries {
		// On a busy machine runc has answered "unable to freeze" for a container that it could freeze
		// when it was asked again.
		if err = e.api.ContainerPause(ctx, name); err == nil || !strings.Contains(err.Error(), "unable to freeze") {
			break
		}
	}
	return ofContainer(name, err)
}

// Thaw lets the processes of a frozen container go on.
func (e *Engine) Thaw(ctx context.Context, name string) error {
	return ofContainer(name, e.api.ContainerUnpause(ctx, name))
}

// Frozen says whether a container is frozen.
func (e *Engine) Frozen(ctx context.Context, name string) (bool, error) {
	container, err := e.api.ContainerInspect(ctx, name)
	if err != nil {
		return false, ofContainer(name, err)
	}
	return container.State.Paused, nil
}
