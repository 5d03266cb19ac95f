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
	"lockcheck/nemesis"
	"lockcheck/reports"
)

// Experiment is a run of which it is known what it must give: a lock without
// faults, a lock whose holders are stopped, a reproduction or its control.
type Experiment struct {
	Name    string // unique, as in "lock/redis/paused" or "repro/redis-orphan/control"
	Subject string // the lock or the reproduction
	Setting Setting
	Options runs.Options
	// Application is the test of an application, in place of Options; nil for that of a lock.
	Application *runs.ApplicationOptions
	Expect      Expectation
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
	outcome, err := e.job().test(ctx, m, interrupt, progress, runs.Test)
	if outcome.History == nil {
		return outcome, "", err
	}
	return outcome, e.Missed(outcome.Results), err
}

// job is the run of the experiment, which can be recognised as such, without its outline.
func (e Experiment) job() Job {
	mark := map[string]string{ExperimentParameter: e.Name}
	j := Job{Name: e.Name, Options: e.Options}
	j.Options.Parameters = mark
	if e.Application != nil {
		application := *e.Application
		application.Parameters = mark
		j.Application = &application
	}
	return j
}

// Outline checks the options without running anything, as runs.OutlineOf does.
func (e Experiment) Outline() (runs.Outline, error) {
	if e.Application != nil {
		return runs.OutlineOfApplication(*e.Application)
	}
	return runs.OutlineOf(e.Options)
}

// Tested is the lock or the application, by its name.
func (e Experiment) Tested() string {
	if e.Application != nil {
		return e.Application.App.Name
	}
	return e.Options.Lock
}

func (e Experiment) schedule() *nemesis.Schedule {
	if e.Application != nil {
		return e.Application.Schedule
	}
	return e.Options.Schedule
}

// Missed says why results are not what was expected, "" if they are. For each step
// of a reproduction at least one fault must have been proven and exercised: a control whose
// faults hit nobody controls nothing.
func (e Experiment) Missed(r checker.Results) string {
	schedule := e.schedule()
	if missed := e.Expect.Missed(r); missed != "" || schedule == nil {
		return missed
	}
	for _, step := range schedule.Steps {
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
		return nil, runs.Usagef("--store %s: no runs are stored there; name the folder that was given to the runs with --store", store)
	}
	for _, list := range stored {
		slices.SortStableFunc(list, func(a, b StoredRun) int { return cmp.Compare(a.Header.Started, b.Header.Started) })
	}
	return stored, err
}
