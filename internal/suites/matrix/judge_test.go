package matrix

import (
	"io"
	"lockcheck/checker"
	"lockcheck/reports"
	"reflect"
	"strings"
	"testing"
)

// TestJudge: a threshold replaces the property that it bounds. It does not excuse other properties or runs
// that say nothing.
func TestJudge(t *testing.T) {
	kept, missed := ThresholdResult{Verdict: checker.Valid}, ThresholdResult{Verdict: checker.Violation}
	found := func(v checker.Verdict, p checker.Property) checker.Finding {
		return checker.Finding{Property: p, Verdict: v, Required: true}
	}
	ended := func(v checker.Verdict, findings ...checker.Finding) Run {
		return summarizeRun(1, "", reports.Document{Results: checker.Results{Verdict: v, Findings: findings}})
	}
	ran := func(verdicts ...checker.Verdict) (runs []Run) {
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
		runs       []Run
		thresholds []ThresholdResult
		excused    []checker.Property
		want       checker.Verdict
	}{
		{"no run", nil, nil, nil, ""},
		{"valid", ran(checker.Valid), nil, nil, checker.Valid},
		{"the most telling", ran(checker.Valid, checker.Violation, checker.Undecided), nil, nil, checker.Violation},
		{"undecided before broken", ran(checker.Valid, checker.Broken, checker.Undecided), nil, nil, checker.Undecided},
		{"broken before valid", ran(checker.Valid, checker.Broken), nil, nil, checker.Broken},
		{"lost, and as many may be", []Run{lost}, []ThresholdResult{kept}, bounded, checker.Valid},
		{"lost, and something else bounded", []Run{lost}, []ThresholdResult{kept}, nil, checker.Violation},
		{"stuck, and the loss bounded", []Run{stuck}, []ThresholdResult{kept}, bounded, checker.Violation},
		{"lost under a fault without proof", []Run{unproven}, []ThresholdResult{kept}, bounded, checker.Undecided},
		{"lost under a fault without proof, and not bounded", []Run{unproven}, nil, nil, checker.Violation},
		{"lost in a run that failed", []Run{fallen}, []ThresholdResult{kept}, bounded, checker.Broken},
		{"valid, and missed", ran(checker.Valid), []ThresholdResult{kept, missed}, nil, checker.Violation},
		{"undecided, and kept", ran(checker.Undecided), []ThresholdResult{kept}, nil, checker.Undecided},
		{"broken, and kept", ran(checker.Broken), []ThresholdResult{kept}, nil, checker.Broken},
		{"lost in a part that cannot tell yet", []Run{lost}, nil, bounded, checker.Valid},
	} {
		cell := Cell{Runs: c.runs, Thresholds: c.thresholds, Excused: c.excused}
		if cell.judge(); cell.Verdict != c.want {
			t.Errorf("%s: %q, want %q", c.name, cell.Verdict, c.want)
		}
	}
}

// TestExcusedAsCounted: a bound on lost updates excuses no other damage to the final state.
func TestExcusedAsCounted(t *testing.T) {
	for _, c := range []struct {
		name    string
		updates checker.UpdateSummary
		want    checker.Verdict
	}{
		{"lost", checker.UpdateSummary{Acknowledged: 9, Lost: 1}, checker.Valid},
		{"twice", checker.UpdateSummary{Acknowledged: 9, Duplicated: 1}, checker.Violation},
		{"from nowhere", checker.UpdateSummary{Acknowledged: 9, Phantom: 1}, checker.Violation},
		{"lost, and twice", checker.UpdateSummary{Acknowledged: 9, Lost: 1, Duplicated: 1}, checker.Violation},
	} {
		run := summarizeRun(1, "", reports.Document{Results: checker.Results{
			Verdict: checker.Violation, Updates: c.updates,
			Findings: []checker.Finding{{Property: checker.NoLostUpdate, Verdict: checker.Violation, Required: true}},
		}})
		cell := Cell{
			Runs: []Run{run}, Excused: []checker.Property{checker.NoLostUpdate},
			Thresholds: []ThresholdResult{{Name: "lost", Counts: checker.NoLostUpdate, Verdict: checker.Valid}},
		}
		if cell.judge(); cell.Verdict != c.want {
			t.Errorf("%s: %s, want %s", c.name, cell.Verdict, c.want)
		}
	}
}

