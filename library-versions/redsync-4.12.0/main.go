// Command redsync-4.12.0 is lockcheck's worker process, nothing else of it, with another
// version of a library.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"lockcheck/clusters/stage"
	"lockcheck/workloads"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lockcheck:", err)
		os.Exit(1)
	}
}

// run takes the command lines by which lockcheck starts its workers.
func run(args []string) error {
	if len(args) == 1 && args[0] == stage.Command {
		binary, err := os.Executable()
		if err != nil {
			return err
		}
		return stage.Serve(binary, os.Stdin, os.Stdout, os.Stderr)
	}
	if len(args) != 3 || args[0] != "worker" || args[1] != "--config" {
		return fmt.Errorf("this program is started by lockcheck itself, with worker --config JSON")
	}
	var config workloads.WorkerConfig
	if err := json.Unmarshal([]byte(args[2]), &config); err != nil {
		return fmt.Errorf("worker: --config: %w", err)
	}
	return workloads.RunWorker(context.Background(), config, os.Stdin, os.Stdout)
}
