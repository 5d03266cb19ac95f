// Package workerprogram is the program of the workers of a lock whose client library is not linked into
// lockcheck: another version of one, or one that takes longer to compile than all the rest.
package workerprogram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"lockcheck/clusters/stage"
	"lockcheck/internal/processes"
	"lockcheck/workloads"
)

// Main runs the command line by which lockcheck starts one of its processes, and exits.
func Main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lockcheck:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == stage.Command:
		binary, err := os.Executable()
		if err != nil {
			return err
		}
		return stage.Serve(binary, os.Stdin, os.Stdout, os.Stderr)
	case len(args) == 3 && args[0] == "worker" && args[1] == "--config":
		return configured(workloads.RunWorker, args[2])
	case len(args) == 3 && args[0] == "resource" && args[1] == "--config":
		return configured(workloads.RunResource, args[2])
	}
	return errors.New("lockcheck itself starts this program, as a worker or a resource with --config JSON")
}

func configured[Config any](process func(context.Context, Config, io.Reader, io.Writer) error, text string) error {
	var config Config
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	return errors.Join(process(context.Background(), config, os.Stdin, os.Stdout), processes.EndDescendants())
}
