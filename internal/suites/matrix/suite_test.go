package matrix

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/stats"
	"lockcheck/reports"
)

func TestReadSuite(t *testing.T) {
	for _, c := range []struct {
		name, text string
		wrong      string // part of the error; "" for none
	}{
		{"smallest", "locks: [memory]", ""},
		{"all that can be said", `
locks: [redis, etcd@3.5.15]
faults: [none, "pause:holder"]
guards: [none, fence]
seeds: [1, 2, 3]
workload: counter
concurrency: 3
ttl: 4s
section: 10ms-20ms
nemesis-interval: 2s
time-limit: 30s
min-ops: 5
thresholds: {lost: 0, overlaps: 0, handover_p99: 3s, min_ops: 300, availability: 0.9}
`, ""},
		{"nothing", "", "empty"},
		{"unknown key", "locks: [memory]\ncolour: red", "line 2"},
		{"unknown lock", "locks: [memroy]", `did you mean "memory"`},
		{"unknown fault", "locks: [memory]\nfaults: [paus]", `did you mean "pause"`},
		{"unknown guard", "locks: [memory]\nguards: [wall]", "guard"},
		{"unknown version", "locks: [etcd@2.0]", "--version"},
		{"no seeds", "locks: [memory]\nseeds: []", "seeds"},
		{"no seeds by count", "locks: [memory]\nseeds: 0", "line 2"},
		{"a lock twice", "locks: [memory, memory]", "twice"},
		{"unknown threshold", "locks: [memory]\nthresholds: {found: 0}", "line 2"},
		{"a threshold twice", "locks: [memory]\nthresholds: {lost: 0, lost: 1}", "lost"},
		{"a length of time without unit", "locks: [memory]\nthresholds: {handover_p99: 3}", "line 2"},
		{"a share above all", "locks: [memory]\nthresholds: {availability: 90}", "makes no sense"},
		{"a threshold without a fault that it needs", "locks: [memory]\nfaults: [none]\nthresholds: {handover_p99: 3s}", "handover_p99: none of the faults"},
		{"less than nothing", "locks: [memory]\nthresholds: {lost: -1}", "makes no sense"},
		{"two documents", "locks: [memory]\n---\nlocks: [none]", "more than one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			suite, err := ReadSuite(strings.NewReader(c.text))
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Fatalf("error %v, want one with %q", err, c.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var stored, again strings.Builder
			if err := suite.Write(&stored); err != nil {
				t.Fatal(err)
			}
			read, err := ReadSuite(strings.NewReader(stored.String()))
			if err != nil {
				t.Fatalf("what was written cannot be read: %v\n%s", err, stored.String())
			}
			if err := read.Write(&again); err != nil || again.String() != stored.String() {
				t.Errorf("%v: read and written again it is\n%s\nwas\n%s", err, again.String(), stored.String())
			}
		})
	}
}

func TestSeeds(t *testing.T) {
	suite, err := ReadSuite(strings.NewReader("locks: [memory]\nseeds: 3"))
	if err != nil || !slices.Equal(suite.Seeds, Seeds{1, 2, 3}) {
		t.Errorf("seeds %v, %v", suite.Seeds, err)
	}
	suite, err = ReadSuite(strings.NewReader("locks: [memory]\nseeds: [7, 9]"))
	if err != nil || !slices.Equal(suite.Seeds, Seeds{7, 9}) {
		t.Errorf("seeds %v, %v", suite.Seeds, err)
	}
}

// TestOutline: what cannot be had leaves its cell empty, and says why; what makes no
// sense is an error.
func TestOutline(t *testing.T) {
	suite := DefaultSuite()
	for _, c := range []struct {
		cell        Cell
		unavailable string
	}{
		{Cell{"redis", "pause:holder", "none"}, ""},
		{Cell{"redis", "clock", "none"}, ""},
		{Cell{"redis", "pause:holder", "fence"}, "no fencing token"},
		{Cell{"redis", "pause:holder", "ask"}, ""},
		{Cell{"none", "none", "ask"}, "cannot be asked"},
		{Cell{"redis", "pause:leader", "none"}, "none of these servers leads"},
		{Cell{"etcd", "pause:leader", "fence"}, ""},
		{Cell{"memory", "partition:holder", "none"}, "network"},
		{Cell{"none", "pause:one server", "none"}, "role"},
	} {
		outline, err := c.cell.outline(suite)
		why := unavailable(err)
		switch {
		case c.unavailable == "" && err != nil:
			t.Errorf("%v: %v", c.cell, err)
		case c.unavailable == "" && outline.Options.TimeLimit-outline.Quiet < minActive:
			t.Errorf("%v: a run of %s, of which %s are quiet", c.cell, outline.Options.TimeLimit, outline.Quiet)
		case c.unavailable != "" && !strings.Contains(why, c.unavailable):
			t.Errorf("%v: unavailable because of %v, want %q", c.cell, err, c.unavailable)
		}
	}
	var usage *runs.UsageError
	if _, err := (Cell{"radis", "none", "none"}).outline(suite); !errors.As(err, &usage) || unavailable(err) != "" {
		t.Errorf("a lock that there is not: %v", err)
	}
}

