package reports

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"lockcheck/checker"
)

// TestGuideCellText: a reader of nothing but the cell is not misled.
func TestGuideCellText(t *testing.T) {
	group := func(state, experiment string, broke, n int64) []GuideGroup {
		return []GuideGroup{{State: state, Experiment: experiment, Broke: broke, N: n}}
	}
	for _, c := range []struct {
		cell GuideCell
		want string
	}{
		{GuideCell{State: GuideBroken, Groups: group(GuideBroken, "repro/redlock-clock-jump", 4, 4)}, "failed by itself in 4 of 4 runs: redlock-clock-jump"},
		{GuideCell{State: GuideAfterExpiry, Groups: group(GuideAfterExpiry, "", 1, 3)}, "used after expiry in 1 of 3 runs: random faults"},
		{GuideCell{State: GuideStuck, Groups: group(GuideStuck, "claim/file-orphan", 1, 1)}, "stuck in 1 of 1 run: file-orphan"},
		{GuideCell{State: GuideLate, Groups: group(GuideLate, "repro/etcd34-clock-back", 2, 2)}, "passed on late in 2 of 2 runs: etcd34-clock-back"},
		{GuideCell{State: GuideBroken, Groups: []GuideGroup{{State: GuideBroken, Broke: 2, N: 2, Needed: []string{"kill:holder"}}}}, "failed by itself in 2 of 2 runs: random faults with kill:holder"},
		{GuideCell{State: GuideHeld, Held: 1, Updates: 20, Bound: 0.975}, "held in the one run tried"},
		{GuideCell{State: GuideHeld, Held: 3, Updates: 99, Bound: 0.7076}, "held in 3 runs (up to 71 % may break)"},
		{GuideCell{State: GuideHeld, Held: 1, Updates: 19, Bound: 0.975}, "held in the one run tried, on only 19 updates"},
		{GuideCell{State: GuideTooShort, Short: make([]GuideRun, 2)}, "too short to tell: held in 2 runs"},
		{GuideCell{State: GuideNotSupported}, "not supported"},
		{GuideCell{State: GuideNotTried}, "not tried"},
	} {
		if got := c.cell.text(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestGuideCellView: a cell of the heat map says the verdict in large letters, and only that.
func TestGuideCellView(t *testing.T) {
	group := []GuideGroup{{State: GuideBroken, Broke: 1, N: 1, Setup: []string{"renewed"}}}
	for _, c := range []struct {
		cell        GuideCell
		word, small string
	}{
		{GuideCell{State: GuideBroken, Groups: group}, "failed by itself in 1 of 1 run", "random faults (renewed)"},
		{GuideCell{State: GuideHeld, Held: 1, Updates: 20}, "held in the one run tried", ""},
		{GuideCell{State: GuideHeld, Held: 1, Updates: 5}, "held in the one run tried", "on only 5 updates"},
		{GuideCell{State: GuideHeld, Held: 3, Updates: 99, Bound: 0.7}, "held in 3 runs", "(up to 70 % may break)"},
		{GuideCell{State: GuideHeld, Held: 1, Updates: 20, Kin: []string{"redlock (under kill)"}}, "held in the one run tried", "redlock (under kill), which ends by the same rule, failed by itself"},
		{GuideCell{State: GuideNotTried}, "not tried", ""},
	} {
		if got := c.cell.view(""); got.Word != c.word || got.Small != c.small {
			t.Errorf("%q, %q, want %q, %q", got.Word, got.Small, c.word, c.small)
		}
	}
}

// TestGuideShare: what an interval is over is said in words, for it is next to a number of stops.
func TestGuideShare(t *testing.T) {
	for _, c := range []struct {
		interval checker.LossInterval
		want     string
	}{
		{checker.LossInterval{LostHigh: 1, LostOver: checker.OverFaults, LostUnits: 3}, "none, too few: over 3 faults"},
		{checker.LossInterval{LostHigh: 1, LostOver: checker.OverRuns, LostUnits: 2}, "none, too few to tell how much runs differ: over 2 runs"},
		{checker.LossInterval{LostLow: 0.1, LostHigh: 0.5, LostOver: checker.OverRuns, LostUnits: 4}, "10–50 %, over 4 runs"},
	} {
		if got := (GuideSpeed{Loss: checker.Pool{LossInterval: c.interval}}).share(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestGuidePages: each cell leads to its runs where they have a page, what a run says is not markup,
// and what else was in force is said.
func TestGuidePages(t *testing.T) {
	run := GuideRun{ID: "r1", When: "2026-01-02T03:04:05Z", Verdict: checker.Violation, Sentence: "<b>|x", Line: "lockcheck repro a", Report: "runs/r1/report.html"}
	broken := GuideCell{Lock: "redlock", Fault: "clock:one server", Guard: "none", State: GuideBroken, Groups: []GuideGroup{{
		State: GuideBroken, Experiment: "repro/redlock-clock-jump", Broke: 4, Less: 1, N: 5, Low: 0.39, High: 1, With: []string{"partition:one worker"}, Runs: []GuideRun{run},
	}}}
	held := GuideCell{Lock: "redlock", Fault: "none", Guard: "none", State: GuideHeld, Held: 1, Bound: 0.975, Groups: []GuideGroup{{N: 1, High: 0.975, Runs: []GuideRun{run}}}}
	g := Guide{
		Runs: 5, From: "2026-01-02", To: "2026-01-03", Faults: []string{"none", "clock:one server"},
		Tables: []GuideTable{{Guard: "none", Rows: []GuideRow{{Lock: "redlock", Note: "naive: so", Cells: []GuideCell{held, broken}, Others: []GuideCell{{State: GuideHeld}}}}}},
		Needs:  []GuideNeed{{Need: "n", Rule: "r"}}, Speeds: []GuideSpeed{{Lock: "redlock", Acquires: 3, AcquireP50: 1e6, AcquireP99: 2e6}, {Lock: "none", NeedsNoFault: true}},
	}
	for name, c := range map[string]struct {
		write func(*bytes.Buffer) error
		want  []string
		not   string
	}{
		"markdown": {func(b *bytes.Buffer) error { return GuideMarkdown(b, g, "") }, []string{
			"| **failed by itself in 4 of 5 runs: redlock-clock-jump** |", "`--runs FILE`", losesAnyhow, "| redlock (naive: so) |", "No lock is known to meet this.", "held in the one run tried",
		}, "](#"},
		"markdown with runs elsewhere": {func(b *bytes.Buffer) error { return GuideMarkdown(b, g, "runs.md") }, []string{
			"[**failed by itself in 4 of 5 runs: redlock-clock-jump**](runs.md#redlock-clockone-server-guard-none)", "Each cell leads to its runs.",
		}, "lockcheck repro a"},
		"runs": {func(b *bytes.Buffer) error { return GuideRunsMarkdown(b, g) }, []string{
			"## redlock, clock:one server, guard none", "In 1 other it broke less badly.", "Also in force: partition:one worker", "`lockcheck repro a`", `&lt;b&gt;\|x`,
		}, "acquire p50"},
		"page": {func(b *bytes.Buffer) error { return GuideHTML(b, g) }, []string{
			`<th scope="row">redlock<small>naive: so</small></th>`, `id="guard-none"`, losesAnyhow, `href="#redlock-clockone-server-guard-none"`, `id="redlock-clockone-server-guard-none"`, "partition:one worker", "lockcheck repro a", "&lt;b&gt;|x",
			`href="runs/r1/report.html"`, "No lock is known to meet this.", "held in the one run tried",
		}, "--runs"},
	} {
		var b bytes.Buffer
		if err := c.write(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lacks := slices.DeleteFunc(c.want, func(w string) bool { return strings.Contains(b.String(), w) })
		if len(lacks) > 0 {
			t.Errorf("%s lacks %q:\n%s", name, lacks, b.String())
		}
		if strings.Contains(b.String(), c.not) {
			t.Errorf("%s has %q:\n%s", name, c.not, b.String())
		}
	}
}
