package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/history/jepsen"
	"lockcheck/internal/runs"
	"lockcheck/internal/stats"
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
		Use:   "analyze RUNS [RUNS]",
		Short: "judge stored histories again, or compare two sets of them",
		Long: `Judge the history of a run, its folder or its file, from what is stored alone.
A history that a killed run left is accepted up to where it was cut off. In the
folder of a run its reports are written again. A folder that holds several runs
stands for all of them: their results together are reported.

With two such sets of runs, also say whether they differ by more than chance,
which needs four or five runs on each side; sets that are too small to tell are
refused. The exit code is then 1 if the second is worse, else 2 if there are too
few runs to tell or that of a run that is undecided or broken, else 0.

A history of Jepsen is judged by the same checkers: a test of a lock
(:f :acquire and :release) or of a set (:f :add and :read). Each key of
jepsen.independent, and each :key, :lock or :mutex of an operation or of its
value, is a lock of its own: 1, :1 and "1" are three. Where it is not certain
which lock an operation is about the history is refused, until --keys says it:
"independent" ([key value]), "value" (the value of an :acquire or :release is
its key), "none" (there is one lock, whatever the values are), or the name of a
field, such as :resource.

` + exitCodes,
		Example: `  lockcheck analyze store/latest
  lockcheck analyze store/redis-set-pause store/etcd-set-pause
  lockcheck analyze --format jepsen history.edn
  lockcheck analyze --export jepsen store/latest > history.edn`,
		Args: usageArgs(func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return errors.New("name one set of runs or two: the folder or the history of a run, or a folder of runs")
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
	flags.StringVar(&f.foreign.Keys, "keys", "", "of Jepsen's locks: `what` names them: independent, value, none or a :field (default: found out, or refused)")
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
		return &runs.UsageError{Err: errors.New("--lease, --permits, --reentrant and --keys are for a history of Jepsen; ours say theirs")}
	case !f.foreign.Known():
		return &runs.UsageError{Err: fmt.Errorf("--keys %s: there are independent, value, none, and the names of fields, which begin with a colon", f.foreign.Keys)}
	case f.foreign.Permits > 1 && f.foreign.Reentrant > 1:
		return &runs.UsageError{Err: errors.New("--permits and --reentrant exclude each other")}
	case f.export != "" && (len(args) > 1 || f.format == formatJepsen):
		return &runs.UsageError{Err: errors.New("--export is for one run of lockcheck")}
	}
	return nil
}

// collectAt is how much garbage there may be on top of what is in use, in percent, while
// a history is judged: one of millions of operations fits in memory only with little.
const collectAt = 25

// enoughMemory is from what size on, in bytes, memory that is not in use is given back at
// once: what judging takes of a history up to ten million operations.
const enoughMemory = 1850 << 20

// boundMemory sets how much memory may be taken, unless the environment says so. Judging
// takes about half of the size of a history; to hold it to less would only make it slow.
func (s *system) boundMemory(path string) {
	if s.env("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if s.env("GOMEMLIMIT") != "" {
		return
	}
	limit := int64(enoughMemory)
	for _, file := range []string{path, filepath.Join(path, runs.HistoryFile)} {
		if info, err := os.Stat(file); err == nil {
			limit = max(limit, info.Size()/2)
		}
	}
	debug.SetMemoryLimit(limit)
}

func (s *system) analyze(f analyzeFlags, paths []string) error {
	if f.export != "" {
		return unreadable(runs.ExportJepsen(paths[0], s.stdout))
	}
	if len(paths) == 2 {
		if err := f.enoughToCompare(paths); err != nil {
			return err
		}
	}
	var sets [][]checker.Results
	var headers [][]history.Header
	for _, path := range paths {
		s.boundMemory(path)
		set, of, err := s.judgeSet(f, path)
		if err != nil {
			return err
		}
		sets, headers = append(sets, set), append(headers, of)
	}
	if len(sets) == 2 {
		return s.compareSets(sets[0], sets[1], reports.Incomparable(headers[0], headers[1]))
	}
	var worst error
	for _, r := range sets[0] {
		worst = moreTelling(worst, codeOnly(verdictCode(r.Verdict)))
	}
	return worst
}

