package matrix

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/nemesis"
	"lockcheck/reports"
)

// TestAttacks: each attack has a form for every lock, or says in at most two words why it has none.
func TestAttacks(t *testing.T) {
	clientsOfAll := defaultLocks()
	for _, a := range Attacks() {
		if _, err := nemesis.ParseRequests(a.Name); err == nil || a.Summary == "" {
			t.Errorf("%q, %q: the name is a random fault, or there is no summary", a.Name, a.Summary)
		}
		if _, err := nemesis.ParseRequests(a.Fault); err != nil {
			t.Errorf("%s: %v", a.Name, err)
		}
		applies := 0
		for _, lock := range clientsOfAll {
			place := Place{lock, a.Name, "none"}
			outline, err := place.outline(DefaultSuite())
			var word cannotApply
			switch {
			case err == nil:
				applies++
			case !errors.As(err, &word) || word == unsupportedWord || len(strings.Fields(string(word))) > 2:
				t.Errorf("%s: %v", place, err)
			}
			if o := outline.Options; err == nil && (!o.EndRecovered || !o.UntilViolation || !o.ResultsOnly || o.Seed != 1) {
				t.Errorf("%s is no trial: %+v", place, o)
			}
		}
		if applies == 0 {
			t.Errorf("%s applies to no lock", a.Name)
		}
	}
}

// TestForms: the form of an attack fits the servers of the lock. The lock can have its lease, and sections
// stay within the lease if nothing renews it.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		lock, attack, steps, word string
	}{
		{"memory", "holder-paused", "holder", ""},
		{"memory", "holder-cut", "", "embedded"},
		{"file", "server-restarted", "", "no server"},
		{"redis", "clock-stepped", "one", ""},
		{"redlock", "clock-stepped", "w1 n3 w2", ""},
		{"etcd", "clock-stepped", "leader", ""},
		{"etcd", "renewal-unanswered", "actor", ""},
		{"redis", "leader-cut-at-grant", "", "one server"},
		{"redlock", "leader-cut-at-grant", "", "no leader"},
		{"mariadb", "renewal-unanswered", "", "no renewal"},
		{"mariadb", "holder-cut", "holder", ""},
	} {
		place := Place{c.lock, c.attack, "none"}
		outline, err := place.outline(DefaultSuite())
		var targets []string
		for _, step := range outline.Schedule.Steps {
			targets = append(targets, step.Target)
		}
		if got := strings.Join(targets, " "); got != c.steps || unsupported(err) != c.word {
			t.Errorf("%s: steps of %q, %v; want %q, %q", place, got, err, c.steps, c.word)
		}
		info, _ := clients.ByName(c.lock)
		o := outline.Options
		if lease := info.Lease(o.TTL); err == nil && lease > 0 && !info.Session && !o.Renew && o.Section.Max > lease {
			t.Errorf("%s: sections of %s outlast a lease of %s that nothing renews", place, o.Section.Max, lease)
		}
	}
}

