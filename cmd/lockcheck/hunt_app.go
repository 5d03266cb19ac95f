package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockcheck/internal/appfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/apphunt"
)

// huntApplication searches for faults under which an application violates its invariants. The exit code is 1 if it
// does.
func (s *system) huntApplication(cmd *cobra.Command, f *huntFlags) error {
	var others []string
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if !slices.Contains([]string{"app", "budget", "trials", "seed", "store"}, flag.Name) {
			others = append(others, flag.Name)
		}
	})
	if err := ofLocksAlone(others); err != nil {
		return err
	}
	if f.budget <= 0 {
		return runs.BadFlag("budget", f.budget, "it must be positive; write --budget 30m, of which a trial takes about a minute")
	}
	app, err := appfile.Read(f.app)
	if err != nil {
		return &runs.UsageError{Err: err, About: "app"}
	}
	plan := apphunt.Plan{Budget: f.budget, Trials: f.trials, Options: runs.ApplicationOptions{
		App: app, Nemesis: huntedFaults(app), Interval: runs.DefaultInterval, SkipUnsupported: true, MinOps: 1, Seed: f.Seed, Machine: runs.Machine{Store: f.store},
	}}
	if err := s.machine(&plan.Options.Machine); err != nil {
		return err
	}
	ctx, interrupt, release := s.interruptible(cmd.Context())
	defer release()
	progress := s.progress()
	result, err := apphunt.Run(ctx, plan, interrupt, progress)
	progress.Done()
	if err != nil {
		return err
	}
	for _, line := range result.Lines() {
		fmt.Fprintln(s.stdout, line)
	}
	fmt.Fprintln(s.stdout, "folder ", result.Folder)
	switch {
	case result.Interrupted:
		return codeOnly(exitInterrupted)
	case len(result.Findings) > 0:
		return codeOnly(exitViolation)
	case result.Undecided == result.Trials:
		return codeOnly(exitUndecided)
	}
	return nil
}

// huntedFaults are those that a hunt draws from.
func huntedFaults(app appfile.App) string {
	if len(app.Servers) == 0 {
		return "pause,kill"
	}
	return "pause,freeze,kill,partition,one-way,packet-loss,packet-delay,kill:one,pause:one"
}
