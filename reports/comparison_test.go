package reports

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"lockcheck/checker"
)

// compared is a comparison with a cell of each kind; every text in it that can come from
// outside is text.
func compared(text string) Comparison {
	ran := func(v checker.Verdict, lost int64) ComparedCell {
		cell := ComparedCell{
			Runs: []ComparedRun{{
				Seed: 1, Folder: "runs/a/b" + text, Verdict: v, Sentence: "It was so. " + text, Rest: checker.Valid,
				Violated: map[checker.Verdict][]checker.Property{checker.Violation: {checker.NoLostUpdate}}[v],
			}},
			Pool: checker.Pool{Runs: 1, Acknowledged: 100, Lost: lost, Measures: checker.Measures{Work: 100, Active: 10 * time.Second}},
		}
		cell.Pool.Measures.Acquire.Add(3 * time.Millisecond)
		return cell
	}
	cells := []ComparedCell{
		ran(checker.Valid, 0), ran(checker.Violation, 7),
		{Unavailable: "this fault cannot be had " + text},
		ran(checker.Undecided, 0), ran(checker.Broken, 0),
		{Missing: 1},
	}
	c := Comparison{
		Schema: ComparisonSchema, Began: time.Unix(0, 0), Took: time.Minute,
		Locks: []string{"redis" + text, "etcd"}, Faults: []string{"none", "pause:one server" + text, "clock"}, Guards: []string{"none"},
		About: map[string]About{"redis" + text: {Servers: 1, Token: "counter" + text, Clock: "wall" + text}},
	}
	for i := range cells {
		cells[i].Lock, cells[i].Fault, cells[i].Guard = c.Locks[i/3], c.Faults[i%3], "none"
		cells[i].Judge()
	}
	c.Cells = cells
	return c
}

// held is compared with thresholds, of which one is kept, one is not, and one has no data.
func held(text string) Comparison {
	c := compared(text)
	c.Thresholds = true
	c.Cells[0].Thresholds = []ThresholdResult{{Name: "lost", Bound: "0", Value: "0", Verdict: checker.Valid}}
	c.Cells[1].Thresholds = []ThresholdResult{
		{Name: "lost", Bound: "0", Value: "7" + text, Verdict: checker.Violation},
		{Name: "handover_p99", Bound: "3s", Value: "no data", Verdict: checker.Undecided},
	}
	for i := range c.Cells {
		c.Cells[i].Excused = []checker.Property{checker.NoLostUpdate}
		c.Cells[i].Judge()
	}
	return c
}

func written(t *testing.T, write func(io.Writer, Comparison) error, c Comparison) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// violating is a cell with a run that violates some properties.
func violating(pool checker.Pool, properties ...checker.Property) ComparedCell {
	return ComparedCell{Verdict: checker.Violation, Pool: pool, Runs: []ComparedRun{{Verdict: checker.Violation, Violated: properties}}}
}

func TestComparisonWords(t *testing.T) {
	broken := checker.Pool{Overlaps: checker.OverlapSummary{BrokenPromises: 1, OutlivedLeases: 1}}
	for _, want := range []struct {
		cell ComparedCell
		word string
	}{
		{ComparedCell{Verdict: checker.Valid}, "valid"},
		{ComparedCell{Verdict: checker.Undecided}, "undecided"},
		{ComparedCell{Verdict: checker.Broken}, "broken"},
		{ComparedCell{Verdict: "nonsense"}, "broken"},
		{ComparedCell{Unavailable: "because"}, "–"},
		{ComparedCell{}, "…"},
		{violating(checker.Pool{}, checker.NoStaleWrite, checker.NoLostUpdate), "lost"},
		{violating(checker.Pool{Lost: 1}, checker.NoStaleWrite), "stale"}, // lost as many as a threshold allows
		{violating(broken, checker.MutualExclusion), "broke"},
		{violating(checker.Pool{}, checker.MutualExclusion), "overlap"},
		{violating(broken, checker.Liveness), "other"}, // overlaps that a guard made harmless
		{ComparedCell{Verdict: checker.Violation, Thresholds: []ThresholdResult{{Counts: checker.NoLostUpdate, Verdict: checker.Violation}}}, "lost"},
		{ComparedCell{Verdict: checker.Violation, Thresholds: []ThresholdResult{{Name: "wait_p99", Verdict: checker.Violation}}}, "missed"},
	} {
		if got := want.cell.word(); got != want.word {
			t.Errorf("%+v is %q, want %q", want.cell, got, want.word)
		}
	}
}

