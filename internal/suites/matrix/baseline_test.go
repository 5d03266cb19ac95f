package matrix

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/stats"
)

// heldRuns is a cell of n runs with 20 faults each. In each run, hit of the faults were followed by lost
// updates.
func heldRuns(n int, hit int64, wait time.Duration, properties ...checker.Property) Cell {
	c := Cell{Place: Place{"redis", "pause:holder", "none"}}
	for range n {
		s := checker.Sample{Updates: stats.Count{N: 2000}, Over: checker.OverFaults, Faults: stats.Count{K: hit, N: 20}, Wait: &wait}
		for i := range int64(20) {
			u := stats.Count{N: 100}
			if i < hit {
				u.K = 100
			}
			s.Losses = append(s.Losses, u)
		}
		s.Updates = stats.Sum(s.Losses)
		r := Run{
			Verdict: checker.Valid, Rest: checker.Valid, Sample: &s,
			Command: strings.Fields("lockcheck test --lock redis --time-limit 9s --renew --seed 1"),
		}
		if len(properties) > 0 {
			r.Verdict, r.Violated = checker.Violation, properties
		}
		c.Runs = append(c.Runs, r)
	}
	c.judge()
	return c
}

// someOverlaps is a cell in which a threshold replaces the property of mutual exclusion.
func someOverlaps(n int64) Cell {
	c := heldRuns(5, 0, time.Second, checker.MutualExclusion)
	c.Excused, c.Pool.Overlaps.UsesAfterExpiry = []checker.Property{checker.MutualExclusion}, n
	c.Pool.Measures.Acquire.Add(time.Millisecond)
	overlaps, _ := figureByName("overlaps")
	c.Violated, c.Thresholds = nil, []ThresholdResult{overlaps.judge(9, c.Pool)}
	c.judge()
	return c
}

// byAttack is a cell whose trials come from an attack with the given digest.
func byAttack(digest string) Cell {
	c := heldRuns(5, 0, time.Second)
	c.Attack = digest
	return c
}

func mustFail(c Cell) Cell {
	c.Counts = checker.Violation
	return c
}

// TestBaseline: what is bad in both passes, and what is worse fails. What cannot be decided is undecided, and
// a cell with too few runs keeps its own verdict.
func TestBaseline(t *testing.T) {
	const loss, overlap = checker.NoLostUpdate, checker.MutualExclusion
	second, third := time.Second, 3*time.Second
	good, bad := heldRuns(5, 0, second), heldRuns(5, 4, second, loss)
	open := heldRuns(5, 0, second)
	open.Runs[0].Verdict = checker.Undecided
	open.judge()
	undecided := heldRuns(1, 0, second)
	undecided.Runs[0].Verdict = checker.Undecided
	undecided.judge()
	other := heldRuns(5, 0, second)
	other.Runs[0].Command = strings.Fields("lockcheck test --lock redis --time-limit 20s --seed 1 --min-ops 9")
	old := heldRuns(5, 0, second)
	old.Runs[0].Command = nil
	never := heldRuns(5, 0, second)
	for i := range never.Runs {
		never.Runs[i].Verdict = checker.Undecided
	}
	never.judge()
	slow := heldRuns(5, 0, second)
	slow.Thresholds = []ThresholdResult{{Name: "wait_p99", Bound: "500ms", Value: "1s", Verdict: checker.Violation}}
	slow.judge()
	for _, c := range []struct {
		name        string
		before, now Cell
		want        checker.Verdict
		said        string
	}{
		{"good in both", good, good, checker.Valid, "no worse than the baseline"},
		{"bad in both", bad, bad, checker.Valid, "no worse than the baseline"},
		{"violated since", good, heldRuns(5, 1, second, loss), checker.Violation, "which did not have no-lost-update"},
		{"something else violated, too", bad, heldRuns(5, 4, second, loss, overlap), checker.Violation, "which did not have mutual-exclusion"},
		{"more lost", bad, heldRuns(5, 14, second, loss), checker.Violation, "lost updates 20 % before, 70 % now (p = 5e-05, of 100 faults before and 100 now)"},
		{"less lost", heldRuns(5, 14, second, loss), bad, checker.Valid, "better"},
		{"one burst more", bad, heldRuns(5, 5, second, loss), checker.Valid, "a difference would show from"},
		{"slower", good, heldRuns(5, 0, third), checker.Violation, "wait p99 1 s before, 3 s now (p = 0.0079, of 5 runs before and 5 now)"},
		{"a threshold missed in both", slow, slow, checker.Violation, "which did not have wait_p99"}, // the baseline's pool has no waits
		{"too few runs", heldRuns(2, 0, second), heldRuns(2, 0, second), checker.Valid, "1 cell with too few runs to compare wait p99 with the baseline: it takes 4 runs with such a figure on both sides, or 5 in the baseline next to those of now"},
		{"too few runs, bad in both", heldRuns(1, 4, second, loss), heldRuns(1, 4, second, loss), checker.Violation, "no worse than the baseline in the figures that can be compared: lost updates"},
		{"too few runs, violated since", heldRuns(1, 0, second), heldRuns(1, 1, second, loss), checker.Violation, "worse than the baseline, which did not have no-lost-update"},
		{"too few runs, undecided", heldRuns(1, 0, second), undecided, checker.Undecided, "no run was decided"},
		{"many before, few now", heldRuns(60, 0, second), heldRuns(1, 0, third), checker.Violation, "worse"},
		{"undecided", good, open, checker.Undecided, ""},
		{"good again", bad, good, checker.Valid, "better"},
		{"not in the baseline", Cell{Place: Place{Lock: "etcd"}}, bad, checker.Violation, "not in the baseline"},
		{"not run in the baseline", Cell{Place: Place{"redis", "pause:holder", "none"}}, good, checker.Valid, "not in the baseline"},
		{"made otherwise", other, good, checker.Undecided, "cannot be compared with the baseline: --time-limit 20s before, --time-limit 9s now, --renew now"},
		{"made otherwise, and violated", other, bad, checker.Violation, "cannot be compared"},
		{"many more overlaps than a bound", someOverlaps(2), someOverlaps(50), checker.Violation, "which did not have overlaps is 50, bound 9"},
		{"some more overlaps than a bound, as before", someOverlaps(20), someOverlaps(50), checker.Valid, "no worse than the baseline"},
		{"was to fail, and did not", bad, mustFail(good), checker.Violation, "better"},
		{"slower than an undecided baseline", never, heldRuns(5, 0, third), checker.Valid, "never decided there"},
		{"by the same attack", byAttack("a"), byAttack("a"), checker.Valid, "no worse than the baseline"},
		{"by an attack that was edited", byAttack("a"), byAttack("b"), checker.Undecided, "cannot be compared with the baseline: the attack has changed since"},
		{"by an attack of an older version", byAttack(""), byAttack("b"), checker.Undecided, "cannot be compared with the baseline: it does not say in which form the attack was made"},
		{"made nobody knows how", old, good, checker.Undecided, "it is not known how"},
	} {
		b := baselineOf(t, Comparison{Schema: Schema, Cells: []Cell{c.before}})
		now := c.now
		now.Counts = cmp.Or(now.Counts, now.Verdict)
		m := Comparison{Locks: []string{"redis"}, Cells: []Cell{now}}
		b.Hold(&m, Suite{Thresholds: Thresholds{{"wait_p99", float64(500 * time.Millisecond)}, {"overlaps", 9}}})
		if m.Cells[0].Counts != c.want || m.Verdict != c.want {
			t.Errorf("%s: counts as %s, all are %s, want %s: %+v", c.name, m.Cells[0].Counts, m.Verdict, c.want, *m.Cells[0].Compared)
		}
		if text := strings.Join(append(m.Cells[0].remarks(), m.summary()), "\n"); !strings.Contains(text, c.said) {
			t.Errorf("%s: %q is not said:\n%s", c.name, c.said, text)
		}
		junit := written(t, junitOf, m)
		if strings.Contains(junit, "<failure") != (c.want == checker.Violation) || strings.Contains(junit, "<error") != (c.want == checker.Undecided) {
			t.Errorf("%s: %s\n%s", c.name, c.want, junit)
		}
	}
}

