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

// requestTimeout is how long a browser may take to say what it wants.
const requestTimeout = 10 * time.Second

func serveCommand(s *system) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "serve", Short: "show the stored runs as web pages",
		Long: `Show the runs of a store as web pages on 127.0.0.1: a list with filters, search
and order, the runs of one lock made alike over time, two runs side
by side, and the files of each run, one by one or as an archive. The address is
printed. Nothing outside of the store can be read, and nothing is
changed. Other machines cannot reach it; all users of this one can. Ctrl-C ends
it.`,
		Example: `  lockcheck serve
  lockcheck serve --store ci/store --port 0`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.serve(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.store, "store", "store", "`folder` of runs")
	flags.IntVar(&f.port, "port", 8000, "TCP port; 0 for any that is free")
	return cmd
}

func (s *system) serve(ctx context.Context, f serveFlags) error {
	if f.port < 0 || f.port > 65535 {
		return &runs.UsageError{Err: fmt.Errorf("--port %d: ports go from 1 to 65535, and 0 is any that is free", f.port)}
	}
	store, err := web.Open(f.store)
	if err != nil {
		return &runs.UsageError{Err: fmt.Errorf("--store %s: %w", f.store, err)}
	}
	defer store.Close()
	handler, err := store.Handler()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.port)))
	if err != nil {
		return fmt.Errorf("%w; --port 0 takes any port that is free", err)
	}
	fmt.Fprintf(s.stdout, "http://%s/\n", listener.Addr())
	return s.answer(ctx, &http.Server{Handler: handler, ReadHeaderTimeout: requestTimeout}, listener)
}

// answer serves until the first signal. Answers that have begun may end until the
// second, or for a while.
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
