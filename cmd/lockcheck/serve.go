package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"lockcheck/internal/runs"
	"lockcheck/internal/web"
)

// serveFlags are the flags of "lockcheck serve".
type serveFlags struct {
	store string
	port  int
}

// requestTimeout is how long a browser may take to send the header of a request.
const requestTimeout = 10 * time.Second

func serveCommand(s *system) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "serve", Short: "show stored runs in a browser",
		Long: `Show the runs of a store as web pages on 127.0.0.1, and print the address: a list with filters and search, similar runs over time, two runs side by side, and the files of each run. The server reads nothing outside the store and changes nothing. Other machines cannot reach it, but all users of this machine can. Ctrl-C ends it.`,
		Example: `  lockcheck serve
  lockcheck serve --store ci/store --port 0`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.serve(cmd.Context(), f) },
	}
	flags := flagsOf(cmd)
	flags.text(&f.store, "store", "store")
	flags.number(&f.port, "port", 8000)
	return cmd
}

func (s *system) serve(ctx context.Context, f serveFlags) error {
	if f.port < 0 || f.port > 65535 {
		return runs.BadFlag("port", f.port, "ports go from 1 to 65535; 0 means any free port")
	}
	store, err := web.Open(f.store)
	if err != nil {
		return runs.BadFlag("store", f.store, "%w", err)
	}
	defer store.Close()
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.port)))
	if err != nil {
		return fmt.Errorf("%w; --port 0 takes any free port", err)
	}
	fmt.Fprintf(s.stdout, "http://%s/\n", listener.Addr())
	return s.answer(ctx, &http.Server{Handler: store.Handler(), ReadHeaderTimeout: requestTimeout}, listener)
}

// answer serves until the first signal. Responses that have begun may then finish, until the second
// signal or interruptedTimeout.
func (s *system) answer(ctx context.Context, server *http.Server, listener net.Listener) error {
	ctx, interrupted, stop := s.interruptible(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	case <-interrupted:
	}
	ctx, cancel := context.WithTimeout(ctx, interruptedTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return server.Close()
	}
	return nil
}
