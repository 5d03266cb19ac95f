package engine

import "context"

// Freeze stops all processes of a container by the freezer of its control group.
// They get no signal, and cannot be killed until Thaw.
func (e *Engine) Freeze(ctx context.Context, name string) error {
	return ofContainer(name, e.api.ContainerPause(ctx, name))
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
