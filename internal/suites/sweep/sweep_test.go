package sweep

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/runs"
	"lockcheck/reports"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// TestPausesCount: a pause counts if it was proven and hit a holder. It is an incident if that holder
// overlaps with a later holder before the next pause.
func TestPausesCount(t *testing.T) {
	pause := func(begin int64, worker string, met bool) checker.FaultCoverage {
		return checker.FaultCoverage{Begin: begin, Targets: []string{worker}, Applied: true, Proven: true, Exercised: met}
	}
	overlap := func(from int64, earlier, later string) checker.Incident {
		return checker.Incident{From: from, Workers: []string{earlier, later}}
	}
	for _, c := range []struct {
		name              string
		faults            []checker.FaultCoverage
		overlaps          []checker.Incident
		pauses, incidents int64
	}{
		{"none", nil, nil, 0, 0},
		{"kept apart", []checker.FaultCoverage{pause(10, "w1", true)}, nil, 1, 0},
		{"overlap", []checker.FaultCoverage{pause(10, "w1", true)}, []checker.Incident{overlap(20, "w1", "w2")}, 1, 1},
		{"met nobody", []checker.FaultCoverage{pause(10, "w1", false)}, []checker.Incident{overlap(20, "w1", "w2")}, 0, 0},
		{"of another holder", []checker.FaultCoverage{pause(10, "w1", true)}, []checker.Incident{overlap(20, "w2", "w1")}, 1, 0},
		{"before the pause", []checker.FaultCoverage{pause(10, "w1", true)}, []checker.Incident{overlap(5, "w1", "w2")}, 1, 0},
		{
			"of the second alone", []checker.FaultCoverage{pause(10, "w1", true), pause(50, "w1", true)},
			[]checker.Incident{overlap(60, "w1", "w2"), overlap(70, "w1", "w3")}, 2, 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m tally
			m.add(checker.Results{
				Verdict: checker.Violation, Faults: c.faults, End: 100,
				Findings: []checker.Finding{{Property: checker.MutualExclusion, Violations: c.overlaps}},
			}, "run")
			if m.pauses != c.pauses || m.incidents != c.incidents {
				t.Errorf("%d of %d pauses, want %d of %d", m.incidents, m.pauses, c.incidents, c.pauses)
			}
		})
	}
	var broken tally
	broken.add(checker.Results{Verdict: checker.Broken, Faults: []checker.FaultCoverage{pause(10, "w1", true)}}, "run")
	if broken.pauses != 0 || broken.failed != 1 {
		t.Errorf("a broken trial is %+v", broken)
	}
}

// TestNext: the first grid comes first, then cells whose corners differ, then repetitions there.
func TestNext(t *testing.T) {
	second := span(time.Second, time.Second)
	f := &Folder{Plan: plan(second, span(100*time.Millisecond, 10*time.Second), span(50*time.Millisecond, 50*time.Millisecond), 3), points: make(map[Point]*tally)}
	measure := func(limit time.Duration) (asked []time.Duration) {
		for _, trial := range f.nextTrials() {
			asked = append(asked, trial.point.Pause)
			m := f.points[trial.point]
			if m == nil {
				m = new(tally)
				f.points[trial.point] = m
			}
			m.pauses += 10
			if trial.point.Pause > limit {
				m.incidents += 10
			}
		}
		slices.Sort(asked)
		return asked
	}
	const limit = 500 * time.Millisecond
	for round, want := range [][]time.Duration{
		{100 * time.Millisecond, time.Second, 10 * time.Second},
		{320 * time.Millisecond},
		{560 * time.Millisecond},
		{420 * time.Millisecond},
		{420 * time.Millisecond, 560 * time.Millisecond},
		nil,
	} {
		if got := measure(limit); !slices.Equal(got, want) {
			t.Errorf("round %d asks for %v, want %v", round+1, got, want)
		}
	}
	f.points = map[Point]*tally{}
	if first, second := measure(time.Hour), measure(time.Hour); len(first) != 3 || second != nil {
		t.Errorf("where nothing differs: %v, then %v", first, second)
	}
	for point := range f.points {
		f.points[point] = &tally{failed: maxTries}
	}
	if again := f.nextTrials(); again != nil {
		t.Errorf("points that cannot be met are tried for ever: %v", again)
	}
}

// TestAffordable: a trial that the budget does not cover is not begun.
func TestAffordable(t *testing.T) {
	trials := []trial{{takes: 3 * time.Second}, {takes: time.Second}, {takes: 2 * time.Second}}
	for left, want := range map[time.Duration]int{0: 0, time.Second: 1, 5 * time.Second: 2, 6 * time.Second: 3} {
		if got := affordable(slices.Clone(trials), left); len(got) != want {
			t.Errorf("%s pays for %d, want %d", left, len(got), want)
		}
	}
}

// TestSweep sweeps the embedded lock with one lease that no pause outlasts and one that every pause does. It
// stops the sweep, resumes it, and reads the result.
func TestSweep(t *testing.T) {
	clustertest.StartsServers(t)
	p, err := Plan{
		Lock: "memory", TTL: span(200*time.Millisecond, 5*time.Second), Pause: span(time.Second, time.Second),
		Section: span(30*time.Millisecond, 30*time.Millisecond), Steps: 2, Seed: 1,
	}.Ready()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sweep")
	folder, err := Create(path, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, p); err == nil {
		t.Error("a sweep was overwritten")
	}
	if interrupted, err := folder.Run(t.Context(), Machine{Parallel: 1, Progress: runs.Silent{}}, nil); interrupted || err != nil || len(folder.points) > 0 {
		t.Fatalf("without a budget: %v, %v, %d points", interrupted, err, len(folder.points))
	}
	m := Machine{Machine: runs.Machine{Binary: clustertest.Binary(t)}, Parallel: 2, Progress: runs.Silent{}}
	if _, err := folder.round(t.Context(), m, folder.nextTrials(), nil); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	swept := again.Sweep()
	if len(swept.Points) != 2 || swept.Points[0].Incidents == 0 || swept.Points[1].Incidents != 0 || swept.Points[1].Pauses == 0 {
		t.Fatalf("points: %+v", swept.Points)
	}
	if err := again.WriteReports(swept); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := swept.Terminal(0).WriteTerminal(&text, reports.TerminalOptions{}); err != nil || !strings.Contains(text.String(), "#") {
		t.Errorf("%v\n%s", err, text.String())
	}
}
