package matrix

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/stats"
	"lockcheck/internal/suites"
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
thresholds: {lost: 0, overlaps: 0, failover_p99: 3s, min_ops: 300, availability: 0.9}
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
		{"a length of time without unit", "locks: [memory]\nthresholds: {failover_p99: 3}", "line 2"},
		{"a share above all", "locks: [memory]\nthresholds: {availability: 90}", "makes no sense"},
		{"a threshold without a fault that it needs", "locks: [memory]\nfaults: [none]\nthresholds: {failover_p99: 3s}", "failover_p99: none of the faults"},
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

// TestClusterSeeds: a lock with several servers has its own seeds, also for confirmations, and no shard makes
// a run twice.
func TestClusterSeeds(t *testing.T) {
	suite, err := ReadSuite(strings.NewReader("locks: [redis, redlock]\nfaults: [none]\nguards: [none]\nseeds: 3\ncluster-seeds: [7]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		lock  string
		round int
		want  Seeds
	}{
		{"redis", 0, Seeds{1, 2, 3}}, {"redis", 1, Seeds{4, 5, 6}},
		{"redlock", 0, Seeds{7}}, {"redlock", 2, Seeds{9}},
	} {
		if got := suite.seedsOf(Place{c.lock, "none", "none"}, c.round); !slices.Equal(got, c.want) {
			t.Errorf("%s, round %d: %v, want %v", c.lock, c.round, got, c.want)
		}
	}
	var made []string
	for part := range 4 {
		f := Folder{Suite: suite, Shard: suites.Shard{N: part + 1, Of: 4}}
		todo, err := f.todo()
		if err != nil {
			t.Fatal(err)
		}
		if len(todo) != 1 {
			t.Errorf("part %d of four makes %d of four runs", part+1, len(todo))
		}
		for _, p := range todo {
			made = append(made, p.job(suite).Name)
		}
	}
	slices.Sort(made)
	want := []string{
		"redis, none, guard none, seed 1", "redis, none, guard none, seed 2", "redis, none, guard none, seed 3", "redlock, none, guard none, seed 7",
	}
	if !slices.Equal(made, want) {
		t.Errorf("four shards make %q", made)
	}
}

// TestOutline: an unsupported cell stays empty and says why. A meaningless cell is an error.
func TestOutline(t *testing.T) {
	suite := DefaultSuite()
	for _, c := range []struct {
		cell        Place
		unsupported string
	}{
		{Place{"redis", "pause:holder", "none"}, ""},
		{Place{"redis", "clock", "none"}, ""},
		{Place{"redis", "pause:holder", "fence"}, "no fencing token"},
		{Place{"redis", "pause:holder", "ask"}, ""},
		{Place{"none", "none", "ask"}, "cannot be asked"},
		{Place{"redis", "pause:leader", "none"}, "none of these servers leads"},
		{Place{"etcd", "pause:leader", "fence"}, ""},
		{Place{"memory", "partition:holder", "none"}, "network"},
		{Place{"none", "pause:one server", "none"}, "role"},
	} {
		outline, err := c.cell.outline(suite)
		why := unsupported(err)
		switch {
		case c.unsupported == "" && err != nil:
			t.Errorf("%v: %v", c.cell, err)
		case c.unsupported == "" && outline.Options.TimeLimit-outline.Recovery < minActive:
			t.Errorf("%v: a run of %s, of which %s are for recovery", c.cell, outline.Options.TimeLimit, outline.Recovery)
		case c.unsupported != "" && !strings.Contains(why, c.unsupported):
			t.Errorf("%v: empty because of %v, want %q", c.cell, err, c.unsupported)
		}
	}
	// Consul keeps a lock of 2 s from other workers for up to 19 s.
	for fault, active := range map[string]time.Duration{"none": 10 * time.Second, "kill:holder": 10 * time.Second, "partition:holder": 24500 * time.Millisecond} {
		outline, err := Place{"consul", fault, "none"}.outline(suite)
		if got := outline.Options.TimeLimit - outline.Recovery; err != nil || got != active {
			t.Errorf("consul, %s: %s for faults, want %s; %v", fault, got, active, err)
		}
	}
	suite.TTL, suite.Renew = 5*time.Second, true
	for lock, lease := range map[string]time.Duration{"redis": 5 * time.Second, "none": 0} {
		outline, err := Place{lock, "none", "none"}.outline(suite)
		if o := outline.Options; err != nil || o.TTL != lease || o.Renew != (lease > 0) {
			t.Errorf("%s: lease %s, renewed %t, %v", lock, o.TTL, o.Renew, err)
		}
	}
	var usage *runs.UsageError
	if _, err := (Place{"radis", "none", "none"}).outline(suite); !errors.As(err, &usage) || unsupported(err) != "" {
		t.Errorf("a lock that there is not: %v", err)
	}
}

// TestThresholds compares values that are better, equal, worse and unknown with a bound.
func TestThresholds(t *testing.T) {
	var latencies stats.Histogram
	latencies.Add(2 * time.Second)
	pool := func(lost, work int64, failover stats.Histogram) checker.Pool {
		return checker.Pool{Runs: 1, Lost: lost, Acknowledged: work, Measures: checker.Measures{Work: work, Active: time.Second, Failover: failover}}
	}
	stuck := pool(0, 9, latencies)
	stuck.Stuck = 1
	session := Place{"postgres-session", "pause:holder", "none"}
	paused, calm := Place{"redis", "pause:holder", "none"}, Place{"redis", "none", "none"}
	for _, c := range []struct {
		name string
		cell Place
		t    Threshold
		pool checker.Pool
		want checker.Verdict // "" for none
	}{
		{"none lost", calm, Threshold{"lost", 0}, pool(0, 9, stats.Histogram{}), checker.Valid},
		{"one lost", calm, Threshold{"lost", 0}, pool(1, 9, stats.Histogram{}), checker.Violation},
		{"as many as allowed", calm, Threshold{"lost", 1}, pool(1, 9, stats.Histogram{}), checker.Valid},
		{"enough", calm, Threshold{"min_ops", 9}, pool(0, 9, stats.Histogram{}), checker.Valid},
		{"too few", calm, Threshold{"min_ops", 10}, pool(0, 9, stats.Histogram{}), checker.Violation},
		{"handed over in time", paused, Threshold{"failover_p99", float64(3 * time.Second)}, pool(0, 9, latencies), checker.Valid},
		{"handed over late", paused, Threshold{"failover_p99", float64(time.Second)}, pool(0, 9, latencies), checker.Violation},
		{"never handed over", paused, Threshold{"failover_p99", float64(time.Second)}, pool(0, 9, stats.Histogram{}), checker.Undecided},
		{"no failover", calm, Threshold{"failover_p99", float64(time.Second)}, pool(0, 9, stats.Histogram{}), ""},
		{"no fault to be available in", calm, Threshold{"availability", 1}, pool(0, 9, stats.Histogram{}), ""},
		{"a fault that was never in force", paused, Threshold{"availability", 1}, pool(0, 9, stats.Histogram{}), checker.Undecided},
		{"one of two never handed over", paused, Threshold{"failover_p99", float64(3 * time.Second)}, stuck, checker.Violation},
		{"the faster half handed over", paused, Threshold{"failover_p50", float64(3 * time.Second)}, stuck, checker.Valid},
		{"a lock that waits for its holder", session, Threshold{"failover_p99", float64(time.Second)}, pool(0, 9, stats.Histogram{}), ""},
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

// TestIncompleteCell: an incomplete cell can exceed an upper bound but not miss a lower bound.
func TestIncompleteCell(t *testing.T) {
	few := checker.Pool{Runs: 1, Lost: 2, Acknowledged: 9, Measures: checker.Measures{Work: 9}}
	bounds := Thresholds{{"lost", 1}, {"min_ops", 10}}
	cell := Place{"redis", "none", "none"}
	if all := bounds.judge(cell, few, true); len(all) != 2 || all[1].Verdict != checker.Violation {
		t.Errorf("of the whole: %+v", all)
	}
	if all := bounds.judge(cell, few, false); len(all) != 1 || all[0].Verdict != checker.Violation {
		t.Errorf("of a part: %+v", all)
	}
}

// TestDocumentedSuite: the suite in the documentation can be read and is written back unchanged. Its
// commented-out keys are valid too.
func TestDocumentedSuite(t *testing.T) {
	text, err := os.ReadFile("../../../docs/ci/suite.yaml")
	if err != nil {
		t.Fatal(err)
	}
	suite, err := ReadSuite(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile(`(?m)^# (expected:|  )`).ReplaceAll(text, []byte("$1"))
	if all, err := ReadSuite(bytes.NewReader(example)); err != nil || len(all.Expected) != 1 || all.expectedOf(Place{"redis", "pause:holder", "none"}) != 0 {
		t.Errorf("the example: %v, %+v", err, all.Expected)
	}
	if len(suite.places()) != 2 || len(suite.Seeds) != 6 || len(suite.Thresholds) != 4 || suite.Confirm != 2 {
		t.Errorf("it says %+v", suite)
	}
}