// enoughToCompare refuses, before any run is judged, sets that have so few runs that no difference
// of theirs could be told from chance.
func (f analyzeFlags) enoughToCompare(paths []string) error {
	var sizes []int
	for _, path := range paths {
		found, err := f.runsAt(path)
		if err != nil {
			return err
		}
		sizes = append(sizes, len(found))
	}
	if stats.Least(sizes[0], sizes[1]) <= checker.Chance {
		return nil
	}
	return runs.Usagef("%s and %s hold %d and %d runs: so few cannot show a difference beyond chance; run at least %d on each side (test --test-count), "+
		"or look at two runs side by side (serve)", paths[0], paths[1], sizes[0], sizes[1], stats.RunsNeeded(1, checker.Chance))
}

// runsAt lists the runs that a path stands for.
func (f analyzeFlags) runsAt(path string) ([]string, error) {
	if f.format != formatOurs {
		return []string{path}, nil
	}
	found, err := runs.At(path)
	return found, unreadable(err)
}

// unreadable makes an error of usage of one about a file that is no history, or cannot be
// read.
func unreadable(err error) error {
	var syntax *history.SyntaxError
	var invalid *history.InvalidError
	var foreign *jepsen.FormatError
	var path *fs.PathError
	if errors.As(err, &syntax) || errors.As(err, &invalid) || errors.As(err, &foreign) || errors.As(err, &path) && path.Op != "write" {
		return &runs.UsageError{Err: err}
	}
	return err
}

// judgeSet judges one run and reports it, or the runs in a folder and reports what they
// result in together. Their headers are returned, too.
func (s *system) judgeSet(f analyzeFlags, path string) ([]checker.Results, []history.Header, error) {
	paths, err := f.runsAt(path)
	if err != nil {
		return nil, nil, err
	}
	var all []checker.Results
	var headers []history.Header
	for _, run := range paths {
		judgement, err := s.judge(f, run)
		if err == nil && len(paths) == 1 {
			err = s.report(judgement)
		}
		if err != nil {
			return nil, nil, err
		}
		judgement.Results.Holds = nil // of many runs they would be many
		all = append(all, judgement.Results)
		headers = append(headers, judgement.History.Header)
	}
	if len(paths) == 1 {
		return all, headers, nil
	}
	return all, headers, reports.Pooled(s.stdout, checker.PoolOf(all), s.terminalOptions())
}

// compareSets says whether the second of two sets of runs is worse. Where there are too
// few runs to tell, that is no pass. What they were made with otherwise is said with it.
func (s *system) compareSets(first, second []checker.Results, incomparable string) error {
	differences := checker.Differences(first, second)
	if err := reports.Differences(s.stdout, differences, len(first), len(second), incomparable, s.terminalOptions()); err != nil {
		return err
	}
	var code error
	for _, d := range differences {
		switch {
		case d.Worse():
			return codeOnly(exitViolation)
		case d.Open() && !d.Compared:
			code = codeOnly(exitUndecided)
		}
	}
	for _, r := range slices.Concat(first, second) {
		if r.Verdict != checker.Violation { // which is what was compared
			code = moreTelling(code, codeOnly(verdictCode(r.Verdict)))
		}
	}
	return code
}

// judge judges one history and writes its reports.
func (s *system) judge(f analyzeFlags, path string) (runs.Judgement, error) {
	if f.format == formatJepsen {
		judgement, err := runs.JudgeJepsen(path, f.foreign)
		return judgement, unreadable(err)
	}
	judgement, err := runs.Judge(path)
	if err != nil {
		return judgement, unreadable(err)
	}
	// A run that was killed has no reports yet, and a newer lockcheck may see
	// more in an old one. A store that cannot be written is judged all the same.
	if err := judgement.WriteReports(); err != nil {
		fmt.Fprintln(s.stderr, "lockcheck: the reports could not be written:", err)
	}
	return judgement, nil
}