// TestMatrixVerdict: a comparison with missing runs is not valid.
func TestMatrixVerdict(t *testing.T) {
	ran := Cell{Verdict: checker.Valid, Runs: []Run{{Verdict: checker.Valid}}}
	lacking := Cell{Missing: 1}
	for _, c := range []struct {
		name  string
		shard string
		cells []Cell
		want  checker.Verdict
	}{
		{"whole", "", []Cell{ran}, checker.Valid},
		{"whole that lacks a run", "", []Cell{ran, lacking}, checker.Undecided},
		{"whole without runs", "", []Cell{{Unavailable: "so"}}, checker.Undecided},
		{"part", "1/2", []Cell{ran, lacking}, checker.Valid},
		{"part that nothing was left for", "3/3", []Cell{lacking}, ""},
	} {
		if got := VerdictOf(Comparison{Shard: c.shard, Cells: c.cells}); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestEachProperty: the annotation and the test case of a cell name each violated property with the time of
// its first violation, and no verdict twice.
func TestEachProperty(t *testing.T) {
	d := reports.Document{Results: checker.Results{Begin: 1e9, Verdict: checker.Violation, Sentence: "two held it.", Findings: []checker.Finding{
		{Property: checker.MutualExclusion, Verdict: checker.Violation, Required: true, Summary: "2 overlaps", Total: 2, Violations: []checker.Incident{{From: 3e9}, {From: 2500e6}}},
		{Property: checker.NoLostUpdate, Verdict: checker.Violation, Required: true, Summary: "1 of 9 lost", Total: 1, Violations: []checker.Incident{{From: 4e9}}},
		{Property: checker.NoStaleWrite, Verdict: checker.Violation, Summary: "1 write"},
	}}}
	open := reports.Document{Results: checker.Results{Verdict: checker.Undecided, Sentence: "No pause was ever applied."}}
	cell := func(runs ...reports.Document) Cell {
		c := Cell{Place: Place{"redis", "pause", "none"}}
		for i, d := range runs {
			c.Runs = append(c.Runs, c.add(uint64(i+1), "", d))
		}
		c.judge()
		return c
	}
	for _, c := range []struct {
		name string
		cell Cell
		want string // the message of the annotation
	}{
		{
			"one run", cell(d),
			"violation: two held it.; seed 1: mutual-exclusion, first at 1.500 s: 2 overlaps; seed 1: no-lost-update, first at 3.000 s: 1 of 9 lost",
		},
		{
			"two of three", cell(open, d, d),
			"violation: 3 runs: 1 undecided, 2 violation; mutual-exclusion in 2, no-lost-update in 2; " +
				"seed 2: mutual-exclusion, first at 1.500 s: 2 overlaps; seed 2: no-lost-update, first at 3.000 s: 1 of 9 lost",
		},
		{"undecided", cell(open), "undecided: No pause was ever applied."},
		{"both undecided", cell(open, open), "undecided: 2 runs: 2 undecided; No pause was ever applied."},
	} {
		all := Comparison{Cells: []Cell{c.cell}}
		if text := written(t, annotationsOf, all); !strings.HasSuffix(text, "::"+c.want+"\n") {
			t.Errorf("%s: annotated as\n%s\nwant\n%s", c.name, text, c.want)
		}
		junit := written(t, junitOf, all)
		for _, violation := range []string{"mutual-exclusion, first at 1.500 s: 2 overlaps", "no-lost-update, first at 3.000 s: 1 of 9 lost"} {
			if strings.Contains(junit, violation) != strings.Contains(c.want, violation) {
				t.Errorf("%s: %q in\n%s", c.name, violation, junit)
			}
		}
		if strings.Contains(strings.ToLower(junit), "undecided: undecided") || strings.Contains(junit, "no-stale-write") {
			t.Errorf("%s: a word twice, or a property that was not required:\n%s", c.name, junit)
		}
	}
}

// TestMissed: violations that no threshold replaces are listed. If everything is kept, nothing is.
func TestMissed(t *testing.T) {
	kept := []ThresholdResult{{Name: "lost", Counts: checker.NoLostUpdate, Bound: "9", Value: "1", Verdict: checker.Valid}}
	for _, c := range []struct {
		name     string
		violated []checker.Property
		rest     checker.Verdict
		want     reports.List
		verdict  checker.Verdict
	}{
		{"kept", []checker.Property{checker.NoLostUpdate}, checker.Valid, reports.List{}, checker.Valid},
		{
			"something else violated", []checker.Property{checker.NoLostUpdate, checker.NoStaleWrite}, checker.Valid,
			reports.List{Items: []reports.Item{{Verdict: checker.Violation, Text: "redis, none, guard none: no-stale-write"}}}, checker.Violation,
		},
		{
			"not proven", []checker.Property{checker.NoLostUpdate}, checker.Undecided,
			reports.List{Items: []reports.Item{{Verdict: checker.Undecided, Text: "redis, none, guard none: the runs themselves"}}}, checker.Undecided,
		},
	} {
		cell := Cell{
			Place: Place{"redis", "none", "none"}, Thresholds: kept, Excused: []checker.Property{checker.NoLostUpdate},
			Runs: []Run{{Verdict: checker.Violation, Violated: c.violated, Rest: c.rest}},
		}
		cell.judge()
		m := Comparison{Cells: []Cell{cell}}
		want := []reports.Block{c.want, reports.Text("1 threshold kept, 0 not")}
		if got := m.missed(); !reflect.DeepEqual(got, want) || VerdictOf(m) != c.verdict {
			t.Errorf("%s: %+v, want %+v; %s", c.name, got, want, VerdictOf(m))
		}
	}
}

func written(t *testing.T, write func(io.Writer, Comparison) error, m Comparison) string {
	t.Helper()
	var b strings.Builder
	if err := write(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
