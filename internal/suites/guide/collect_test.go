package guide

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/matrix"
	"lockcheck/reports"
)

// store writes the results of runs, and the schedules of those that have one.
func store(t *testing.T, all map[string]reports.Document, schedules map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, d := range all {
		folder := filepath.Join(root, name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := runs.WriteFile(folder, runs.ResultsFile, func(w io.Writer) error { return reports.JSON(w, d.Header, d.Results) }); err != nil {
			t.Fatal(err)
		}
		if text := schedules[name]; text != "" {
			if err := os.WriteFile(filepath.Join(folder, "schedule.yaml"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// TestCollect collects a run of a reproduction, an interrupted run, a run of another program, and a test of an application.
func TestCollect(t *testing.T) {
	header := history.Header{
		Run: "1", Started: "2026-01-02T03:04:05Z", Lock: "etcd-v3lock", Guard: "none", Workload: "set", Servers: []string{"n1"}, Workers: []string{"w1"},
		Versions: map[string]string{"etcd": "3.4.3"}, Parameters: map[string]string{suites.ExperimentParameter: "repro/etcd-11456"},
		Lease: 2e9, Command: []string{"lockcheck", "findings", "run"},
	}
	results := checker.Results{
		Verdict: checker.Violation, Updates: checker.UpdateSummary{Acknowledged: 9, Lost: 1},
		Findings: []checker.Finding{
			{Property: checker.MutualExclusion, Verdict: checker.Violation, Required: true, Causes: map[string]int64{checker.CauseTwice: 2}},
			{Property: checker.NoLostUpdate, Verdict: checker.Violation},
		},
		Faults: []checker.FaultCoverage{{ID: "stop", Kind: "pause", Applied: true, Proven: true, Exercised: true}},
	}
	interrupted, other, application := results, header, header
	interrupted.Interrupted, other.Imported, application.Application = true, "jepsen", &history.Application{}
	root := store(t, map[string]reports.Document{
		"a/1": {Header: header, Results: results}, "a/2": {Header: header, Results: interrupted}, "b/3": {Header: other, Results: results},
		"b/4": {Header: application, Results: results},
	}, map[string]string{"a/1": "seed: 1\nsteps:\n- {id: stop, fault: pause, target: n1, for: 3s}\n"})
	found, err := Collect(root)
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	run := found[0]
	if run.Lock != "etcd-v3lock@3.4.3" || run.Command() != "lockcheck repro etcd-11456" || run.Updates.Lost != 1 || !slices.Equal(run.Violated, []checker.Property{checker.MutualExclusion}) ||
		!reflect.DeepEqual(run.Causes, map[string]int64{checker.CauseTwice: 2}) || !slices.Equal(run.Faults, []Fault{{"pause:one server", 1, 1}}) || !slices.Equal(run.Setup, []string{"the lease of a waiter not renewed"}) {
		t.Errorf("%+v", run)
	}
	if _, err := Collect(filepath.Join(root, "no")); err == nil {
		t.Error("a store that is not there is no error")
	}
}

// TestCollectLongWork: a run in which work outlasted its lease behind a guard is evidence, but only if
// another worker was granted the lock in the meantime.
func TestCollectLongWork(t *testing.T) {
	header := history.Header{
		Run: "1", Started: "2026-01-02T03:04:05Z", Lock: "redis", Guard: "cas", Workload: "set", Servers: []string{"n1"}, Workers: []string{"w1", "w2"},
		Lease: 2e9, Parameters: map[string]string{"section": "3s-4s"},
	}
	for cause, want := range map[string][]Fault{checker.CauseOutlasted: {{LongWork, 1, 1}}, checker.CauseTwice: nil} {
		results := checker.Results{Verdict: checker.Valid, Findings: []checker.Finding{
			{Property: checker.MutualExclusion, Verdict: checker.Violation, Tolerated: true, Causes: map[string]int64{cause: 2}},
		}}
		found, err := Collect(store(t, map[string]reports.Document{"a/1": {Header: header, Results: results}}, nil))
		if err != nil || len(found) != 1 || !slices.Equal(found[0].Faults, want) {
			t.Errorf("%s: %+v, %v, want %v", cause, found, err, want)
		}
	}
}

// TestCollectTrials: a trial that its comparison rejects or does not list is no evidence. All other trials
// are evidence about an aimed fault.
func TestCollectTrials(t *testing.T) {
	violated := func(cause string) checker.Results {
		return checker.Results{
			Verdict: checker.Violation,
			Faults:  []checker.FaultCoverage{{ID: "p", Kind: "pause", Applied: true, Proven: true, Exercised: true}},
			Findings: []checker.Finding{
				{Property: checker.NoLostUpdate, Verdict: checker.Violation, Required: true, Causes: map[string]int64{cause: 1}},
			},
		}
	}
	valid := violated("")
	valid.Verdict, valid.Findings = checker.Valid, nil
	const recorded, late, nowhere = `{"lock":"memory","fault":"holder-paused","guard":"none","seed":%d,"run":"runs/%d","attack":%q}`,
		`{"lock":"memory","fault":"holder-paused","guard":"none","seed":%d,"run":"runs/%d","attack":%q,"late":true}`, ""
	for _, c := range []struct {
		name    string
		line    string // of the ledger
		results checker.Results
		counts  bool
	}{
		{"held", recorded, valid, true},
		{"held on a late machine", late, valid, false},
		{"broke", recorded, violated(checker.CausePaused), true},
		{"broke on a late machine", late, violated(checker.CausePaused), true},
		{"its section outlasted its lease", recorded, violated(checker.CauseOutlasted), true},
		{"its section outlasted its lease on a late machine", late, violated(checker.CauseOutlasted), false},
		{"not in the ledger", nowhere, valid, false},
	} {
		header := history.Header{
			Run: "1", Started: "2026-01-02T03:04:05Z", Lock: "memory", Guard: "none", Workload: "set", Servers: []string{"n1"}, Workers: []string{"w1", "w2"},
			Lease: 1e9, Parameters: map[string]string{matrix.CellParameter: "memory, holder-paused, guard none, seed 1"},
			Command: []string{"lockcheck", "compare", "--locks", "memory", "--faults", "holder-paused"},
		}
		root := store(t, map[string]reports.Document{"compare/runs/1": {Header: header, Results: c.results}}, map[string]string{
			"compare/runs/1": "seed: 1\nsteps:\n- {id: p, fault: pause, target: holder, when: holding, for: 3s}\n",
		})
		suite := matrix.DefaultSuite()
		suite.Locks, suite.Faults = []string{"memory"}, []string{"holder-paused"}
		folder, err := matrix.Create(filepath.Join(root, "compare"), suite, suites.Shard{})
		if err != nil {
			t.Fatal(err)
		}
		if c.line != nowhere {
			comparison, err := folder.Comparison()
			if err != nil {
				t.Fatal(err)
			}
			addLine(t, filepath.Join(folder.Path, "ledger.jsonl"), fmt.Sprintf(c.line, 1, 1, comparison.Cells[0].Attack))
		}
		found, err := Collect(root)
		if err != nil || len(found) != boolToInt(c.counts) {
			t.Errorf("%s: %v, %v; want it counted: %t", c.name, found, err, c.counts)
		}
		for _, run := range found {
			if run.Experiment != "attack/holder-paused" || run.Command() != "lockcheck compare --locks memory --faults holder-paused" {
				t.Errorf("%s: %q, by %q", c.name, run.Experiment, run.Command())
			}
			if worst, broke := found.Cell("memory", "pause:holder", "none").Worst(); broke && worst.name() != "holder-paused" {
				t.Errorf("%s: broken by %q", c.name, worst.name())
			}
		}
	}
}

func addLine(t *testing.T, path, line string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = file.WriteString(line + "\n")
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
