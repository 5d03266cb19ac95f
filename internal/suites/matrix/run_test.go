package matrix

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// small is a comparison on embedded servers. One cell loses updates, one is saved by the fence, one has no
// faults, and one is not supported.
const small = `
locks: [memory]
faults: [none, "pause:holder", clock]
guards: [none, fence]
seeds: 1
time-limit: 9s
min-ops: 5
thresholds: {lost: 0, min_ops: 5}
`

func suiteOf(t *testing.T, text string) Suite {
	t.Helper()
	suite, err := ReadSuite(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return suite
}

func newFolder(t *testing.T, s Suite, shard suites.Shard) *Folder {
	t.Helper()
	f, err := Create(filepath.Join(t.TempDir(), "comparison"), s, shard)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// logProgress logs the progress of a comparison.
type logProgress struct{ t *testing.T }

func (s logProgress) Step(format string, args ...any) { s.t.Logf(format, args...) }
func (logProgress) Status(string, ...any)             {}

func runAll(t *testing.T, f *Folder, interrupt <-chan struct{}) (interrupted bool) {
	t.Helper()
	clustertest.StartsServers(t)
	machine := Machine{Machine: runs.Machine{Binary: clustertest.Binary(t)}, Parallel: 4, Progress: logProgress{t}}
	interrupted, err := f.Run(t.Context(), machine, interrupt)
	if err != nil {
		t.Fatal(err)
	}
	return interrupted
}

func compared(t *testing.T, f *Folder) Comparison {
	t.Helper()
	c, err := f.Comparison()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestShardsMerged makes a comparison in two parts, merges them, and resumes the complete result.
func TestShardsMerged(t *testing.T) {
	suite := suiteOf(t, small)
	var parts []*Folder
	for n := 1; n <= 2; n++ {
		part := newFolder(t, suite, suites.Shard{N: n, Of: 2})
		if runAll(t, part, nil) {
			t.Fatal("interrupted by nobody")
		}
		if c := compared(t, part); c.Missing() != 2 {
			t.Errorf("part %d lacks %d runs, want the 2 of the other", n, c.Missing())
		}
		again, err := Open(part.Path)
		if err != nil {
			t.Fatal(err)
		}
		if todo, err := again.todo(); err != nil || len(todo) > 0 {
			t.Errorf("part %d is complete, and would make %d runs", n, len(todo))
		}
		parts = append(parts, again)
	}
	whole, err := Merge(t.Context(), filepath.Join(t.TempDir(), "whole"), parts)
	if err != nil {
		t.Fatal(err)
	}
	c := compared(t, whole)
	if err := whole.WriteReports(c); err != nil {
		t.Fatal(err)
	}
	if c.Missing() != 0 || c.Verdict != checker.Violation {
		t.Errorf("the whole lacks %d runs and is %s", c.Missing(), c.Verdict)
	}
	for _, want := range []struct {
		fault, guard string
		verdict      checker.Verdict
	}{
		{"none", "none", checker.Valid}, {"none", "fence", checker.Valid},
		{"pause:holder", "none", checker.Violation}, {"pause:holder", "fence", checker.Valid},
		{"clock", "none", ""},
	} {
		for _, cell := range c.Cells {
			if cell.Fault != want.fault || cell.Guard != want.guard {
				continue
			}
			if cell.Verdict != want.verdict || (want.verdict == "") != (cell.Unavailable != "") {
				t.Errorf("%s, guard %s: %q (%s), want %q", want.fault, want.guard, cell.Verdict, cell.Unavailable, want.verdict)
			}
			for _, r := range cell.Runs {
				if _, err := os.Stat(filepath.Join(whole.Path, r.Folder, runs.HistoryFile)); err != nil {
					t.Errorf("%s, guard %s: %v", want.fault, want.guard, err)
				}
			}
		}
	}
}

// TestInterrupted: an interrupted run is not counted, and is made when the comparison resumes.
func TestInterrupted(t *testing.T) {
	f := newFolder(t, suiteOf(t, "locks: [memory]\nfaults: [none]\nguards: [none]\ntime-limit: 9s\nmin-ops: 5"), suites.Shard{})
	stopped := make(chan struct{})
	close(stopped)
	if !runAll(t, f, stopped) {
		t.Error("it was not interrupted")
	}
	if c := compared(t, f); c.Missing() != 1 || c.Verdict != checker.Undecided {
		t.Errorf("after the interruption %d runs are missing, the verdict is %q", c.Missing(), c.Verdict)
	}
	again, err := Open(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if runAll(t, again, nil) {
		t.Error("interrupted by nobody")
	}
	if c := compared(t, again); c.Missing() != 0 || c.Verdict != checker.Valid {
		t.Errorf("gone on with, %d runs are missing, the verdict is %q", c.Missing(), c.Verdict)
	}
}

// TestFailedRunIsMadeAgain: a run that could not be made shows as broken and is repeated when the comparison
// resumes. A run that could be made is not repeated.
func TestFailedRunIsMadeAgain(t *testing.T) {
	f := newFolder(t, suiteOf(t, "locks: [memory]\nfaults: [none]\nguards: [none, fence]\ntime-limit: 9s"), suites.Shard{})
	machine := Machine{Machine: runs.Machine{Binary: filepath.Join(t.TempDir(), "nothing")}, Progress: logProgress{t}}
	if _, err := f.Run(context.Background(), machine, nil); err != nil {
		t.Fatal(err)
	}
	if c := compared(t, f); c.Verdict != checker.Broken {
		t.Errorf("without a binary the comparison is %q", c.Verdict)
	}
	if todo := todoOf(t, f); len(todo) != 2 {
		t.Errorf("%d runs would be made, want both again", len(todo))
	}
}

// folderWithRun is a comparison with one run in its ledger. The run's folder holds one file.
func folderWithRun(t *testing.T, shard suites.Shard, e entry) *Folder {
	t.Helper()
	f := newFolder(t, suiteOf(t, "locks: [memory]\nfaults: [none]\nguards: [none]"), shard)
	e.Lock, e.Fault, e.Guard, e.Seed = "memory", "none", "none", 1
	if e.Run != "" && filepath.IsLocal(e.Run) {
		if err := os.MkdirAll(filepath.Join(f.Path, e.Run), 0o755); err != nil {
			t.Fatal(err)
		}
		text := `{"schema":1,"header":{},"results":{"verdict":"broken","sentence":"It failed."}}`
		if err := os.WriteFile(filepath.Join(f.Path, e.Run, runs.ResultsFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.ledger.Add(e); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestMergeOfBroken: merging copies a broken run, and the merged comparison has it as broken.
func TestMergeOfBroken(t *testing.T) {
	part := folderWithRun(t, suites.Shard{N: 1, Of: 2}, entry{Recorded: suites.Recorded{Run: "runs/x", Failed: "It failed."}})
	whole, err := Merge(t.Context(), filepath.Join(t.TempDir(), "whole"), []*Folder{part, folderWithRun(t, suites.Shard{N: 2, Of: 2}, entry{Recorded: suites.Recorded{Failed: "no engine"}})})
	if err != nil {
		t.Fatal(err)
	}
	if c := compared(t, whole); c.Verdict != checker.Broken || c.Missing() != 0 {
		t.Errorf("%q, %d runs missing", c.Verdict, c.Missing())
	}
}

// TestMergeOfTwice: two parts made the same run, and nobody knows which one is to count. A failed run may be
// repeated by another part.
func TestMergeOfTwice(t *testing.T) {
	good, failed := entry{Recorded: suites.Recorded{Run: "runs/x"}}, entry{Recorded: suites.Recorded{Failed: "no engine"}}
	for _, c := range []struct {
		name string
		a, b entry
		fine bool
	}{
		{"both are there", good, good, false},
		{"the first failed", failed, good, true},
		{"the second failed", good, failed, true},
	} {
		path := filepath.Join(t.TempDir(), "whole")
		whole, err := Merge(t.Context(), path, []*Folder{folderWithRun(t, suites.Shard{N: 1, Of: 2}, c.a), folderWithRun(t, suites.Shard{N: 2, Of: 2}, c.b)})
		if (err == nil) != c.fine {
			t.Errorf("%s: %v", c.name, err)
		}
		if left, _ := filepath.Glob(path + "*"); (len(left) > 0) != c.fine {
			t.Errorf("%s: %v is there", c.name, left)
		}
		if !c.fine {
			continue
		}
		if e, _ := whole.latestRun(Place{"memory", "none", "none"}, 1); e.Failed != "" {
			t.Errorf("%s: the one that failed counts", c.name)
		}
	}
}

// TestMergeOfLink: merging does not copy files outside a part.
func TestMergeOfLink(t *testing.T) {
	part := folderWithRun(t, suites.Shard{N: 1, Of: 2}, entry{Recorded: suites.Recorded{Run: "runs/x"}})
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(part.file("runs/x")), os.Symlink(outside, part.file("runs/x"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Merge(t.Context(), filepath.Join(t.TempDir(), "whole"), []*Folder{part}); err == nil {
		t.Error("it was")
	}
}

func TestOpen(t *testing.T) {
	suite := suiteOf(t, small)
	f := newFolder(t, suite, suites.Shard{N: 2, Of: 3})
	if err := f.ledger.Add(entry{Place: Place{"memory", "none", "none"}, Seed: 1, Recorded: suites.Recorded{Run: "runs/x"}}); err != nil {
		t.Fatal(err)
	}
	ledger := filepath.Join(f.Path, ledgerFile)
	whole, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, ledger string
		entries      int
		wrong        bool
	}{
		{"as it was written", string(whole), 1, false},
		{"cut off in its last line", string(whole) + `{"lock":"mem`, 1, false},
		{"spoiled in the middle", strings.Replace(string(whole), `{"lock"`, `{"lo`, 1) + "\n", 0, true},
		{"of a later schema", strings.Replace(string(whole), `"schema":1`, `"schema":2`, 1), 0, true},
		{"leading out of the folder", strings.Replace(string(whole), "runs/x", "../x", 1), 0, true},
		{"leading out of the folder, failed", strings.Replace(string(whole), `"runs/x"`, `"../x","failed":"so"`, 1), 0, true},
	} {
		if err := os.WriteFile(ledger, []byte(c.ledger), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := Open(f.Path)
		switch {
		case c.wrong && err == nil:
			t.Errorf("%s: it is taken", c.name)
		case !c.wrong && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case !c.wrong && (len(got.ledger.Entries()) != c.entries || got.Shard != f.Shard):
			t.Errorf("%s: %d entries, shard %s", c.name, len(got.ledger.Entries()), got.Shard)
		}
		if c.wrong || err != nil {
			continue
		}
		if text, err := os.ReadFile(ledger); err != nil || string(text) != c.ledger {
			t.Errorf("%s: it is changed by being opened: %v", c.name, err)
		}
		// An added entry can be read back, whatever truncated line precedes it.
		if err := got.ledger.Add(entry{Place: Place{"memory", "clock", "none"}, Seed: 1, Recorded: suites.Recorded{Failed: strings.Repeat("x", 1<<17)}}); err != nil {
			t.Fatal(err)
		}
		if again, err := Open(f.Path); err != nil || len(again.ledger.Entries()) != c.entries+1 {
			t.Errorf("%s, and one more: %v", c.name, err)
		}
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("an empty folder is taken for a comparison")
	}
	if _, err := Create(f.Path, suite, suites.Shard{}); err == nil {
		t.Error("a comparison is written over")
	}
}

func TestMergeOfDifferent(t *testing.T) {
	a := newFolder(t, suiteOf(t, "locks: [memory]"), suites.Shard{N: 1, Of: 2})
	b := newFolder(t, suiteOf(t, "locks: [none]"), suites.Shard{N: 2, Of: 2})
	if _, err := Merge(t.Context(), filepath.Join(t.TempDir(), "whole"), []*Folder{a, b}); err == nil {
		t.Error("parts that compare something else are put together")
	}
	c := newFolder(t, suiteOf(t, "locks: [memory]"), suites.Shard{N: 2, Of: 2})
	if _, err := Merge(t.Context(), filepath.Join(t.TempDir(), "whole"), []*Folder{a, c}); err != nil {
		t.Errorf("parts that compare the same are not: %v", err)
	}
	d := newFolder(t, suiteOf(t, "locks: [memory]"), suites.Shard{N: 3, Of: 3})
	if _, err := Merge(t.Context(), filepath.Join(t.TempDir(), "whole"), []*Folder{a, d}); err == nil {
		t.Error("parts of two and of three are put together")
	}
}

func TestEstimate(t *testing.T) {
	for n, want := range map[int]string{1: "1 run: at most 6s if ", 2: "2 runs: at most 6s if "} {
		if got := estimate(n, 6*time.Second, time.Time{}); !strings.HasPrefix(got, want) {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// TestRoundRobin: whenever time runs out, no lock and no random fault lacks runs that others have had twice.
// The locks take turns seldom enough to reuse their servers.
func TestRoundRobin(t *testing.T) {
	suite := suiteOf(t, "locks: [memory, file, queue]\nfaults: [at-rest, holder-paused, none]\nseeds: 20")
	made, changes, last := make(map[string]int), 0, ""
	todo := todoOf(t, &Folder{Suite: suite})
	for i, p := range todo {
		who, cells := "random faults", 3
		if p.isAttack() {
			who, cells = p.Lock, 2
		}
		if who != last {
			changes, last = changes+1, who
		}
		if p.turn != made[who]/cells {
			t.Fatalf("run %d of %s is of turn %d, after %d", i, who, p.turn, made[who])
		}
		made[who]++
		for _, other := range []string{"memory", "file", "queue", "random faults"} {
			if have, others := made[who]/cells, made[other]/2; have > 2*others+1 && other != "random faults" {
				t.Errorf("after %d runs %s has %d trials a cell, and %s %d", i+1, who, have, other, others)
			}
		}
	}
	if len(made) != 4 || made["memory"] != 40 || made["queue"] != 40 || made["random faults"] != 60 || changes > 5*4 {
		t.Errorf("%v, in %d changes", made, changes)
	}
	inOrder(todo, false)
	locks := slices.CompactFunc(todo, func(a, b planned) bool { return a.isAttack() && b.isAttack() && a.Lock == b.Lock })
	if len(locks) != 3+made["random faults"] {
		t.Errorf("without a budget the trials of a lock are not made together: %v", locks)
	}
}
