// Package resource is a store over HTTP that a user's application can keep its data in while it is tested. It applies one
// request after the other and records each of them, so that the order of reads and writes is known and not derived
// from what anybody prints. docs/resource.md specifies it.
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

// Command is the name of lockcheck's own command that runs Run.
const Command = "app-resource"

// Variable has the URL of a program's own part of the resource, to which it adds a slash and a key.
const Variable = "LOCKCHECK_RESOURCE"

// Config is what the resource is told.
type Config struct {
	Listen string `json:"listen"` // host:port; port 0 for any that is free
	// Clients may read and write. Besides them the asker of invariants may read, which is not recorded: it learns
	// something, and changes nothing.
	Clients []string `json:"clients"`
}

// URL is where a client finds the resource that listens on an address.
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
	// There are no time limits: a client that is paused in the middle of a request goes on when the pause ends.
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
