package runs

import (
	"context"

	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
)

// NoDockerError says that tests with containers cannot run on this machine.
type NoDockerError struct{ Err error }

func (e *NoDockerError) Error() string {
	return e.Err.Error() + `; run "lockcheck doctor"`
}
func (e *NoDockerError) Unwrap() error { return e.Err }

// ReadyForDocker checks what is needed before anything can run in containers. Its error is a *UsageError for
// a binary that cannot run in containers, or a *NoDockerError.
func ReadyForDocker(ctx context.Context, binary string) error {
	if err := images.CheckBinary(binary); err != nil {
		return Usagef("lockcheck itself could not run in containers: %w", err)
	}
	docker, err := engine.Connect(ctx)
	if err != nil {
		return &NoDockerError{Err: err}
	}
	return docker.Close()
}
