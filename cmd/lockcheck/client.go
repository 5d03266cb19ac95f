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
	client := &cobra.Command{
		Use: "client", Short: "check the client of a lock of your own",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	client.AddCommand(clientCheckCommand(s))
	return client
}

// clientFlags say what a client is that comes without a lock file.
type clientFlags struct {
	ttl        time.Duration
	definition clients.Definition
	json       bool
}

// ofLock are the flags that a lock file takes the place of.
var ofLock = [...]string{"renew", "tokens", "holds", "queues", "session", "work"}

// Of a client without a lock file: the embedded service ends a lease exactly.
const (
	defaultLease = time.Second
	defaultGrace = 500 * time.Millisecond
)

func clientCheckCommand(s *system) *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "check [FILE | -- COMMAND...]",
		Short: "hold a client to the protocol, rule by rule",
		Long: `Start a client several times, give it requests, and hold it to each rule of
docs/protocol.md. Of a rule that it breaks you see what was sent, what came,
and which line was wrong. A COMMAND runs against the embedded lock service, and
needs no Docker; the flags say what it can do, as a lock file does. With a lock
FILE the client runs against its servers; what is not in the file is not tried.

The exit code is 0 if all rules passed that apply, 1 if one failed, 2 if one
could not be tried, 3 if the servers could not be started.`,
		Example: `  lockcheck client check -- python3 client.py
  lockcheck client check --renew --tokens -- ./my-client --verbose
  lockcheck client check examples/redis-py/lock.yaml`,
		Args: usageArgs(fileOrCommand),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.untilInterrupted(cmd.Context(), func(ctx context.Context) error { return s.checkClient(ctx, cmd, f, args) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&f.ttl, "ttl", 0, "lease to ask for (default: that of the lock file, or 1s)")
	flags.BoolVar(&f.definition.Renew, "renew", false, "the client can extend a lease")
	flags.BoolVar(&f.definition.Tokens, "tokens", false, "grants have fencing tokens")
	flags.BoolVar(&f.definition.Ask, "holds", false, "the service can be asked who has the lock")
	flags.BoolVar(&f.definition.Queues, "queues", false, "an attempt waits for its turn")
	flags.BoolVar(&f.definition.Session, "session", false, "the client keeps the lease alive by itself")
	flags.BoolVar(&f.definition.Works, "work", false, "the client lets the time of the critical section pass")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

// fileOrCommand accepts one lock file, or a command behind two dashes.
func fileOrCommand(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash == 0 && len(args) > 0, dash < 0 && len(args) == 1:
		return nil
	case dash < 0 && len(args) > 1:
		return errors.New("name one lock file; a command comes behind --, as in: lockcheck client check -- python3 client.py")
	default:
		return errors.New("name a lock file, or a command behind --, as in: lockcheck client check -- python3 client.py")
	}
}

// lock is what the flags and arguments are about.
func (f clientFlags) lock(cmd *cobra.Command, args []string) (lockfile.Lock, error) {
	ttl := cmd.Flags().Changed("ttl")
	if ttl && f.ttl < time.Millisecond {
		return lockfile.Lock{}, runs.Usagef("--ttl %s: a lease has at least a millisecond", f.ttl)
	}
	if cmd.ArgsLenAtDash() == 0 {
		return f.ofCommand(args)
	}
	if !lockfile.IsPath(args[0]) {
		return lockfile.Lock{}, runs.Usagef("%s is no lock file (FILE.yaml); a command comes behind --", args[0])
	}
	for _, name := range ofLock {
		if cmd.Flags().Changed(name) {
			return lockfile.Lock{}, runs.Usagef("--%s: the lock file says that", name)
		}
	}
	lock, err := lockfile.Find(args[0])
	switch {
	case err != nil:
		return lock, &runs.UsageError{Err: err}
	case ttl && lock.Definition.TTL == 0:
		return lock, runs.Usagef("--ttl: the lock of %s has no lease", args[0])
	case ttl:
		lock.Definition.TTL = f.ttl
	}
	return lock, nil
}

// ofCommand is a client on this machine, at the embedded service.
func (f clientFlags) ofCommand(args []string) (lockfile.Lock, error) {
	d := f.definition
	if d.Renew && d.Session {
		return lockfile.Lock{}, runs.Usagef("--renew: the client renews a session by itself")
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
		fmt.Fprintln(s.stderr, "next: the lock under faults, lockcheck test --lock FILE (docs/own-lock.md)")
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
