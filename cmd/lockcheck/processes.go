package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"lockcheck/clients"
	"lockcheck/clients/conformance"
	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/stage"
	"lockcheck/clusters/vdso"
	"lockcheck/internal/cleanup"
	"lockcheck/internal/runs"
	"lockcheck/internal/runs/clientcheck"
	"lockcheck/workloads"
)

// The hidden commands are lockcheck's own processes: the same binary in other
// places. Their input ends when the harness is gone, and so do they, agents last.

func workerCommand(s *system) *cobra.Command {
	return configured(s, "worker", workloads.RunWorker)
}

func resourceCommand(s *system) *cobra.Command {
	return configured(s, "resource", workloads.RunResource)
}

func observerCommand(s *system) *cobra.Command {
	return configured(s, "observer", workloads.RunObserver)
}

func clientCheckProcess(s *system) *cobra.Command {
	return configured(s, clientcheck.Command, conformance.Serve)
}

// configured is a process that is told all it needs on its input.
func configured[Config any](s *system, name string, run func(context.Context, Config, io.Reader, io.Writer) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return workloads.Configured(cmd.Context(), run, s.stdin, s.stdout)
		},
	}
}

func serverCommand(s *system) *cobra.Command {
	var servers, socket string
	cmd := &cobra.Command{
		Use: "server", Hidden: true, Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return clusters.ServeEmbedded(cmd.Context(), servers, socket, s.stdin)
		},
	}
	cmd.Flags().StringVar(&servers, "servers", "", "kind of servers")
	cmd.Flags().StringVar(&socket, "socket", "", "Unix socket to serve")
	return cmd
}

func agentCommand(s *system) *cobra.Command {
	var servers, probes, driver, launcher, install string
	var server int
	var stay time.Duration
	host := agent.Local{Network: new(agent.Network)}
	cmd := &cobra.Command{
		Use: "agent", Hidden: true, Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if spec, known := clusters.ByName(servers); known {
				host.Probes = spec.Server(server).Probes
			}
			if probes != "" {
				var err error
				if host.Probes, err = clusters.ParseProbes(probes); err != nil {
					return fmt.Errorf("agent: --probes: %w", err)
				}
			}
			if install != "" {
				if err := vdso.Install(install); err != nil {
					return fmt.Errorf("agent: %w", err)
				}
			}
			host.ClockDriver = agent.ClockDriver(driver)
			host.PrepareClock(cmd.Context(), launcher)
			err := agent.Serve(cmd.Context(), host, s.stdin, s.stdout)
			if stay > 0 {
				time.Sleep(stay)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&servers, "servers", "", "kind of servers")
	cmd.Flags().StringVar(&probes, "probes", "", "how to ask servers of the user's own, as JSON")
	cmd.Flags().StringVar(&install, "install", "", "where to put this binary for programs in other images")
	cmd.Flags().IntVar(&server, "server", 0, "which of the servers, from 0")
	cmd.Flags().StringVar(&host.Address, "address", "", "address of the server")
	cmd.Flags().StringVar(&host.ClockFile, "clock-file", "", "file with the offset of the server's clock")
	cmd.Flags().StringVar(&driver, "clock-driver", string(agent.Libfaketime), "what moves the server's clock")
	cmd.Flags().DurationVar(&stay, "stay", 0, "how long to wait for being removed once the input has ended")
	cmd.Flags().StringVar(&launcher, "launcher", "", "where to put this binary as the launcher of servers")
	return cmd
}

func stageCommand(s *system) *cobra.Command {
	return &cobra.Command{
		Use: stage.Command, Hidden: true, Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			binary, err := s.binary()
			if err != nil {
				return err
			}
			return stage.Serve(binary, s.stdin, s.stdout, s.stderr)
		},
	}
}

func launchCommand() *cobra.Command {
	var clockFile string
	cmd := &cobra.Command{
		Use: vdso.LaunchCommand, Hidden: true, Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, program []string) error { return vdso.Exec(clockFile, program) },
	}
	cmd.Flags().StringVar(&clockFile, "clock-file", "", "file with the offset of the program's clock")
	return cmd
}

func traceCommand(s *system) *cobra.Command {
	return &cobra.Command{
		Use: vdso.TraceCommand, Hidden: true, Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return vdso.Trace(s.stdin, s.stdout) },
	}
}

func nowCommand(s *system) *cobra.Command {
	return &cobra.Command{
		Use: vdso.NowCommand, Hidden: true, Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return vdso.Now(s.stdin, s.stdout) },
	}
}

func holdCommand(s *system) *cobra.Command {
	return &cobra.Command{
		Use: "hold", Short: "the child of a command that runs it under a lock",
		Long: `The child of a command that runs it under a lock, such as flock or etcdctl lock
(client.wrap in a lock file). Workers put it into the place of {child}; by
itself it is of no use.

It connects to its worker by the socket that ` + clients.HoldVariable + ` names, which says
that the command has the lock, and ends when the worker has done its work, or
is gone. A SIGTERM is passed on to the worker, who then regards the lock as
lost.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			socket := s.env(clients.HoldVariable)
			if socket == "" {
				return &runs.UsageError{Err: errHoldByItself}
			}
			if err := clients.Hold(socket, s.signals); err != nil {
				return &exitError{code: exitHoldAlone} // silent: what the command says last is to be its own
			}
			return nil
		},
	}
}

// exitHoldAlone is the exit status of a child whose worker is gone.
const exitHoldAlone = 1

var errHoldByItself = errors.New("hold is the child of a command that a lock file wraps (client.wrap): workers start it, and set " +
	clients.HoldVariable + "; by itself it is of no use")

func reapCommand(s *system) *cobra.Command {
	var run string
	var docker bool
	cmd := &cobra.Command{
		Use: "reap", Hidden: true, Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cleanup.Reap(cmd.Context(), run, docker, s.stdin)
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "run to clean up after")
	cmd.Flags().BoolVar(&docker, "docker", false, "the run uses Docker")
	return cmd
}
