package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockcheck/checker"
	"lockcheck/internal/appfile"
	"lockcheck/internal/runs"
)

// ofApplications lists the flags of "lockcheck test" that are also for an application. The others shape a lock or its
// workers.
func ofApplications() []string {
	return []string{
		"app", "expect", "min-ops", "nemesis", "nemesis-interval", "pause", "require", "schedule", "seed", "skip-unsupported", "store", "test-count", "time-limit",
	}
}

// testApplication tests the application of an app file.
func (s *system) testApplication(cmd *cobra.Command, f *testFlags, expect checker.Verdict) error {
	o, err := f.applicationOptions(cmd.Flags())
	if err != nil {
		return err
	}
	s.tellFaultless(f, o.Schedule)
	if err := s.machine(&o.Machine); err != nil {
		return err
	}
	ctx, interrupt, release := s.interruptible(cmd.Context())
	defer release()
	var worst error
	for range f.count {
		outcome, err := s.runApplication(ctx, o, interrupt)
		if outcome.History == nil {
			return s.moreTellingOf(worst, err)
		}
		worst = s.moreTellingOf(worst, s.concludeRun(o.Command, outcome, expect, err))
		if runs.Closed(interrupt) {
			return s.moreTellingOf(worst, codeOnly(exitInterrupted))
		}
		o.Seed++
	}
	return worst
}

// ofLocksAlone refuses flags that an application does not take.
func ofLocksAlone(others []string) error {
	if len(others) == 0 {
		return nil
	}
	return runs.BadFlag(others[0], nil, "it is for tests of a lock; omit it with --app")
}

func (s *system) runApplication(ctx context.Context, o runs.ApplicationOptions, interrupt <-chan struct{}) (runs.Outcome, error) {
	progress := s.progress()
	outcome, err := runs.TestApplication(ctx, o, interrupt, progress)
	progress.Done()
	if outcome.History == nil {
		return outcome, err
	}
	return outcome, errors.Join(err, s.report(outcome.Judgement))
}

// applicationOptions completes the flags for an application.
func (f *testFlags) applicationOptions(flags *pflag.FlagSet) (runs.ApplicationOptions, error) {
	var others []string
	flags.Visit(func(flag *pflag.Flag) {
		if !slices.Contains(ofApplications(), flag.Name) && flag.Name != "help" {
			others = append(others, flag.Name)
		}
	})
	if err := ofLocksAlone(others); err != nil {
		return runs.ApplicationOptions{}, err
	}
	app, err := appfile.Read(f.app)
	if err != nil {
		return runs.ApplicationOptions{}, &runs.UsageError{Err: err, About: "app"}
	}
	if !flags.Changed("nemesis") {
		f.Nemesis = defaultFaults(app)
	}
	shared, err := f.options(flags)
	if err != nil {
		return runs.ApplicationOptions{}, err
	}
	o := runs.ApplicationOptions{
		App: app, Nemesis: f.Nemesis, Interval: f.Interval, Pause: f.Pause, Schedule: shared.Schedule, SkipUnsupported: f.SkipUnsupported,
		TimeLimit: f.TimeLimit, Require: f.Require, Seed: shared.Seed, Machine: shared.Machine, Parameters: shared.Parameters, MinOps: 1,
	}
	if flags.Changed("min-ops") {
		o.MinOps = f.MinOps
	}
	return o, least("test-count", f.count, 1)
}

// defaultFaults are what production does to any application. On this machine replicas have no network of their own.
func defaultFaults(app appfile.App) string {
	if len(app.Servers) == 0 {
		return "pause,kill"
	}
	return "pause,kill,partition"
}