// TestTooFewForBaseline: one message covers all cells with too few runs.
func TestTooFewForBaseline(t *testing.T) {
	cells := func(runs int) (all []Cell) {
		for _, fault := range []string{"none", "pause:holder"} {
			c := heldRuns(runs, 0, time.Second)
			c.Fault, c.Counts = fault, c.Verdict
			all = append(all, c)
		}
		return all
	}
	for runs, notes := range map[int]int{3: 1, 6: 0} {
		m := Comparison{Schema: Schema, Locks: []string{"redis"}, Faults: []string{"none", "pause:holder"}, Guards: []string{"none"}, Cells: cells(runs)}
		baselineOf(t, m).Hold(&m, Suite{})
		if m.Verdict != checker.Valid {
			t.Errorf("%d runs: %s", runs, m.Verdict)
		}
		for name, text := range map[string]string{"summary": m.summary() + strings.Join(m.Cells[0].remarks(), ""), "JUnit": written(t, junitOf, m)} {
			if strings.Count(text, "too few runs") != notes || strings.Count(text, "2 cells with too few runs to compare wait p99 with the baseline: it takes 5 runs with such a figure on both sides, or 5 in the baseline next to those of now") != notes {
				t.Errorf("%s, %d runs: want %d notes:\n%s", name, runs, notes, text)
			}
		}
	}
}

// baselineOf writes a comparison to a folder and reads the folder back as a baseline.
func baselineOf(t *testing.T, m Comparison) *Baseline {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, jsonFile), []byte(written(t, jsonOf, m)), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := ReadBaseline(folder)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReadBaseline(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct{ name, text, wrong string }{
		{"no file", "", "no such file"},
		{"no JSON", "{", "--baseline "},
		{"of another schema", `{"schema": 1}`, "schema 1"},
		{"a part", `{"schema": 2, "shard": "1/2"}`, "name the whole"},
	} {
		path := filepath.Join(folder, strings.ReplaceAll(c.name, " ", "-"))
		if c.text != "" {
			if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ReadBaseline(path); err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v, want %q", c.name, err, c.wrong)
		}
	}
}
