package reports

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
)

// huntedLock is a hunt with a find, and cells that were never met.
func huntedLock() Hunt {
	return Hunt{
		Lock: "redis", Seed: 7, Lease: time.Second,
		Arms: []HuntArm{
			{Name: "guided", Trials: 30, Took: time.Hour, Cells: 2, Showing: 2, Finds: []string{"a"}, First: 4},
			{Name: "blind", Trials: 10, Failed: 1, Took: time.Hour},
		},
		Finds: []HuntFind{{
			Name: "hunt-redis-1", Headline: "mutual-exclusion: granted twice", Property: checker.MutualExclusion, Cause: checker.CauseTwice, What: "w1 and w2 both held <k0>", First: 4, Seen: 2,
			Trial: "2 workers; pause of one", Steps: 1, Shown: 5, Made: 6, SeenAgain: true, Low: 0.4, High: 0.97,
			File: "finds/hunt-redis-1.yaml", Control: "the same without the pause", ControlRuns: 5, Run: "runs/a/b",
		}},
		Inherent: map[string]int{checker.CausePaused: 3},
		Met:      []HuntCell{{"pause of one", "in force", "held", "holding"}, {"pause of one", "in force", "free", "outside"}},
		Roles:    []string{"no fault", "pause of one", "kill of all"}, Phases: []string{"before", "in force"},
		States: []string{"free", "held"}, Moments: []string{"outside", "holding"}, Unsupported: []string{"wipe: nothing is on disk"},
	}
}

// TestHuntPages: what was found, by whom, what was set aside and what was never met is on
// each page.
func TestHuntPages(t *testing.T) {
	terminal := func(w io.Writer, h Hunt) error {
		return HuntTerminal(w, h, TerminalOptions{Width: 200, Folder: "store/hunt/latest"})
	}
	for name, write := range map[string]func(io.Writer, Hunt) error{"markdown": HuntMarkdown, "html": HuntHTML, "terminal": terminal} {
		var b strings.Builder
		if err := write(&b, huntedLock()); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("\\", "", "&lt;", "<", "&gt;", ">").Replace(b.String())
		for _, want := range []string{
			"mutual-exclusion: granted twice", "1 find, of which 1 showed again", "shows in 5 of 6 runs (0.40–0.97)", "w1 and w2 both held <k0>",
			"guided: 30 trials, 2 with a find (2 an hour)", "blind: 10 trials, 0 with a find", "1 told nothing", "(3 trials)", "wipe", "finds/hunt-redis-1.yaml", "2 of 20 cells",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, text)
			}
		}
		if name == "html" && strings.Contains(b.String(), "<k0>") {
			t.Error("what a history says is part of the page")
		}
	}
}

// TestHuntCoverage: a letter for each state that was met, and the roles that never were.
func TestHuntCoverage(t *testing.T) {
	rows, never := huntedLock().coverage()
	want := []huntCell{{"··", "none"}, {"··", "none"}, {"F·", "some"}, {"·H", "some"}}
	if len(rows) != 1 || len(never) != 2 || !slices.Equal(rows[0].Cells, want) {
		t.Errorf("%+v, never %v", rows, never)
	}
}

// TestHuntVerdict: nothing found is valid only if something was tried.
func TestHuntVerdict(t *testing.T) {
	told := []HuntArm{{Trials: 3, Failed: 2}}
	with := func(f HuntFind) Hunt { return Hunt{Arms: told, Finds: []HuntFind{f}} }
	for _, c := range []struct {
		name string
		hunt Hunt
		want checker.Verdict
	}{
		{"found", huntedLock(), checker.Violation},
		{"found once", with(HuntFind{Property: checker.MutualExclusion, Made: 6}), checker.Violation},
		{"stuck", with(HuntFind{Property: checker.Liveness, Made: 6, SeenAgain: true}), checker.Violation},
		{"stuck, and not made again", with(HuntFind{Property: checker.Liveness}), checker.Undecided},
		{"a wrong release, and not made again", with(HuntFind{Property: checker.NoWrongRelease}), checker.Violation},
		{"stuck, and no time to make it again often enough", with(HuntFind{Property: checker.Liveness, Made: 1, Unfinished: "no time"}), checker.Undecided},
		{"stuck once", with(HuntFind{Property: checker.Liveness, Made: 6}), checker.Valid},
		{"nothing", Hunt{Arms: told}, checker.Valid},
		{"no fault proven", Hunt{Arms: told, Roles: []string{"no fault", "pause of holder"}}, checker.Undecided},
		{"a fault proven", Hunt{Arms: []HuntArm{{Trials: 3, Proven: 1}}, Roles: []string{"no fault", "pause of holder"}}, checker.Valid},
		{"nothing told", Hunt{Arms: []HuntArm{{Trials: 3, Failed: 3}}}, checker.Undecided},
	} {
		if got := c.hunt.Verdict(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
