package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/reports"
)

// Experiment is a run of which it is known what it must give: a lock without
// faults, a lock whose holders are stopped, a reproduction or its control.
type Experiment struct {
	Name    string // unique, as in "lock/redis/paused" or "repro/redis-orphan/control"
	Subject string // the lock or the reproduction
	Setting reports.Setting
	Options Options
	Expect  Expectation
}

// experimentParameter is the parameter of a run that names its experiment.
const experimentParameter = "experiment"

// enoughUpdates is how much a lock must do without faults for its being valid to
// say anything.
const enoughUpdates = 300

// Experiments lists all of them: locks in the order of their table, then
// reproductions.
func Experiments() ([]Experiment, error) {
	var all []Experiment
	for _, lock := range clients.Table() {
		all = append(all, faultless(lock), paused(lock))
	}
	reproductions, err := Reproductions()
	if err != nil {
		return nil, err
	}
	for _, r := range reproductions {
		experiments, err := r.experiments(reproPrefix)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		all = append(all, experiments...)
	}
	return all, nil
}

// reproPrefix comes before the names of reproductions among the experiments.
const reproPrefix = "repro/"

// experiments are the test and, if there is one, its control.
func (r Reproduction) experiments(prefix string) ([]Experiment, error) {
	finding, err := r.experiment(prefix, Form{})
	if err != nil || r.Control == nil {
		return []Experiment{finding}, err
	}
	control, err := r.experiment(prefix, Form{Control: true})
	return []Experiment{finding, control}, err
}

func (r Reproduction) experiment(prefix string, form Form) (Experiment, error) {
	o, err := r.Options(form)
	e := Experiment{Name: prefix + r.Name, Subject: r.Name, Setting: reports.SettingFinding, Options: o, Expect: r.Expect}
	if form.Fast {
		e.Name += "/fast"
	}
	if form.Control && err == nil {
		e.Name, e.Setting, e.Expect = e.Name+"/control", reports.SettingControl, r.Control.Expect
	}
	return e, err
}

func faultless(lock clients.Info) Experiment {
	e := lockExperiment(lock, reports.SettingFaultless)
	e.Options.Nemesis, e.Options.TimeLimit, e.Options.MinOps = "none", 30*time.Second, enoughUpdates
	e.Expect.Verdict = checker.Valid
	if lock.Unsafe {
		e.Expect.Verdict = checker.Violation
	}
	return e
}

// paused stops holders beyond the lease. That harms every lock that ends by itself,
// and none that ends only with its holder.
func paused(lock clients.Info) Experiment {
	e := lockExperiment(lock, reports.SettingPaused)
	e.Options.Nemesis, e.Options.MinOps = "pause", DefaultMinOps
	e.Expect = Expectation{Verdict: checker.Violation, Violated: []checker.Property{checker.MutualExclusion}, Earlier: "paused"}
	switch {
	case lock.Unsafe:
		e.Expect.Earlier = ""
	case lock.TTL == 0:
		e.Expect = Expectation{Verdict: checker.Valid}
	}
	return e
}

func lockExperiment(lock clients.Info, setting reports.Setting) Experiment {
	return Experiment{
		Name: "lock/" + lock.Name + "/" + string(setting), Subject: lock.Name, Setting: setting,
		Options: Options{
			Lock: lock.Name, Workload: "set", Guard: "none", Concurrency: DefaultConcurrency,
			Section: DefaultSection(), Interval: DefaultInterval, Seed: 1,
		},
	}
}

// Run runs the experiment on a machine, and says why the result is not the expected one,
// "" if it is.
func (e Experiment) Run(ctx context.Context, m Machine, interrupt <-chan struct{}, progress Progress) (Outcome, string, error) {
	o := e.Options
	o.Machine = m
	o.Parameters = map[string]string{experimentParameter: e.Name}
	outcome, err := Test(ctx, o, interrupt, progress)
	if outcome.History == nil {
		return outcome, "", err
	}
	return outcome, e.Missed(outcome.Results), err
}

// Missed says why results are not what was expected, "" if they are. Of each step
// of a reproduction at least one fault must have been in force and met somebody: a
// control in which the others were spared controls nothing.
func (e Experiment) Missed(r checker.Results) string {
	if missed := e.Expect.Missed(r); missed != "" || e.Options.Schedule == nil {
		return missed
	}
	for _, step := range e.Options.Schedule.Steps {
		counts := func(f checker.FaultCoverage) bool { return step.Began(f.ID) && f.Counts() }
		if !slices.ContainsFunc(r.Faults, counts) {
			return fmt.Sprintf("step %s of the schedule was never in force and met", step.ID)
		}
	}
	return ""
}

// Observations reads the stored runs of experiments and puts them beside what
// was expected. Experiments that were never run are there, without runs.
func Observations(store string) ([]reports.Observed, error) {
	experiments, err := Experiments()
	if err != nil {
		return nil, err
	}
	runs, err := StoredRuns(store)
	if err != nil {
		return nil, err
	}
	var all []reports.Observed
	for _, e := range experiments {
		o := reports.Observed{
			Subject: e.Subject, Setting: e.Setting, Lock: e.Options.Lock, Expected: e.Expect.String(),
		}
		for _, run := range runs[e.Name] {
			missed := e.Missed(run.Results)
			o.Runs = append(o.Runs, reports.ObservedRun{Document: run.Document, AsExpected: missed == "", Missed: missed})
		}
		all = append(all, o)
	}
	return all, nil
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
	runs := make(map[string][]StoredRun)
	err := filepath.WalkDir(store, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != ResultsFile {
			return err
		}
		var run StoredRun
		if run.Document, err = ReadResults(filepath.Dir(path)); err != nil {
			return err
		}
		if run.Folder, err = filepath.Rel(store, filepath.Dir(path)); err != nil {
			return err
		}
		if name := run.Header.Parameters[experimentParameter]; name != "" && !run.Results.Interrupted {
			runs[name] = append(runs[name], run)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no runs are stored in %s", store)
	}
	for _, list := range runs {
		slices.SortStableFunc(list, func(a, b StoredRun) int { return cmp.Compare(a.Header.Started, b.Header.Started) })
	}
	return runs, err
}
