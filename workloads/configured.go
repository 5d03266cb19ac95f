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

// configVariable carries the configuration of a process into the program that takes its place.
const configVariable = "LOCKCHECK_CONFIG"

// Configure tells a process of Configured what it must know.
func Configure(input io.Writer, config any) error { return json.NewEncoder(input).Encode(config) }

// Configured runs one of lockcheck's processes, which is told all it needs in the first line of its
// input, as JSON. A command line would be read by every user of the machine, and what a lock file
// gives its client may be a password.
func Configured[Config any](ctx context.Context, process func(context.Context, Config, io.Reader, io.Writer) error, input io.Reader, output io.Writer) error {
	// With the harness gone this process has to end what it has started. The next word to the harness
	// must not end it before, nor what the kernel sends to a stopped process whose parent has ended.
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
	// What a client has left would outlive this process, and no mark tells of one that
	// has thrown its environment away.
	return errors.Join(err, processes.EndDescendants())
}
