// Package resource is an HTTP store for the data of a user's application under test. It applies and records requests one
// after the other, so that their order is known and need not be derived from printed lines. docs/resource.md specifies
// it.
package resource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"lockcheck/history"
	"lockcheck/workloads"
)

// Command is the hidden command of lockcheck that calls Run.
const Command = "app-resource"

// Variable is the environment variable with a client's URL of the resource. The client appends a slash and a key.
const Variable = "LOCKCHECK_RESOURCE"

// Config configures the resource.
type Config struct {
	Listen string `json:"listen"` // host:port; with port 0 the kernel chooses
	// Clients may read and write. The asker of invariants may read, too. Its reads are not recorded, because they
	// change nothing.
	Clients []string `json:"clients"`
}

// URL returns the client's URL of the resource that listens on an address.
func URL(address, client string) string { return "http://" + address + "/" + url.PathEscape(client) }

// Run serves until the input ends. The first line of its output is the address on which it listens, and each line after
// that an event.
func Run(ctx context.Context, config Config, input io.Reader, output io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", config.Listen)
	if err != nil {
		return fmt.Errorf("%s: %w", Command, err)
	}
	if _, err := fmt.Fprintln(output, listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	record := workloads.NewEmitter(history.Resource, output)
	// Without time limits, because a client that is paused in the middle of a request continues after the pause.
	server := &http.Server{Handler: newHandler(config.Clients, newStore(record.Emit))}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, input)
	}()
	select {
	case err := <-served:
		return fmt.Errorf("%s: %w", Command, err)
	case <-ended:
	}
	return errors.Join(server.Close(), record.Err())
}
