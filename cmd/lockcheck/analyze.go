package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"lockcheck/checker"
	"lockcheck/history/jepsen"
	"lockcheck/internal/runs"
	"lockcheck/reports"
)

// analyzeFlags are the flags of "lockcheck analyze".
type analyzeFlags struct {
	format, export string
	foreign        jepsen.Options
}

// Forms of histories.
const (
	formatOurs   = "lockcheck"
	formatJepsen = "jepsen"
)

func analyzeCommand(s *system) *cobra.Command {
	var f analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze RUN [RUN]",
		Short: "judge a stored history again, or compare two",
		Long: `Judge the history of a run, its folder or its file, from what is stored alone.
A history that a killed run left is accepted up to where it was cut off. In the
folder of a run its reports are written again.

With two runs, also say whether they differ by more than chance; the exit code
is then 1 if the second is worse, else that of a run that is undecided or
broken, else 0.

A history of Jepsen is judged by the same checkers: a test of a lock
(:f :acquire and :release) or of a set (:f :add and :read).

` + exitCodes,
		Example: `  lockcheck analyze store/latest
  lockcheck analyze store/redis-set-pause/latest store/etcd-set-pause/latest
  lockcheck analyze --format jepsen history.edn
  lockcheck analyze --export jepsen store/latest > history.edn`,
		Args: usageArgs(func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return errors.New("name one run or two: its folder or its history")
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(args); err != nil {
				return err
			}
			return s.untilInterrupted(cmd.Context(), func(context.Context) error { return s.analyze(f, args) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.format, "format", formatOurs, "`form` of the history: lockcheck or jepsen")
	flags.DurationVar(&f.foreign.Lease, "lease", 0, "of Jepsen's lock: its lease (default: it may end at any time)")
	flags.IntVar(&f.foreign.Permits, "permits", 1, "of Jepsen's lock: how many may hold it at once")
	flags.IntVar(&f.foreign.Reentrant, "reentrant", 1, "of Jepsen's lock: how often one worker may hold it")
	flags.StringVar(&f.export, "export", "", "write the history in another `form` instead of judging it: jepsen")
	return cmd
}

func (f analyzeFlags) check(args []string) error {
	switch {
	case f.format != formatOurs && f.format != formatJepsen:
		return &runs.UsageError{Err: fmt.Errorf("--format %s: there are lockcheck and jepsen", f.format)}
	case f.export != "" && f.export != formatJepsen:
		return &runs.UsageError{Err: fmt.Errorf("--export %s: there is jepsen", f.export)}
	case f.foreign.Lease < 0 || f.foreign.Permits < 1 || f.foreign.Reentrant < 1:
		return &runs.UsageError{Err: errors.New("--lease, --permits and --reentrant must be positive")}
	case f.foreign != jepsen.Options{Permits: 1, Reentrant: 1} && f.format != formatJepsen:
		return &runs.UsageError{Err: errors.New("--lease, --permits and --reentrant are for a history of Jepsen; ours say theirs")}
	case f.foreign.Permits > 1 && f.foreign.Reentrant > 1:
		return &runs.UsageError{Err: errors.New("--permits and --reentrant exclude each other")}
	case f.export != "" && (len(args) > 1 || f.format == formatJepsen):
		return &runs.UsageError{Err: errors.New("--export is for one run of lockcheck")}
	}
	return nil
}

// collectAt is how much garbage there may be beside what is in use, in percent, while
// a history is judged: one of millions of operations fits in memory only with little.
const collectAt = 25

func (s *system) analyze(f analyzeFlags, paths []string) error {
	if s.env("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if f.export != "" {
		return runs.ExportJepsen(paths[0], s.stdout)
	}
	var all []checker.Results
	for _, path := range paths {
		judgement, err := s.judge(f, path)
		if err != nil {
			return err
		}
		all = append(all, judgement.Results)
	}
	if len(all) == 1 {
		return codeOnly(verdictCode(all[0].Verdict))
	}
	differences := checker.Differences(all[0], all[1])
	if err := reports.Compared(s.stdout, differences, reports.TerminalOptions{Width: s.width, Color: s.color(s.terminal)}); err != nil {
		return err
	}
	for _, d := range differences {
		if d.Worse() {
			return codeOnly(exitViolation)
		}
	}
	code := exitOK
	for _, r := range all {
		if r.Verdict != checker.Violation { // which is what was compared
			code = exitCode(moreTelling(codeOnly(code), codeOnly(verdictCode(r.Verdict))))
		}
	}
	return codeOnly(code)
}

// judge judges one history and reports it.
func (s *system) judge(f analyzeFlags, path string) (runs.Judgement, error) {
	if f.format == formatJepsen {
		judgement, err := runs.JudgeJepsen(path, f.foreign)
		if err != nil {
			return judgement, err
		}
		return judgement, s.report(judgement)
	}
	judgement, err := runs.Judge(path)
	if err != nil {
		return judgement, err
	}
	// A run that was killed has no reports yet, and a newer lockcheck may see
	// more in an old one. A store that cannot be written is judged all the same.
	if err := judgement.WriteReports(); err != nil {
		fmt.Fprintln(s.stderr, "lockcheck: the reports could not be written:", err)
	}
	return judgement, s.report(judgement)
}
