package hunt

import (
	"io"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/reports"
)

// huntedLock is a result with a finding and with cells that were never covered.
func huntedLock() Result {
	return Result{
		Plan: Plan{Lock: "redis", Seed: 7}, Lease: time.Second,
		Arms: []Arm{
			{Name: "guided", Trials: 30, Took: time.Hour, Cells: 2, Showing: 2, Finds: []string{"a"}, First: 4, Proven: 3},
			{Name: "blind", Trials: 10, Failed: 1, Took: time.Hour},
		},
		Findings: []Finding{{
			record: record{
				Name: "hunt-redis-1", Signature: Signature{Property: checker.MutualExclusion, Cause: checker.CauseTwice}, What: "w1 and w2 both held <k0>",
				File: "finds/hunt-redis-1.yaml", Control: "the same without the pause", ControlRuns: 5, Run: "runs/a/b",
			},
			Headline: "mutual-exclusion: granted twice", First: 4, Seen: 2, Trial: "2 workers; pause of one", Steps: 1, Count: Count{5, 6},
			Outcome: Confirmed, Low: 0.4, High: 0.97,
		}},
		Inherent: map[string]int{checker.CausePaused: 3},
		Coverage: Coverage{
			Met:   []Cell{{"pause of one", "in force", "held", "holding"}, {"pause of one", "in force", "free", "outside"}},
			Roles: []string{"no fault", "pause of one", "kill of all"}, Phases: []string{"before", "in force"},
			States: []string{"free", "held"}, Moments: []string{"outside", "holding"},
		},
		Unsupported: []string{"wipe: nothing is on disk"},
	}
}

// TestPage: every page says what was found, by which arm, what was set aside and what was never covered.
func TestPage(t *testing.T) {
	r := huntedLock()
	terminal := func(w io.Writer) error {
		return r.Terminal("store/hunt/latest").WriteTerminal(w, reports.TerminalOptions{Width: 200})
	}
	for name, write := range map[string]func(io.Writer) error{"markdown": r.Page().WriteMarkdown, "html": r.Page().WriteHTML, "terminal": terminal} {
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("\\", "", "&lt;", "<", "&gt;", ">").Replace(b.String())
		for _, want := range []string{
			"mutual-exclusion: granted twice", "1 finding: 1 confirmed", "shows in 5 of 6 runs (95 % interval 0.40–0.97)", "w1 and w2 both held <k0>",
			"guided", "blind", "1 trial failed", "(3 trials)", "wipe", "finds/hunt-redis-1.yaml", "2 of 20 combinations", "without the pause does not show it in 5 runs",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, text)
			}
		}
		if name == "html" && (strings.Contains(b.String(), "<k0>") || !strings.Contains(b.String(), `href="runs/a/b/report.html"`)) {
			t.Errorf("what a history says is part of the page, or its run is not linked:\n%s", b.String())
		}
	}
}

// TestCoverageTable: the table has a letter for each covered state, and the roles that were never covered are
// listed.
func TestCoverageTable(t *testing.T) {
	table, never := huntedLock().table()
	var letters []string
	for _, c := range table.Rows[0].Cells[1:] {
		letters = append(letters, c.Text)
	}
	if got := strings.Join(letters, " "); len(table.Rows) != 1 || len(never) != 2 || got != "·· ·· F· ·H" {
		t.Errorf("%q in %d rows, never %v", got, len(table.Rows), never)
	}
}

// TestVerdict: a hunt that found nothing is valid only if its trials showed something about the lock.
func TestVerdict(t *testing.T) {
	told := []Arm{{Trials: 3, Failed: 2}}
	with := func(p checker.Property, o Outcome) Result {
		return Result{Arms: told, Findings: []Finding{{record: record{Signature: Signature{Property: p}}, Outcome: o}}}
	}
	roles := Coverage{Roles: []string{"no fault", "pause of holder"}}
	for _, c := range []struct {
		name string
		hunt Result
		want checker.Verdict
	}{
		{"found", huntedLock(), checker.Violation},
		{"found once", with(checker.MutualExclusion, NotSeenAgain), checker.Violation},
		{"a wrong release, and not rerun", with(checker.NoWrongRelease, Unconfirmed), checker.Violation},
		{"stuck", with(checker.Liveness, Confirmed), checker.Violation},
		{"stuck, and not rerun to the end", with(checker.Liveness, Unconfirmed), checker.Undecided},
		{"stuck once", with(checker.Liveness, NotSeenAgain), checker.Valid},
		{"nothing", Result{Arms: told}, checker.Valid},
		{"no fault proven", Result{Arms: told, Coverage: roles}, checker.Undecided},
		{"a fault proven", Result{Arms: []Arm{{Trials: 3, Proven: 1}}, Coverage: roles}, checker.Valid},
		{"every trial failed", Result{Arms: []Arm{{Trials: 3, Failed: 3}}}, checker.Undecided},
	} {
		if got := c.hunt.Verdict(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestSummaryOfNothing: a hunt without any proven fault says that it knows almost nothing. A hunt with one
// does not.
func TestSummaryOfNothing(t *testing.T) {
	coverage := Coverage{Roles: []string{"", "holder"}}
	for proven, want := range map[int]string{0: "In 0 of 3 trials a fault was proven and exercised, so almost nothing is known. Continue it with lockcheck hunt --resume FOLDER --budget 30m.", 1: "Nothing was found except what is inherent in leases."} {
		if got := (Result{Arms: []Arm{{Trials: 3, Proven: proven}}, Coverage: coverage}).summary(); got != want {
			t.Errorf("%d proven: %s", proven, got)
		}
	}
}