// TestExcusedAsCounted: a bound of how many updates may be lost excuses no other harm to
// the final state.
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
		run := RunOf(1, "", Document{Results: checker.Results{
			Verdict: checker.Violation, Updates: c.updates,
			Findings: []checker.Finding{{Property: checker.NoLostUpdate, Verdict: checker.Violation, Required: true}},
		}})
		cell := ComparedCell{
			Runs: []ComparedRun{run}, Excused: []checker.Property{checker.NoLostUpdate},
			Thresholds: []ThresholdResult{{Name: "lost", Counts: checker.NoLostUpdate, Verdict: checker.Valid}},
		}
		if cell.Judge(); cell.Verdict != c.want {
			t.Errorf("%s: %s, want %s", c.name, cell.Verdict, c.want)
		}
	}
}

func TestComparisonTerminal(t *testing.T) {
	for _, c := range []Comparison{compared(""), held(""), compared(hostile)} {
		text := written(t, func(w io.Writer, c Comparison) error { return ComparisonTerminal(w, c, TerminalOptions{}) }, c)
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > defaultWidth {
				t.Errorf("a line of %d columns: %q", n, line)
			}
		}
		if strings.ContainsAny(text, "\x1b\x00\x07\u202e") {
			t.Errorf("control characters in %q", text)
		}
		for _, word := range []string{"valid", "lost", "–", "undec.", "broken", "…", "made yet"} {
			if !strings.Contains(text, word) {
				t.Errorf("%q is missing in\n%s", word, text)
			}
		}
		if c.Thresholds != strings.Contains(text, "1 threshold kept, 2 not") {
			t.Errorf("thresholds %v, but\n%s", c.Thresholds, text)
		}
	}
}

func TestComparisonMarkdown(t *testing.T) {
	for _, write := range []func(io.Writer, Comparison) error{ComparisonMarkdown, ComparisonSummary} {
		text := written(t, write, held(hostile+"|`"))
		if strings.Contains(text, "<script") || strings.ContainsAny(text, "\x1b\x00\x07\u202e") {
			t.Errorf("hostile text got through:\n%s", text)
		}
		// Each row of a table has as many cells as its head.
		columns := 0
		for line := range strings.Lines(text) {
			n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
			switch {
			case !strings.HasPrefix(line, "|"):
				columns = 0
			case columns == 0:
				columns = n // the head of a table
			case n != columns:
				t.Errorf("%d columns, want %d: %s", n-1, columns-1, line)
			}
		}
	}
}

func TestComparisonHTML(t *testing.T) {
	page := written(t, ComparisonHTML, held(hostile))
	for _, part := range []string{"7/100", ">undecided<", "report.html", "handover_p99", "no data"} {
		if !strings.Contains(page, part) {
			t.Errorf("missing %q", part)
		}
	}
	for _, bad := range []string{"<script", "http://", "https://", "src=", "ZgotmplZ", "NaN", "\x1b", "\u202e"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

// TestComparisonTerminalReasons: what no threshold takes the place of is named, and the
// verdict is the last word; where everything is kept nothing is.
func TestComparisonTerminalReasons(t *testing.T) {
	kept := []ThresholdResult{{Name: "lost", Counts: checker.NoLostUpdate, Bound: "9", Value: "1", Verdict: checker.Valid}}
	for _, c := range []struct {
		name     string
		violated []checker.Property
		rest     checker.Verdict
		want     []string
		never    string
	}{
		{"kept", []checker.Property{checker.NoLostUpdate}, checker.Valid, []string{"1 threshold kept, 0 not", "VALID  1 run"}, "violation  redis"},
		{"something else violated", []checker.Property{checker.NoLostUpdate, checker.NoStaleWrite}, checker.Valid, []string{"violation  redis, none, guard none: no-stale-write\n", "VIOLATION  1 run"}, "no-lost-update"},
		{"not proven", []checker.Property{checker.NoLostUpdate}, checker.Undecided, []string{"undecided  redis, none, guard none: ", "UNDECIDED  1 run"}, "violation  redis"},
	} {
		cell := ComparedCell{
			Lock: "redis", Fault: "none", Guard: "none", Thresholds: kept, Excused: []checker.Property{checker.NoLostUpdate},
			Runs: []ComparedRun{{Verdict: checker.Violation, Violated: c.violated, Rest: c.rest}},
		}
		cell.Judge()
		compared := Comparison{Locks: []string{"redis"}, Faults: []string{"none"}, Guards: []string{"none"}, Thresholds: true, Cells: []ComparedCell{cell}}
		text := written(t, func(w io.Writer, c Comparison) error { return ComparisonTerminal(w, c, TerminalOptions{}) }, compared)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in\n%s", c.name, want, text)
			}
		}
		if strings.Contains(text, c.never) {
			t.Errorf("%s: %q is in\n%s", c.name, c.never, text)
		}
	}
}

