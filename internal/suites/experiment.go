// Package suites makes many runs by one runner, such as experiments: tests of which it is
// known what they must give.
package suites

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/reports"
)

// Experiment is a run of which it is known what it must give: a lock without
// faults, a lock whose holders are stopped, a reproduction or its control.
type Experiment struct {
	Name    string // unique, as in "lock/redis/paused" or "repro/redis-orphan/control"
	Subject string // the lock or the reproduction
	Setting Setting
	Options runs.Options
	Expect  Expectation
}

// Setting says what is done to the subject of an experiment.
type Setting string

// Settings: those of a lock, and those of a reproduction.
const (
	SettingFaultless Setting = "faultless"
	SettingPaused    Setting = "paused"
	SettingFinding   Setting = "finding"
	SettingControl   Setting = "control"
)

// ExperimentParameter is the parameter of a run that names its experiment.
const ExperimentParameter = "experiment"

// Run runs the experiment on a machine, and says why the result is not the expected one,
// "" if it is.
func (e Experiment) Run(ctx context.Context, m runs.Machine, interrupt <-chan struct{}, progress runs.Progress) (runs.Outcome, string, error) {
	o := e.marked()
	o.Machine = m
	outcome, err := runs.Test(ctx, o, interrupt, progress)
	if outcome.History == nil {
		return outcome, "", err
	}
	return outcome, e.Missed(outcome.Results), err
}

// marked are the options of a run that can be recognised as one of the experiment.
func (e Experiment) marked() runs.Options {
	o := e.Options
	o.Parameters = map[string]string{ExperimentParameter: e.Name}
	return o
}

// Missed says why results are not what was expected, "" if they are. For each step
// of a reproduction at least one fault must have been proven and exercised: a control whose
// faults hit nobody controls nothing.
func (e Experiment) Missed(r checker.Results) string {
	if missed := e.Expect.Missed(r); missed != "" || e.Options.Schedule == nil {
		return missed
	}
	for _, step := range e.Options.Schedule.Steps {
		counts := func(f checker.FaultCoverage) bool { return step.Began(f.ID) && f.Counts() }
		if !slices.ContainsFunc(r.Faults, counts) {
			return fmt.Sprintf("step %s of the schedule was never proven and exercised", step.ID)
		}
	}
	return ""
}

// StoredRun is a run of an experiment.
type StoredRun struct {
	reports.Document
	Folder string // relative to the store
}

// StoredRuns reads the results of all experiments in a store, by the names of the
// experiments and in the order of their times. What was interrupted says nothing of an
// experiment, and is left out.
func StoredRuns(store string) (map[string][]StoredRun, error) {
	stored := make(map[string][]StoredRun)
	err := filepath.WalkDir(store, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != runs.ResultsFile {
			return err
		}
		var run StoredRun
		if run.Document, err = runs.ReadResults(filepath.Dir(path)); err != nil {
			return err
		}
		if run.Folder, err = filepath.Rel(store, filepath.Dir(path)); err != nil {
			return err
		}
		if name := run.Header.Parameters[ExperimentParameter]; name != "" && !run.Results.Interrupted {
			stored[name] = append(stored[name], run)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, runs.Usagef("--store %s: no runs are stored there", store)
	}
	for _, list := range stored {
		slices.SortStableFunc(list, func(a, b StoredRun) int { return cmp.Compare(a.Header.Started, b.Header.Started) })
	}
	return stored, err
}
