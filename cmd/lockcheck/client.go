package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"lockcheck/clients"
	"lockcheck/clients/conformance"
	"lockcheck/clients/protocol"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/runs/clientcheck"
	"lockcheck/reports"
)

func clientCommand(s *system) *cobra.Command {
	return group("client", "check a client of your own lock", clientCheckCommand(s))
}

// clientFlags describe a client that has no lock file.
type clientFlags struct {
	ttl        time.Duration
	definition clients.Definition
	json       bool
}

// inLockFile are the flags that a lock file replaces.
func inLockFile() []string {
	return []string{"renews", "tokens", "holds", "queues", "session", "works"}
}

// Defaults of a client without a lock file: the embedded service ends a lease exactly.
const (
	defaultLease = time.Second
	defaultGrace = 500 * time.Millisecond
)

func clientCheckCommand(s *system) *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "check [FILE | -- COMMAND...]",
		Short: "check a client against the protocol's rules",
		Long: `Start a client several times, send it requests, and check it against each rule of docs/protocol.md. For each broken rule the report shows what was sent, what came back, and which line was wrong.

A COMMAND runs with the embedded lock service, without Docker; the flags say what it can do. With a lock FILE the client runs with its own servers; the file says what it can do, and nothing else is tried.

The exit code is 0 if all rules that apply passed, 1 if one failed, 2 if one could not be tried, 3 if the servers could not be started.`,
		Example: `  lockcheck client check -- python3 client.py
  lockcheck client check --renews --tokens -- ./my-client --verbose
  lockcheck client check examples/redis-py/lock.yaml`,
		Args: usageArgs(fileOrCommand),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.untilInterrupted(cmd.Context(), func(ctx context.Context) error { return s.checkClient(ctx, cmd, f, args) })
		},
	}
	flags := flagsOf(cmd)
	flags.alsoCalled(map[string]string{"renew": "renews", "work": "works"})
	flags.length(&f.ttl, "ttl", 0)
	flags.yes(&f.definition.Renew, "renews")
	flags.yes(&f.definition.Tokens, "tokens")
	flags.yes(&f.definition.Ask, "holds")
	flags.yes(&f.definition.Queues, "queues")
	flags.yes(&f.definition.Session, "session")
	flags.yes(&f.definition.Works, "works")
	flags.yes(&f.json, "json")
	flags.otherwise("ttl", "as in the lock file, or 1s")
	return cmd
}

// fileOrCommand accepts one lock file, or a command after two dashes.
func fileOrCommand(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash == 0 && len(args) > 0, dash < 0 && len(args) == 1:
		return nil
	case dash < 0 && len(args) > 1:
		return errors.New("name one lock file; write a command after --, as in: lockcheck client check -- python3 client.py")
	default:
		return errors.New("name a lock file, or a command after --, as in: lockcheck client check -- python3 client.py")
	}
}

// lock is the lock that the flags and arguments describe.
func (f clientFlags) lock(cmd *cobra.Command, args []string) (lockfile.Lock, error) {
	ttl := cmd.Flags().Changed("ttl")
	if ttl && f.ttl < time.Millisecond {
		return lockfile.Lock{}, runs.BadFlag("ttl", f.ttl, "a lease is at least 1ms, as in --ttl 1s")
	}
	if cmd.ArgsLenAtDash() == 0 {
		return f.ofCommand(args)
	}
	if !lockfile.IsPath(args[0]) {
		return lockfile.Lock{}, runs.Usagef("%s is no lock file (FILE.yaml); a command stands after two dashes, as in: lockcheck client check -- %s", args[0], args[0])
	}
	for _, name := range inLockFile() {
		if cmd.Flags().Changed(name) {
			return lockfile.Lock{}, runs.BadFlag(name, nil, "the lock file says what the client can do; omit --%s, and change the file if it is wrong", name)
		}
	}
	lock, err := lockfile.Find(args[0])
	switch {
	case err != nil:
		return lock, &runs.UsageError{Err: err}
	case ttl && lock.Definition.TTL == 0:
		return lock, runs.BadFlag("ttl", f.ttl, "the lock of %s has no lease; omit --ttl", args[0])
	case ttl:
		lock.Definition.TTL = f.ttl
	}
	return lock, nil
}

// ofCommand is the lock of a client on this machine, with the embedded service.
func (f clientFlags) ofCommand(args []string) (lockfile.Lock, error) {
	d := f.definition
	if d.Renew && d.Session {
		return lockfile.Lock{}, runs.BadFlag("renews", nil, "with --session the client renews by itself; omit --renews")
	}
	folder, err := os.Getwd()
	if err != nil {
		return lockfile.Lock{}, err
	}
	d.Name, d.TTL, d.Grace = "client", defaultLease, defaultGrace
	if f.ttl > 0 {
		d.TTL = f.ttl
	}
	d.Program = protocol.Command{Args: args, Folder: folder, OnHost: true}
	return clientcheck.Of(d)
}

func (s *system) checkClient(ctx context.Context, cmd *cobra.Command, f clientFlags, args []string) error {
	lock, err := f.lock(cmd, args)
	if err != nil {
		return err
	}
	binary, err := s.binary()
	if err != nil {
		return err
	}
	progress := s.progress()
	tried := 0
	report, err := clientcheck.Check(ctx, lock, binary, progress, func(r conformance.Result) {
		tried++
		progress.Status("%d rules: %s %s", tried, r.Rule, r.Outcome)
	})
	progress.Done()
	if len(report.Results) == 0 || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return alsoFailed(conclusionError(report), errors.Join(err, s.printCheck(report, f.json)))
}

func (s *system) printCheck(report conformance.Report, asJSON bool) error {
	if asJSON {
		return reports.ConformanceJSON(s.stdout, report)
	}
	err := reports.Conformance(s.stdout, report, !s.terminal, s.terminalOptions())
	if report.Conclude() == conformance.Conforms {
		fmt.Fprintln(s.stderr, "next: test the lock under faults with lockcheck test --lock FILE (docs/own-lock.md)")
	}
	return err
}

// conclusionError turns a conclusion into the exit code.
func conclusionError(report conformance.Report) error {
	switch report.Conclude() {
	case conformance.Conforms:
		return nil
	case conformance.Fails:
		return codeOnly(exitViolation)
	default:
		return codeOnly(exitUndecided)
	}
}
