package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockcheck/internal/runs"
	"lockcheck/internal/suites/profile"
)

// profileFlags are the flags of "lockcheck profile".
type profileFlags struct {
	profile.Plan
	load, out, store string
}

func profileCommand(s *system) *cobra.Command {
	f := new(profileFlags)
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "measure what a lock costs: holds a second, latency, fairness",
		Long: `Let more and more workers take a lock and give it back, without faults, each
with a lock of its own and all with the same one. It measures holds a second,
the time from the first attempt to the grant, and how fairly the lock was
shared. Keep the machine idle.

` + exitCodes,
		Example: `  lockcheck profile
  lockcheck profile --locks redis,etcd --load 1..64
  lockcheck profile --locks redis --think 5ms --section 1ms-3ms`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.profile(cmd, f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.Locks, "locks", []string{"memory"}, "`names` of locks, or lock files of your own")
	flags.StringVar(&f.load, "load", "1..64", "`numbers` of workers, as in 1..64: each twice the one before")
	flags.DurationVar(&f.Time, "time", 5*time.Second, "length of each run, without start and recovery period")
	flags.Var(&f.Think, "think", "time between two holds of a worker, fixed or as in 20ms-80ms")
	flags.Var(&f.Section, "section", "time in the critical section, fixed or as in 20ms-80ms")
	flags.StringVar(&f.out, "out", "", "`folder` for the profile (default: a new one in the store)")
	flags.StringVar(&f.store, "store", "store", "`folder` for runs")
	return cmd
}

// parseLoad reads "1..64", or one number.
func parseLoad(text string) ([]int, error) {
	first, last, ranged := strings.Cut(text, "..")
	if !ranged {
		last = first
	}
	low, lowErr := strconv.Atoi(first)
	high, highErr := strconv.Atoi(last)
	if lowErr != nil || highErr != nil || low < 1 || high < low {
		return nil, runs.Usagef("--load %s: write 8, or 1..64", text)
	}
	return profile.Load(low, high), nil
}

func (s *system) profile(cmd *cobra.Command, f *profileFlags) (err error) {
	if f.Workers, err = parseLoad(f.load); err != nil {
		return err
	}
	progress := s.progress()
	m := profile.Machine{Progress: progress}
	if err := s.machine(&m.Machine); err != nil {
		return err
	}
	if m.Store = f.out; m.Store == "" {
		if m.Store, err = runs.NewFolder(filepath.Join(f.store, runs.ProfileFolder)); err != nil {
			return err
		}
	}
	ctx, interrupt, release := s.interruptible(cmd.Context())
	defer release()
	p, interrupted, err := f.Measure(ctx, m, interrupt)
	progress.Done()
	if interrupted {
		err = errors.Join(err, &exitError{code: exitInterrupted})
	}
	if len(p.Points) == 0 {
		return err
	}
	writeErr := errors.Join(p.WriteReports(m.Store), p.Page().WriteMarkdown(s.stdout))
	fmt.Fprintf(s.stdout, "\nfolder  %s\n", m.Store)
	return concluded(verdictCode(p.Verdict()), err, writeErr)
}