// TestComparisonNarrow: the faults of a comparison of which none are named fit into 80
// columns, whatever came of them.
func TestComparisonNarrow(t *testing.T) {
	faults := []string{"none", "pause:holder", "partition:holder", "kill:holder", "clock", "pause:one server", "pause:leader", "kill:one server"}
	for _, v := range []checker.Verdict{checker.Undecided, checker.Violation} {
		c := Comparison{Locks: []string{"redis-unsafe-release"}, Faults: faults, Guards: []string{"none"}}
		for _, fault := range faults {
			c.Cells = append(c.Cells, ComparedCell{
				Lock: c.Locks[0], Fault: fault, Guard: "none", Verdict: v,
				Runs: []ComparedRun{{Verdict: v, Violated: []checker.Property{checker.MutualExclusion}}},
			})
		}
		text := written(t, func(w io.Writer, c Comparison) error { return ComparisonTerminal(w, c, TerminalOptions{}) }, c)
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > defaultWidth {
				t.Errorf("a line of %d columns: %q", n, line)
			}
		}
	}
}

// TestComparisonVerdict: what was not run cannot make a whole valid.
func TestComparisonVerdict(t *testing.T) {
	ran := ComparedCell{Verdict: checker.Valid, Runs: []ComparedRun{{Verdict: checker.Valid}}}
	lacking := ComparedCell{Missing: 1}
	for _, c := range []struct {
		name  string
		shard string
		cells []ComparedCell
		want  checker.Verdict
	}{
		{"whole", "", []ComparedCell{ran}, checker.Valid},
		{"whole that lacks a run", "", []ComparedCell{ran, lacking}, checker.Undecided},
		{"whole without runs", "", []ComparedCell{{Unavailable: "so"}}, checker.Undecided},
		{"part", "1/2", []ComparedCell{ran, lacking}, checker.Valid},
		{"part that nothing was left for", "3/3", []ComparedCell{lacking}, ""},
	} {
		if got := (Comparison{Shard: c.shard, Cells: c.cells}).Verdict(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestComparisonJUnit: only what is valid passes.
func TestComparisonJUnit(t *testing.T) {
	for _, c := range []struct {
		name                             string
		comparison                       Comparison
		tests, failures, errors, skipped int
	}{
		{"without thresholds", compared(hostile), 6, 1, 3, 1},
		{"with thresholds", held(hostile), 7, 1, 4, 1},
		{"a valid cell", Comparison{Cells: compared("").Cells[:1]}, 1, 0, 0, 0},
		{"a whole that nothing can be run of", Comparison{Cells: compared("").Cells[2:3]}, 2, 0, 1, 1},
		{"a part that nothing was left for", Comparison{Shard: "3/3", Cells: compared("").Cells[5:6]}, 1, 0, 0, 1},
	} {
		var suite junitSuite
		if err := xml.Unmarshal([]byte(written(t, ComparisonJUnit, c.comparison)), &suite); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if suite.Tests != c.tests || suite.Failures != c.failures || suite.Errors != c.errors || suite.Skipped != c.skipped {
			t.Errorf("%s: %d tests, %d failures, %d errors, %d skipped", c.name, suite.Tests, suite.Failures, suite.Errors, suite.Skipped)
		}
	}
}

func TestGitHubAnnotations(t *testing.T) {
	text := written(t, GitHubAnnotations, held("\n::error::made up, 100%"))
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	levels := []string{"::error title=", "::warning title=", "::warning title=", "::warning title=lockcheck%3A all cells::"}
	if len(lines) != len(levels) {
		t.Fatalf("%d lines, want one for each cell that is not valid, and one for the run that is missing:\n%s", len(lines), text)
	}
	for i, level := range levels[:3] {
		title, message, _ := strings.Cut(strings.TrimPrefix(lines[i], level), "::")
		if !strings.HasPrefix(lines[i], level) || strings.ContainsAny(title, ":,") || message == "" || strings.Contains(message, "violation: violation") {
			t.Errorf("%q", lines[i])
		}
	}
	if !strings.HasPrefix(lines[3], levels[3]) {
		t.Errorf("%q", lines[3])
	}
	if valid := compared(""); written(t, GitHubAnnotations, Comparison{Cells: valid.Cells[:1]}) != "" {
		t.Error("a valid cell is annotated")
	}
}

func TestComparisonJSON(t *testing.T) {
	var read Comparison
	if err := json.Unmarshal([]byte(written(t, ComparisonJSON, held(""))), &read); err != nil {
		t.Fatal(err)
	}
	if read.Verdict() != checker.Violation || read.Missing() != 1 || len(read.Cells) != 6 {
		t.Errorf("read back: %+v", read)
	}
}
