// Package findings lists all experiments whose results are published: every lock without faults and with
// paused holders, and every reproduction with its control.
package findings

import (
	"fmt"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/repros"
	"lockcheck/workloads"
)

// enoughUpdates is the least number of updates for which a valid run without faults means something. A
// library that sends five requests per second makes about 80 in that time.
const enoughUpdates = 50

// Experiments lists all experiments: the locks in the order of their table, then the reproductions.
func Experiments() ([]suites.Experiment, error) {
	var all []suites.Experiment
	for _, lock := range clients.Table() {
		all = append(all, faultlessExperiment(lock), pausedExperiment(lock))
	}
	reproductions, err := repros.All()
	if err != nil {
		return nil, err
	}
	ofReproductions, err := experimentsOf(reproductions)
	return append(all, ofReproductions...), err
}

// InFiles lists the experiments of the reproductions in files and folders, instead of the built-in ones.
func InFiles(paths []string) ([]suites.Experiment, error) {
	reproductions, err := repros.In(paths)
	if err != nil {
		return nil, err
	}
	return experimentsOf(reproductions)
}

func experimentsOf(reproductions []repros.Reproduction) ([]suites.Experiment, error) {
	var all []suites.Experiment
	for _, r := range reproductions {
		experiments, err := r.Experiments()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		all = append(all, experiments...)
	}
	return all, nil
}

func faultlessExperiment(lock clients.Info) suites.Experiment {
	e := lockExperiment(lock, suites.SettingFaultless)
	e.Options.Nemesis, e.Options.TimeLimit, e.Options.MinOps = "none", 30*time.Second, enoughUpdates
	e.Expect.Verdict = checker.Valid
	if lock.Unsafe {
		e.Expect.Verdict = checker.Violation
	}
	return e
}

// pausedExperiment pauses holders beyond the lease. This breaks every lock that expires, and no lock that ends only
// with its holder.
func pausedExperiment(lock clients.Info) suites.Experiment {
	e := lockExperiment(lock, suites.SettingPaused)
	e.Options.Nemesis, e.Options.MinOps = "pause", runs.DefaultMinOps
	e.Expect = suites.Expectation{Verdict: checker.Violation, Violated: []checker.Property{checker.MutualExclusion}, Earlier: "paused"}
	switch {
	case lock.Unsafe:
		e.Expect.Earlier = ""
	case lock.TTL == 0:
		e.Expect = suites.Expectation{Verdict: checker.Valid}
	}
	return e
}

func lockExperiment(lock clients.Info, setting suites.Setting) suites.Experiment {
	workload := history.WorkloadSet
	if lock.Permits {
		workload = history.WorkloadSemaphore
	}
	return suites.Experiment{
		Name: "lock/" + lock.Name + "/" + string(setting), Subject: lock.Name, Setting: setting,
		Options: runs.Options{
			Lock: lock.Name, Workload: workload, Guard: "none", Concurrency: runs.DefaultConcurrency,
			Use: workloads.Use{Section: runs.DefaultSection()}, Interval: runs.DefaultInterval, Seed: 1,
		},
	}
}
