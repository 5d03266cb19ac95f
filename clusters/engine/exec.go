package engine

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// ExitError says that a command in a container ended with a status other than 0.
type ExitError struct {
	Code   int
	Output string // both streams
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("exit status %d: %s", e.Code, strings.TrimSpace(e.Output))
}

// Exec runs a command in a running container and returns its standard output. For a status other than 0 its
// error is an *ExitError.
func (e *Engine) Exec(ctx context.Context, name string, command []string) (string, error) {
	created, err := e.api.ContainerExecCreate(ctx, name, container.ExecOptions{Cmd: command, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return "", ofContainer(name, err)
	}
	stream, err := e.api.ContainerExecAttach(ctx, created.ID, container.ExecAttachOptions{})
	if err != nil {
		return "", ofContainer(name, err)
	}
	defer stream.Close()
	// A stopped server never answers, and reading the stream ignores the context.
	stop := context.AfterFunc(ctx, stream.Close)
	defer stop()
	var output, errors bytes.Buffer
	if _, err := stdcopy.StdCopy(&output, &errors, stream.Reader); err != nil {
		return "", fmt.Errorf("container %s: %s: %w", name, command[0], err)
	}
	ended, err := e.api.ContainerExecInspect(ctx, created.ID)
	switch {
	case err != nil:
		return "", ofContainer(name, err)
	case ended.ExitCode != 0:
		return "", &ExitError{Code: ended.ExitCode, Output: output.String() + errors.String()}
	}
	return output.String(), nil
}