func TestShard(t *testing.T) {
	for _, text := range []string{"0/2", "3/2", "1", "a/b", "1/0", "-1/2"} {
		if _, err := ParseShard(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	// Each run is in exactly one part.
	const of, runs = 3, 10
	for i := range runs {
		in := 0
		for n := 1; n <= of; n++ {
			if (Shard{n, of}).has(i) {
				in++
			}
		}
		if in != 1 || !(Shard{}).has(i) {
			t.Errorf("run %d is in %d parts, in the whole: %v", i, in, Shard{}.has(i))
		}
	}
}

// TestThresholds holds what is better, equal, worse and unknown to a bound.
func TestThresholds(t *testing.T) {
	var latencies stats.Histogram
	latencies.Add(2 * time.Second)
	pool := func(lost, work int64, handover stats.Histogram) checker.Pool {
		return checker.Pool{Runs: 1, Lost: lost, Acknowledged: work, Measures: checker.Measures{Work: work, Active: time.Second, Handover: handover}}
	}
	stuck := pool(0, 9, latencies)
	stuck.Stuck = 1
	session := Cell{"postgres-session", "pause:holder", "none"}
	paused, calm := Cell{"redis", "pause:holder", "none"}, Cell{"redis", "none", "none"}
	for _, c := range []struct {
		name string
		cell Cell
		t    Threshold
		pool checker.Pool
		want checker.Verdict // "" for none
	}{
		{"none lost", calm, Threshold{"lost", 0}, pool(0, 9, stats.Histogram{}), checker.Valid},
		{"one lost", calm, Threshold{"lost", 0}, pool(1, 9, stats.Histogram{}), checker.Violation},
		{"as many as allowed", calm, Threshold{"lost", 1}, pool(1, 9, stats.Histogram{}), checker.Valid},
		{"enough", calm, Threshold{"min_ops", 9}, pool(0, 9, stats.Histogram{}), checker.Valid},
		{"too few", calm, Threshold{"min_ops", 10}, pool(0, 9, stats.Histogram{}), checker.Violation},
		{"handed over in time", paused, Threshold{"handover_p99", float64(3 * time.Second)}, pool(0, 9, latencies), checker.Valid},
		{"handed over late", paused, Threshold{"handover_p99", float64(time.Second)}, pool(0, 9, latencies), checker.Violation},
		{"never handed over", paused, Threshold{"handover_p99", float64(time.Second)}, pool(0, 9, stats.Histogram{}), checker.Undecided},
		{"nothing to hand over", calm, Threshold{"handover_p99", float64(time.Second)}, pool(0, 9, stats.Histogram{}), ""},
		{"no fault to be available in", calm, Threshold{"availability", 1}, pool(0, 9, stats.Histogram{}), ""},
		{"a fault that was never in force", paused, Threshold{"availability", 1}, pool(0, 9, stats.Histogram{}), checker.Undecided},
		{"one of two never handed over", paused, Threshold{"handover_p99", float64(3 * time.Second)}, stuck, checker.Violation},
		{"the faster half handed over", paused, Threshold{"handover_p50", float64(3 * time.Second)}, stuck, checker.Valid},
		{"a lock that waits for its holder", session, Threshold{"handover_p99", float64(time.Second)}, pool(0, 9, stats.Histogram{}), ""},
		{"nothing to lose", calm, Threshold{"lost", 0}, pool(0, 0, stats.Histogram{}), checker.Undecided},
		{"no run", calm, Threshold{"lost", 0}, checker.Pool{}, checker.Undecided},
	} {
		var got checker.Verdict
		if all := (Thresholds{c.t}).judge(c.cell, c.pool, true); len(all) > 0 {
			got = all[0].Verdict
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestJudge: a threshold takes the place of the property that it bounds, not of others,
// nor of runs that say nothing.
func TestJudge(t *testing.T) {
	kept, missed := reports.ThresholdResult{Verdict: checker.Valid}, reports.ThresholdResult{Verdict: checker.Violation}
	found := func(v checker.Verdict, p checker.Property) checker.Finding {
		return checker.Finding{Property: p, Verdict: v, Required: true}
	}
	ended := func(v checker.Verdict, findings ...checker.Finding) reports.ComparedRun {
		return reports.RunOf(1, "", reports.Document{Results: checker.Results{Verdict: v, Findings: findings}})
	}
	ran := func(verdicts ...checker.Verdict) (runs []reports.ComparedRun) {
		for _, v := range verdicts {
			runs = append(runs, ended(v, found(v, checker.MutualExclusion)))
		}
		return runs
	}
	loss := found(checker.Violation, checker.NoLostUpdate)
	lost := ended(checker.Violation, loss, found(checker.Valid, checker.Assumptions))
	stuck := ended(checker.Violation, loss, found(checker.Violation, checker.Liveness))
	unproven := ended(checker.Violation, loss, found(checker.Undecided, checker.FaultEvidence))
	fallen := ended(checker.Violation, loss, found(checker.Broken, checker.Assumptions))
	bounded := []checker.Property{checker.NoLostUpdate}
	for _, c := range []struct {
		name       string
		runs       []reports.ComparedRun
		thresholds []reports.ThresholdResult
		excused    []checker.Property
		want       checker.Verdict
	}{
		{"no run", nil, nil, nil, ""},
		{"valid", ran(checker.Valid), nil, nil, checker.Valid},
		{"the most telling", ran(checker.Valid, checker.Violation, checker.Undecided), nil, nil, checker.Violation},
		{"undecided before broken", ran(checker.Valid, checker.Broken, checker.Undecided), nil, nil, checker.Undecided},
		{"broken before valid", ran(checker.Valid, checker.Broken), nil, nil, checker.Broken},
		{"lost, and as many may be", []reports.ComparedRun{lost}, []reports.ThresholdResult{kept}, bounded, checker.Valid},
		{"lost, and something else bounded", []reports.ComparedRun{lost}, []reports.ThresholdResult{kept}, nil, checker.Violation},
		{"stuck, and the loss bounded", []reports.ComparedRun{stuck}, []reports.ThresholdResult{kept}, bounded, checker.Violation},
		{"lost under a fault without proof", []reports.ComparedRun{unproven}, []reports.ThresholdResult{kept}, bounded, checker.Undecided},
		{"lost under a fault without proof, and not bounded", []reports.ComparedRun{unproven}, nil, nil, checker.Violation},
		{"lost in a run that failed", []reports.ComparedRun{fallen}, []reports.ThresholdResult{kept}, bounded, checker.Broken},
		{"valid, and missed", ran(checker.Valid), []reports.ThresholdResult{kept, missed}, nil, checker.Violation},
		{"undecided, and kept", ran(checker.Undecided), []reports.ThresholdResult{kept}, nil, checker.Undecided},
		{"broken, and kept", ran(checker.Broken), []reports.ThresholdResult{kept}, nil, checker.Broken},
		{"lost in a part that cannot tell yet", []reports.ComparedRun{lost}, nil, bounded, checker.Valid},
	} {
		cell := reports.ComparedCell{Runs: c.runs, Thresholds: c.thresholds, Excused: c.excused}
		if cell.Judge(); cell.Verdict != c.want {
			t.Errorf("%s: %q, want %q", c.name, cell.Verdict, c.want)
		}
	}
}

// TestIncompleteCell: a part of a comparison can exceed a bound, but not fall short of one.
func TestIncompleteCell(t *testing.T) {
	few := checker.Pool{Runs: 1, Lost: 2, Acknowledged: 9, Measures: checker.Measures{Work: 9}}
	bounds := Thresholds{{"lost", 1}, {"min_ops", 10}}
	cell := Cell{"redis", "none", "none"}
	if all := bounds.judge(cell, few, true); len(all) != 2 || all[1].Verdict != checker.Violation {
		t.Errorf("of the whole: %+v", all)
	}
	if all := bounds.judge(cell, few, false); len(all) != 1 || all[0].Verdict != checker.Violation {
		t.Errorf("of a part: %+v", all)
	}
}

// TestDocumentedSuite: the one in the documentation can be read, and comes out as written.
func TestDocumentedSuite(t *testing.T) {
	file, err := os.Open("../../../docs/ci/suite.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	suite, err := ReadSuite(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(suite.cells()) != 2 || len(suite.Seeds) != 3 || len(suite.Thresholds) != 4 {
		t.Errorf("it says %+v", suite)
	}
}
