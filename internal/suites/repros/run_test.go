package repros

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/cleanup"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// logged shows the progress of a run in the log of its test.
type logged struct{ t *testing.T }

func (l logged) Step(format string, args ...any) { l.t.Logf(format, args...) }
func (logged) Status(string, ...any)             {}

// TestReproductions runs some published findings and, next to each, its control: one
// by a clock and partitions, and one that needs no Docker. All of them take hours,
// which is for make findings.
func TestReproductions(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	machine := runs.Machine{Store: t.TempDir(), Binary: clustertest.Binary(t), Version: "test"}
	for _, name := range []string{"redlock-clock-jump", "fence-on-writes-only"} {
		r, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []Form{{}, {Control: true}} {
			title := r.Name
			if form.Control {
				title += " control"
			}
			t.Run(title, func(t *testing.T) {
				t.Parallel()
				var outcome runs.Outcome
				e, err := r.Experiment(form)
				if err != nil {
					t.Fatal(err)
				}
				for try := range tries(form) {
					var missed string
					outcome, missed, err = e.Run(context.Background(), machine, nil, logged{t})
					if err != nil {
						t.Fatal(err)
					}
					t.Log(outcome.Results.Sentence)
					if missed == "" {
						break
					}
					if try+1 == tries(form) {
						t.Error(missed)
					}
				}
				if err := clustertest.NothingLeft(outcome.History.Header.Run); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// tries is how often a finding is tried: a busy machine can inflict a fault too late to break
// anything. A control must hold each time.
func tries(form Form) int {
	if form.Control {
		return 1
	}
	return 3
}

// TestApplications: applications that public bug reports are about are found, as the reports have it, and their right
// forms are valid. None of them takes a fault, or Docker.
func TestApplications(t *testing.T) {
	t.Parallel()
	clustertest.StartsServers(t)
	applicationsAreAsExpected(t, applications, []string{
		"blnk-354", "distributedlock-123", "liquibase-2816", "quartz-107", "redis-py-416", "sidekiq-unique-jobs-488",
	})
}

// TestApplicationExamples: the wrong form of each example is found by what its page names, and the right form is valid
// under faults. golang-migrate is left out: its program must be fetched.
func TestApplicationExamples(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t, clustertest.Rest)
	applicationsAreAsExpected(t, builtExamples(t), []string{"billed-twice", "older-plan", "ran-twice"})
}

// builtExamples is a copy of the folder with the program that the page says to build.
func builtExamples(t *testing.T) string {
	t.Helper()
	const source = examples + "/applications"
	folder := filepath.Join(t.TempDir(), "applications")
	if err := os.CopyFS(folder, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(folder, "leader", "leader"), "./"+source+"/leader")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return folder
}

func applicationsAreAsExpected(t *testing.T, folder string, names []string) {
	t.Helper()
	for _, name := range names {
		r, err := FromFile(filepath.Join(folder, name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		experiments, err := r.Experiments()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range experiments {
			t.Run(e.Name, func(t *testing.T) {
				t.Parallel()
				applicationIsAsExpected(t, e)
			})
		}
	}
}

// applicationIsAsExpected runs an experiment, and longer if it has not shown enough: on a busy machine a replica takes
// seconds to start, and a fault may come too late. A violation that is not expected stands at once.
func applicationIsAsExpected(t *testing.T, e suites.Experiment) {
	t.Helper()
	machine := runs.Machine{Store: t.TempDir(), Binary: clustertest.Binary(t), Version: "test"}
	limit, missed := clustertest.Slow(e.Application.TimeLimit), ""
	for _, longer := range []time.Duration{1, 2, 4} {
		e.Application.TimeLimit = longer * limit
		var outcome runs.Outcome
		var err error
		outcome, missed, err = e.Run(context.Background(), machine, nil, logged{t})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(outcome.Results.Sentence)
		run := outcome.History.Header.Run
		if all, err := cleanup.Journals(); err != nil || slices.Contains(all, run) {
			t.Errorf("journals %v, %v: that of the run is to be gone", all, err)
		}
		if missed == "" || e.Expect.Verdict == checker.Valid && outcome.Results.Verdict == checker.Violation {
			break
		}
	}
	if missed != "" {
		t.Error(missed)
	}
}