// TestRandomInTurn: successive trials with random faults take the faults that the lock supports in turn.
func TestRandomInTurn(t *testing.T) {
	place := Place{"file", "random", "none"}
	outline, err := place.outline(DefaultSuite())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for seed := range uint64(3) {
		seeded, err := place.withSeed(outline, seed+1)
		if err != nil || seeded.Options.Seed != seed+1 {
			t.Fatalf("%+v, %v", seeded.Options, err)
		}
		got = append(got, seeded.Options.Nemesis)
	}
	if want := "pause:holder kill:holder pause:holder"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// attacked is a comparison with simulated results. Of twenty trials, memory breaks in five and loses updates,
// memory-redlock holds in all, file is undecided in twelve, and queue is undecided in three.
func attacked(t *testing.T) *Folder {
	t.Helper()
	f := &fakeRuns{t: t, verdict: func(o runs.Options) checker.Verdict {
		switch {
		case o.Lock == "memory" && o.Seed%4 == 0:
			return checker.Violation
		case o.Lock == "file" && o.Seed > 8, o.Lock == "queue" && o.Seed > 17:
			return checker.Undecided
		}
		return checker.Valid
	}}
	folder := newFolder(t, suiteOf(t, "locks: [memory, memory-redlock, file, queue]\nfaults: [holder-paused, leader-cut-at-grant]"), suites.Shard{})
	c := f.run(f.machine(), folder)
	if len(f.made) != 80 || c.Missing() != 0 {
		t.Fatalf("%d trials, %d missing; want 80", len(f.made), c.Missing())
	}
	again, err := Open(folder.Path)
	if err != nil {
		t.Fatal(err)
	}
	if todo := todoOf(t, again); len(todo) > 0 {
		t.Errorf("it is complete, and would make %d trials", len(todo))
	}
	return again
}

// TestCounts: a cell says in how many trials the attack broke the lock, or the rate that cannot be ruled out.
// A trial whose fault hit no holder does not count as held.
func TestCounts(t *testing.T) {
	folder := attacked(t)
	c := compared(t, folder)
	for _, want := range []struct {
		lock                         string
		verdict                      checker.Verdict
		word, short, figure, details string
	}{
		{"memory", checker.Violation, "lost", "5/20", "5/20", "in 5 of 20 trials"},
		{"memory-redlock", checker.Valid, "held", "≤17%", "≤17%", "breaks in ≤ 17 %: 20 trials"},
		{"file", checker.Undecided, "undecided", "undec.", "", ""},
		{"queue", checker.Valid, "held", "≤20%", "≤20%", "breaks in ≤ 20 %: 17 trials, 3 undecided"},
	} {
		cell := c.cell(want.lock, "none", "holder-paused")
		if view := cell.view(); cell.Verdict != want.verdict || view.Text != want.word || view.Short != want.short || view.More != want.figure ||
			!strings.HasPrefix(view.Title, want.details) {
			t.Errorf("%s: %s, %q, %q, %q, %q", want.lock, cell.Verdict, view.Text, view.Short, view.More, view.Title)
		}
		if cell = c.cell(want.lock, "none", "leader-cut-at-grant"); cell.word() != map[bool]string{true: "no server", false: "embedded"}[want.lock == "file"] || len(cell.Runs) > 0 {
			t.Errorf("%s, which has no leader: %q", want.lock, cell.word())
		}
	}
	if c.Verdict != checker.Violation {
		t.Errorf("the whole is %s", c.Verdict)
	}
}

// TestByMachine: a section that outlasts its lease says nothing about the attack if no fault was exercised or
// the machine was late.
func TestByMachine(t *testing.T) {
	finding := func(causes ...string) checker.Finding {
		f := checker.Finding{Property: checker.NoLostUpdate, Verdict: checker.Violation, Required: true, Causes: map[string]int64{}}
		for _, cause := range causes {
			f.Causes[cause]++
		}
		return f
	}
	met := []checker.FaultCoverage{{Applied: true, Proven: true, Exercised: true}}
	for _, c := range []struct {
		name     string
		late     bool
		faults   []checker.FaultCoverage
		findings []checker.Finding
		want     bool
	}{
		{"outlasted without a fault", false, nil, []checker.Finding{finding(checker.CauseOutlasted)}, true},
		{"outlasted under a fault", false, met, []checker.Finding{finding(checker.CauseOutlasted)}, false},
		{"outlasted under a fault on a late machine", true, met, []checker.Finding{finding(checker.CauseOutlasted)}, true},
		{"outlasted, and paused", true, met, []checker.Finding{finding(checker.CauseOutlasted, checker.CausePaused)}, false},
		{"outlasted, and another property", true, met, []checker.Finding{finding(checker.CauseOutlasted), finding()}, false},
		{"nothing", true, met, nil, false},
	} {
		if got := byMachine(checker.Results{Faults: c.faults, Findings: c.findings}, c.late); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// TestLateTrial: a lock that held while the machine was late did not withstand the attack. A lock that broke
// still counts, and a trial without a fault has no moment to miss.
func TestLateTrial(t *testing.T) {
	faults := []checker.FaultCoverage{{Applied: true, Proven: true, Exercised: true}}
	late := entry{Place: Place{Lock: "memory", Fault: "holder-paused", Guard: "none"}, Late: true}
	for verdict, want := range map[checker.Verdict]string{checker.Valid: tooLate, checker.Violation: ""} {
		if got := late.whyUncounted(checker.Results{Verdict: verdict, Faults: faults}); got != want {
			t.Errorf("%s: %q, want %q", verdict, got, want)
		}
	}
	if got := late.whyUncounted(checker.Results{Verdict: checker.Valid}); got != "" {
		t.Errorf("without a fault: %q", got)
	}
}

// TestExcusedTrials: a threshold that accepts violations does not mark a lock as held if every trial broke
// it.
func TestExcusedTrials(t *testing.T) {
	broken := Cell{Place: Place{Lock: "memory", Fault: "holder-paused", Guard: "none"}, Verdict: checker.Valid}
	for range 20 {
		broken.Runs = append(broken.Runs, Run{Verdict: checker.Violation})
	}
	if broken.word() != "valid" || broken.short() != "20/20" {
		t.Errorf("%q, %q", broken.word(), broken.short())
	}
}

// TestShownByTrials: the command that shows a break includes the trial that broke the lock.
func TestShownByTrials(t *testing.T) {
	place := Place{Lock: "memory", Fault: "holder-paused", Guard: "cas"}
	for seed, want := range map[uint64]string{20: "--guards cas", 37: "--guards cas --trials 37"} {
		if got := strings.Join(place.command(DefaultSuite(), runs.Outline{}, seed), " "); !strings.HasSuffix(got, want) {
			t.Errorf("seed %d: %s", seed, got)
		}
	}
}

// TestIneffective: a suite with attacks only may not set a key that affects only random faults.
func TestIneffective(t *testing.T) {
	for text, refused := range map[string]bool{
		"locks: [memory]\nttl: 5s\n":                                true,
		"locks: [memory]\nfaults: [holder-paused]\nrenew: true\n":   true,
		"locks: [memory]\nfaults: [holder-paused, none]\nttl: 5s\n": false,
		"locks: [memory]\nfaults: [holder-paused]\nseeds: [1, 2]\n": false,
	} {
		_, err := ReadSuite(strings.NewReader(text))
		if got := err != nil && strings.Contains(err.Error(), "only random faults take it"); got != refused || err != nil && !refused {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestNoRow: a lock without any cell is listed with the reason.
func TestNoRow(t *testing.T) {
	c := Comparison{Locks: []string{"redis"}, Faults: []string{"leader-cut-at-grant"}, Guards: []string{"none"}}
	c.Cells = []Cell{{Place: Place{Lock: "redis", Fault: "leader-cut-at-grant", Guard: "none"}, Unavailable: "one server"}}
	if text := written(t, terminalOf(100), c); !strings.Contains(text, "redis (one server)") {
		t.Error(text)
	}
}

// TestKeptTrials: history and page are kept for one trial that breaks the lock. All other trials keep only
// their results.
func TestKeptTrials(t *testing.T) {
	folder := attacked(t)
	histories, err := filepath.Glob(folder.file(filepath.Join(runsFolder, "*", runs.HistoryFile)))
	if err != nil || len(histories) != 1 {
		t.Fatalf("%d histories, %v", len(histories), err)
	}
	var linked []string
	for _, r := range compared(t, folder).cell("memory", "none", "holder-paused").Runs {
		if r.Folder != "" {
			linked = append(linked, filepath.Dir(folder.file(filepath.Join(r.Folder, runs.HistoryFile))))
		}
	}
	if len(linked) != 1 || linked[0] != filepath.Dir(histories[0]) {
		t.Errorf("linked are %v, kept is %v", linked, histories)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(histories[0]), runs.ReportFile)); err != nil {
		t.Error(err)
	}
}

// TestRanking: on every page the lock that breaks least comes first. The command that shows a break follows;
// it is a reproduction if there is one.
func TestRanking(t *testing.T) {
	c := compared(t, attacked(t))
	rows := c.tables()[1].(reports.Table).Rows
	var order []string
	for _, row := range rows {
		order = append(order, row.Cells[0].Text+" "+row.Cells[1].Text)
	}
	if got, want := strings.Join(order, ", "), "memory-redlock 0 of 1, queue 0 of 1, memory 1 of 1, file –"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	const own = "lockcheck compare --locks memory --faults holder-paused"
	for _, write := range []func(io.Writer, Comparison) error{terminalOf(100), markdownOf, htmlOf, summaryOf} {
		text := written(t, write, c)
		if !strings.Contains(text, own) || !strings.Contains(text, "memory-redlock") || strings.Contains(text, "--seed 4") {
			t.Errorf("%q is missing in\n%s", own, text)
		}
	}
	for i := range c.Cells {
		if c.Cells[i].Verdict == checker.Violation {
			c.Cells[i].Repro, c.Cells[i].Violated = []string{"lockcheck", "repro", "holder-pause-memory"}, []checker.Property{checker.FencingOrder}
		}
	}
	text := written(t, terminalOf(100), c)
	if !strings.Contains(text, "memory, holder-paused, guard none: fencing-order violated in 5 of 20 trials") {
		t.Errorf("it does not say what broke:\n%s", text)
	}
	if strings.Contains(text, own) || !strings.Contains(text, "lockcheck repro holder-pause-memory") {
		t.Errorf("the reproduction is missing in\n%s", text)
	}
}

// TestAttackEmbedded: an aimed pause breaks the embedded lock repeatedly, and without a fault the lock holds.
func TestAttackEmbedded(t *testing.T) {
	folder := newFolder(t, suiteOf(t, "locks: [memory]\nfaults: [holder-paused, at-rest]\nseeds: 3"), suites.Shard{})
	runAll(t, folder, nil)
	c := compared(t, folder)
	paused, atRest := c.cell("memory", "none", "holder-paused"), c.cell("memory", "none", "at-rest")
	if violations, _ := paused.counts(); violations == 0 || paused.word() != "lost" || paused.Pool.Lost == 0 {
		t.Errorf("paused: %s, %s", paused.word(), paused.note())
	}
	if violations, decided := atRest.counts(); violations > 0 || decided == 0 {
		t.Errorf("at rest: %s, %s", atRest.word(), atRest.note())
	}
}
