package engine

import (
	"context"
	"strings"
)

// Freeze stops all processes of a container with the freezer of its control group. They receive no signal, and
// cannot be killed until Thaw.
func (e *Engine) Freeze(ctx context.Context, name string) (err error) {
	const tries = 5
	for range tries {
		// On a busy machine runc has answered "unable to freeze" for a container that it froze at the next
		// attempt.
		if err = e.api.ContainerPause(ctx, name); err == nil || !strings.Contains(err.Error(), "unable to freeze") {
			break
		}
	}
	return ofContainer(name, err)
}

// Thaw lets the processes of a frozen container continue.
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
