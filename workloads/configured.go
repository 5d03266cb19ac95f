package workloads

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"lockcheck/internal/processes"
)

// configVariable is the environment variable that passes a process's configuration to the program that replaces
// it.
const configVariable = "LOCKCHECK_CONFIG"

// Configure sends a process of Configured its configuration.
func Configure(input io.Writer, config any) error { return json.NewEncoder(input).Encode(config) }

// Configured runs one of lockcheck's processes, which reads its configuration as JSON from the first line of
// its input. Every user of the machine could read a command line, and the settings that a lock file gives its
// client may contain a password.
func Configured[Config any](ctx context.Context, process func(context.Context, Config, io.Reader, io.Writer) error, input io.Reader, output io.Writer) error {
	// When the harness is gone, this process must still end what it has started. So SIGPIPE from its next write
	// to the harness must not kill it. Neither must SIGHUP, which the kernel sends to a stopped process whose
	// parent has ended.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGHUP)
	buffered := bufio.NewReader(input)
	text, again := os.LookupEnv(configVariable)
	if !again {
		var err error
		if text, err = buffered.ReadString('\n'); err != nil {
			return fmt.Errorf("only lockcheck itself starts this command, with a configuration on its standard input: %w", err)
		}
	}
	var config Config
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	err := process(ctx, config, buffered, output)
	// Whatever a client has left behind would outlive this process. A descendant that has cleared its
	// environment carries no mark by which it could be found later.
	return errors.Join(err, processes.EndDescendants())
}
