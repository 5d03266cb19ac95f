package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"lockcheck/clients"
	"lockcheck/clients/conformance"
	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/disk"
	"lockcheck/clusters/stage"
	"lockcheck/clusters/vdso"
	"lockcheck/internal/application/ask"
	"lockcheck/internal/application/replica"
	appresource "lockcheck/internal/application/resource"
	"lockcheck/internal/cleanup"
	"lockcheck/internal/runs"
	"lockcheck/internal/runs/clientcheck"
	"lockcheck/workloads"
)

// ownProcesses are lockcheck's own processes: the same binary in other places. The input of each ends
// when the harness dies, and each then exits, agents last.
func ownProcesses(s *system) []*cobra.Command {
	return []*cobra.Command{
		configured(s, "worker", workloads.RunWorker), configured(s, "resource", workloads.RunResource),
		configured(s, "observer", workloads.RunObserver), configured(s, clientcheck.Command, conformance.Serve),
		serverCommand(s), agentCommand(s), reapCommand(s), launchCommand(), diskCommand(), swarmPartCommand(s), holdCommand(s), replicaCommand(s),
		configured(s, ask.Command, ask.Run), configured(s, appresource.Command, appresource.Run),
		ownProcess(vdso.TraceCommand, func(context.Context) error { return vdso.Trace(s.stdin, s.stdout) }),
		ownProcess(vdso.NowCommand, func(context.Context) error { return vdso.Now(s.stdin, s.stdout) }),
		ownProcess(stage.Command, func(context.Context) error {
			binary, err := s.binary()
			if err != nil {
				return err
			}
			return stage.Serve(binary, s.stdin, s.stdout, s.stderr)
		}),
	}
}

// ownProcess is a hidden command without arguments.
func ownProcess(name string, run func(context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) },
	}
}

// configured is a process that reads its configuration from its input.
func configured[Config any](s *system, name string, run func(context.Context, Config, io.Reader, io.Writer) error) *cobra.Command {
	return ownProcess(name, func(ctx context.Context) error { return workloads.Configured(ctx, run, s.stdin, s.stdout) })
}

func serverCommand(s *system) *cobra.Command {
	var servers, socket string
	cmd := ownProcess("server", func(ctx context.Context) error { return clusters.ServeEmbedded(ctx, servers, socket, s.stdin) })
	cmd.Flags().StringVar(&servers, "servers", "", "kind of servers")
	cmd.Flags().StringVar(&socket, "socket", "", "Unix socket to serve")
	return cmd
}

func agentCommand(s *system) *cobra.Command {
	var servers, probes, driver, launcher, install, clockSocket string
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
			if clockSocket != "" {
				host.Probes, host.Address = clusters.ProgramProbes{}, clockSocket
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
	cmd.Flags().StringVar(&probes, "probes", "", "how to probe the user's own servers, as JSON")
	cmd.Flags().StringVar((*string)(&host.Disk), "disk", "", "switch of the server's disk")
	cmd.Flags().StringVar(&install, "install", "", "where to put this binary for programs in other images")
	cmd.Flags().IntVar(&server, "server", 0, "index of the server, from 0")
	cmd.Flags().StringVar(&host.Address, "address", "", "address of the server")
	cmd.Flags().StringVar(&host.ClockFile, "clock-file", "", "file with the offset of the server's clock")
	cmd.Flags().StringVar(&clockSocket, "clock-socket", "", "where a program with a movable clock tells its time")
	cmd.Flags().StringVar(&driver, "clock-driver", string(agent.Libfaketime), "what moves the server's clock")
	cmd.Flags().DurationVar(&stay, "stay", 0, "how long to wait for removal after the input has ended")
	cmd.Flags().StringVar(&launcher, "launcher", "", "where to put this binary as the launcher of servers")
	return cmd
}

func launchCommand() *cobra.Command {
	var clockFile string
	var children bool
	cmd := &cobra.Command{
		Use: vdso.LaunchCommand, Hidden: true, Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, program []string) error {
			if children {
				if err := vdso.AnnounceLauncher(clockFile); err != nil {
					return err
				}
			}
			return vdso.Exec(clockFile, program)
		},
	}
	cmd.Flags().BoolVar(&children, "children", false, "the program is lockcheck, and its children have the same clock")
	cmd.Flags().StringVar(&clockFile, "clock-file", "", "file with the offset of the program's clock")
	return cmd
}

func diskCommand() *cobra.Command {
	var config disk.Config
	cmd := &cobra.Command{
		Use: disk.Command, Hidden: true, Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, server []string) error {
			code, err := disk.Run(config, server)
			if err == nil && code != 0 {
				err = &exitError{code: code} // silent, because the server has printed its own error
			}
			return err
		},
	}
	cmd.Flags().StringVar(&config.Folder, "folder", "", "folder of the server's data")
	cmd.Flags().StringVar(&config.User, "user", "", "user that the server runs as")
	cmd.Flags().StringVar((*string)(&config.Switch), "switch", "", "where the power is switched off")
	return cmd
}

// replicaCommand is the parent of a program of a user's application. A file can tell it what to start,
// because the engine starts it again after a kill, and no input would then tell it a second time.
func replicaCommand(s *system) *cobra.Command {
	var path string
	run := func(_ context.Context, c replica.Config, input io.Reader, output io.Writer) error {
		return replica.Run(c, s.signals, input, output, s.stderr)
	}
	cmd := ownProcess(replica.Command, func(ctx context.Context) error {
		if path == "" {
			return workloads.Configured(ctx, run, s.stdin, s.stdout)
		}
		config, err := replica.ReadConfig(path)
		if err != nil {
			return err
		}
		return run(ctx, config, s.stdin, s.stdout)
	})
	cmd.Flags().StringVar(&path, "config", "", "file with what to start; in the first line of the input without it")
	return cmd
}

// holdCommand is the child of a command that runs it under a lock, such as flock (client.wrap in a lock
// file). It tells its worker that the command has the lock, and ends when the worker's work is done.
func holdCommand(s *system) *cobra.Command {
	return ownProcess("hold", func(context.Context) error {
		socket := s.env(clients.HoldVariable)
		if socket == "" {
			return runs.Usagef("hold is the child of a command that a lock file wraps (client.wrap); only workers start it, and set " + clients.HoldVariable)
		}
		if err := clients.Hold(socket, s.signals); err != nil {
			return &exitError{code: exitHoldAlone} // silent, because the wrapped command's own last message counts
		}
		return nil
	})
}

// exitHoldAlone is the exit status of a child whose worker is gone.
const exitHoldAlone = 1

func reapCommand(s *system) *cobra.Command {
	var run string
	var docker bool
	cmd := ownProcess("reap", func(ctx context.Context) error { return cleanup.Reap(ctx, run, docker, s.stdin) })
	cmd.Flags().StringVar(&run, "run", "", "run to clean up after")
	cmd.Flags().BoolVar(&docker, "docker", false, "the run uses Docker")
	return cmd
}
