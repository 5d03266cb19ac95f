// Package workerprogram is the program of the workers of a lock whose client library is not linked into
// lockcheck: another version of one, or one that takes longer to compile than all the rest.
package workerprogram

import (
	"context"
	"errors"
	"fmt"
	"os"

	"lockcheck/clusters/stage"
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
	case len(args) == 1 && args[0] == "worker":
		return workloads.Configured(context.Background(), workloads.RunWorker, os.Stdin, os.Stdout)
	case len(args) == 1 && args[0] == "resource":
		return workloads.Configured(context.Background(), workloads.RunResource, os.Stdin, os.Stdout)
	}
	return errors.New("lockcheck itself starts this program, as a worker or a resource")
}
