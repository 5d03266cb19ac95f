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

// Formats of histories.
const (
	formatOurs   = "lockcheck"
	formatJepsen = "jepsen"
)

func analyzeCommand(s *system) *cobra.Command {
	var f analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze RUNS [RUNS]",
		Short: "judge stored runs again, or compare two sets",
		Long: `Judge the stored history of a run again, given its folder or its file. If the run was killed, its history is judged up to where it ends. With the folder of a run, its reports are written again. A folder that holds several runs stands for all of them, and their results are added up.

With two sets of runs, analyze also says whether they differ by more than chance. That needs four or five runs in each set; smaller sets are refused. The exit code is then 1 if the second set is worse, 2 if there are too few runs to say, the code of an undecided or broken run if there is one, and else 0.

Jepsen's histories are judged by the same checkers, if they test a lock (:f :acquire and :release) or a set (:f :add and :read). Each key of jepsen.independent, and each :key, :lock or :mutex of an operation or of its value, is a lock of its own: 1, :1 and "1" are three locks. A history is refused if it is not certain which lock an operation is about. Then --keys says so: "independent" ([key value]), "value" (the value of an :acquire or :release is its key), "none" (there is one lock), or the name of a field, such as :resource.

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
	flags := flagsOf(cmd)
	flags.alsoCalled(map[string]string{"lease": "ttl"})
	flags.text(&f.format, "format", formatOurs)
	flags.length(&f.foreign.Lease, "ttl", 0)
	flags.number(&f.foreign.Permits, "permits", 1)
	flags.number(&f.foreign.Reentrant, "reentrant", 1)
	flags.text(&f.foreign.Keys, "keys", "")
	flags.text(&f.export, "export", "")
	flags.otherwise("ttl", "none: Jepsen's lock may end at any time")
	return cmd
}

func (f analyzeFlags) check(args []string) error {
	switch {
	case f.format != formatOurs && f.format != formatJepsen:
		return runs.BadFlag("format", f.format, "there are lockcheck and jepsen")
	case f.export != "" && f.export != formatJepsen:
		return runs.BadFlag("export", f.export, "there is only jepsen")
	case f.foreign != jepsen.Options{Permits: 1, Reentrant: 1} && f.format != formatJepsen:
		return runs.Usagef("--ttl, --permits, --reentrant and --keys apply only to Jepsen histories; a history of lockcheck records these values")
	case !f.foreign.Known():
		return runs.BadFlag("keys", f.foreign.Keys, "there are independent, value, none, and the names of fields, which begin with a colon")
	case f.foreign.Permits > 1 && f.foreign.Reentrant > 1:
		return runs.Usagef("--permits and --reentrant exclude each other")
	case f.export != "" && (len(args) > 1 || f.format == formatJepsen):
		return runs.BadFlag("export", f.export, "it is for one run of lockcheck")
	}
	return errors.Join(least("ttl", f.foreign.Lease, 0), least("permits", f.foreign.Permits, 1), least("reentrant", f.foreign.Reentrant, 1))
}

// collectAt is GOGC, in percent, while a history is judged. A history of millions of operations fits
// in memory only with little garbage.
const collectAt = 25

// enoughMemory is the least memory limit, in bytes: judging a history of ten million operations needs
// that much.
const enoughMemory = 1850 << 20

// boundMemory limits memory unless GOGC and GOMEMLIMIT do. Judging needs about half the size of a
// history; a lower limit would only make it slow.
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
		if len(paths) == 2 {
			fmt.Fprintf(s.stdout, "%s:\n", path)
		}
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

// enoughToCompare refuses sets with so few runs that no difference could exceed chance, before any
// run is judged.
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
	return runs.Usagef("%s and %s hold too few runs to show a difference beyond chance (%d and %d); run at least %d on each side (test --test-count), "+
		"or look at two runs side by side (serve)", paths[0], paths[1], sizes[0], sizes[1], checker.RunsNeededForAll())
}

// runsAt lists the runs that a path stands for.
func (f analyzeFlags) runsAt(path string) ([]string, error) {
	if f.format != formatOurs {
		return []string{path}, nil
	}
	found, err := runs.At(path)
	return found, unreadable(err)
}

// unreadable turns an error about a file that is no history or cannot be read into a usage error.
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

// judgeSet judges one run or the runs in a folder, reports their results together, and returns these
// with the headers of the runs.
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
		judgement.Results.Holds = nil // they would fill the memory
		all = append(all, judgement.Results)
		headers = append(headers, judgement.History.Header)
	}
	if len(paths) == 1 {
		return all, headers, nil
	}
	return all, headers, reports.Pooled(s.stdout, checker.PoolOf(all), s.terminalOptions())
}

// compareSets reports whether the second of two sets of runs is worse, and what else differs between
// them. Too few runs to say is not a pass.
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
		if r.Verdict != checker.Violation { // violations were compared above
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
	// A killed run has no reports yet, and a newer lockcheck may find more in an old run. The verdict
	// does not depend on a store that cannot be written.
	if err := judgement.WriteReports(); err != nil {
		fmt.Fprintln(s.stderr, "lockcheck: the reports could not be written:", err)
	}
	return judgement, nil
}
