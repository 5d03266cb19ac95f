package matrix

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"lockcheck/checker"
	"lockcheck/internal/suites"
	"lockcheck/reports"
)

// hostile is text that must not break out of its context.
const hostile = "<script>alert(1)</script>\x1b[31m\x00\x07\u202e\ufffe]]></title>\"'"

func htmlOf(w io.Writer, c Comparison) error        { return c.Page().WriteHTML(w) }
func markdownOf(w io.Writer, c Comparison) error    { return c.Page().WriteMarkdown(w) }
func summaryOf(w io.Writer, c Comparison) error     { return c.Summary().WriteMarkdown(w) }
func junitOf(w io.Writer, c Comparison) error       { return c.WriteJUnit(w) }
func annotationsOf(w io.Writer, c Comparison) error { return c.WriteAnnotations(w) }
func jsonOf(w io.Writer, c Comparison) error        { return reports.WriteJSON(w, c) }

func terminalOf(width int) func(io.Writer, Comparison) error {
	return func(w io.Writer, c Comparison) error {
		return c.Terminal().WriteTerminal(w, reports.TerminalOptions{Width: width})
	}
}

// eachKind is a comparison with one cell of each kind. Every text that can come from outside is the given
// text.
func eachKind(text string) Comparison {
	ran := func(v checker.Verdict, lost int64) Cell {
		violated := map[checker.Verdict][]checker.Property{checker.Violation: {checker.NoLostUpdate}}[v]
		cell := Cell{
			Verdict: v, OfRuns: v, Violated: violated,
			Runs: []Run{{
				Took: 12340 * time.Millisecond, Command: []string{"lockcheck", "test", "--nemesis", "pause:one server" + text},
				Seed: 1, Folder: "runs/a/b" + text, Verdict: v, Sentence: "It was so. " + text, Rest: checker.Valid, Violated: violated,
			}},
			Pool: checker.Pool{Runs: 1, Acknowledged: 100, Lost: lost, Measures: checker.Measures{Work: 100, Active: 10 * time.Second}},
		}
		cell.Pool.Measures.Acquire.Add(3 * time.Millisecond)
		return cell
	}
	cells := []Cell{
		ran(checker.Valid, 0), ran(checker.Violation, 7),
		{Unavailable: "this fault is not supported " + text},
		ran(checker.Undecided, 0), ran(checker.Broken, 0),
		{Missing: 1},
	}
	c := Comparison{
		Schema: Schema, Began: time.Unix(0, 0), Took: time.Minute, Verdict: checker.Violation,
		Locks: []string{"redis" + text, "etcd"}, Faults: []string{"none", "pause:one server" + text, "clock"}, Guards: []string{"none"},
		About: map[string]About{"redis" + text: {Servers: 1, Token: "counter" + text, Clock: "wall" + text}},
	}
	for i := range cells {
		cells[i].Place = Place{c.Locks[i/3], c.Faults[i%3], "none"}
	}
	c.Cells = cells
	return c
}

// withThresholds is eachKind with three thresholds: one kept, one missed, and one without data.
func withThresholds(text string) Comparison {
	c := eachKind(text)
	c.Thresholds = true
	c.Cells[0].Thresholds = []ThresholdResult{{Name: "lost", Bound: "0", Value: "0", Verdict: checker.Valid}}
	c.Cells[1].Thresholds = []ThresholdResult{
		{Name: "lost", Bound: "0", Value: "7" + text, Verdict: checker.Violation},
		{Name: "failover_p99", Bound: "3s", Value: "no data", Verdict: checker.Undecided},
	}
	c.Cells[1].OfRuns, c.Cells[1].Violated = checker.Valid, nil // the threshold replaces it
	return c
}

// violating is a cell with one run that violates the properties.
func violating(pool checker.Pool, properties ...checker.Property) Cell {
	return Cell{Verdict: checker.Violation, Violated: properties, Pool: pool, Runs: []Run{{Verdict: checker.Violation}}}
}

func TestWords(t *testing.T) {
	broken := checker.Pool{Overlaps: checker.OverlapSummary{DoubleGrants: 1, UsesAfterExpiry: 1}}
	for _, want := range []struct {
		cell Cell
		word string
	}{
		{Cell{Verdict: checker.Valid}, "valid"},
		{Cell{Verdict: checker.Undecided}, "undecided"},
		{Cell{Verdict: checker.Broken}, "broken"},
		{Cell{Verdict: "nonsense"}, "broken"},
		{Cell{Unavailable: "because"}, "–"},
		{Cell{}, "…"},
		{violating(checker.Pool{}, checker.NoStaleWrite, checker.NoLostUpdate), "lost"},
		{violating(checker.Pool{Lost: 1}, checker.NoStaleWrite), "stale"}, // lost no more updates than a threshold allows
		{violating(broken, checker.MutualExclusion), "double"},
		{violating(checker.Pool{}, checker.MutualExclusion), "overlap"},
		{violating(broken, checker.Liveness), "stuck"}, // a guard made the overlaps harmless
		{violating(broken, checker.FencingOrder), "other"},
		{Cell{Verdict: checker.Violation, Thresholds: []ThresholdResult{{Counts: checker.NoLostUpdate, Verdict: checker.Violation}}}, "lost"},
		{Cell{Verdict: checker.Violation, Thresholds: []ThresholdResult{{Name: "wait_p99", Verdict: checker.Violation}}}, "missed"},
	} {
		if got := want.cell.word(); got != want.word {
			t.Errorf("%+v is %q, want %q", want.cell, got, want.word)
		}
	}
}

// fits checks that no line of the terminal output is wider than the given width.
func fits(t *testing.T, c Comparison, width int) string {
	t.Helper()
	text := written(t, terminalOf(width), c)
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
	return text
}

func TestTerminal(t *testing.T) {
	for _, c := range []Comparison{eachKind(""), withThresholds(""), eachKind(hostile)} {
		text := fits(t, c, 80)
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

// TestTables: each lock that can be run behind a guard has a row, and each fault a cell. Reasons for empty
// cells follow the table.
func TestTables(t *testing.T) {
	blocks := withThresholds("").tables()
	table, gaps := blocks[1].(reports.Table), blocks[2].(reports.List)
	if len(blocks) != 3 || len(table.Columns) != 5 || len(table.Rows) != 2 || len(gaps.Items) != 1 || gaps.Items[0].Text != "– clock: redis (this fault is not supported )" {
		t.Fatalf("%+v", blocks)
	}
	lost, open := table.Rows[0].Cells[3], table.Rows[1].Cells[4]
	if lost.Text != "missed" || lost.Verdict != checker.Violation || lost.Link != "#redis/pause:one-server/none" || lost.More != "in 1 of 1 run, 7/100 updates" {
		t.Errorf("%+v", lost)
	}
	if open.Text != "…" || open.Verdict != "" || open.Link != "" {
		t.Errorf("%+v", open)
	}
}

// TestPages: text from outside is escaped on every page.
func TestPages(t *testing.T) {
	page := written(t, htmlOf, withThresholds(hostile))
	for _, part := range []string{"7/100", ">undecided<", "report.html", "failover_p99", "no data"} {
		if !strings.Contains(page, part) {
			t.Errorf("missing %q", part)
		}
	}
	for _, bad := range []string{"<script src", "<script>alert", "http://", "https://", "src=", "ZgotmplZ", "NaN", "\x1b", "\u202e"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, write := range []func(io.Writer, Comparison) error{markdownOf, summaryOf} {
		if text := written(t, write, withThresholds(hostile+"|`")); strings.Contains(text, "<script") || strings.ContainsAny(text, "\x1b\x00\x07\u202e") {
			t.Errorf("hostile text got through:\n%s", text)
		}
	}
}

// TestNarrow: the default faults fit into 80 columns, whatever the results.
func TestNarrow(t *testing.T) {
	faults := []string{"none", "pause:holder", "partition:holder", "kill:holder", "clock", "pause:one server", "pause:leader", "kill:one server"}
	for _, v := range []checker.Verdict{checker.Undecided, checker.Violation} {
		c := Comparison{Locks: []string{"redis-unsafe-release"}, Faults: faults, Guards: []string{"none"}}
		for _, fault := range faults {
			c.Cells = append(c.Cells, Cell{
				Place: Place{c.Locks[0], fault, "none"}, Verdict: v,
				Runs: []Run{{Verdict: v, Violated: []checker.Property{checker.MutualExclusion}}},
			})
		}
		for _, width := range []int{80, 60} {
			fits(t, c, width)
		}
	}
}

// TestJUnit: only a valid cell passes.
func TestJUnit(t *testing.T) {
	for _, c := range []struct {
		name                             string
		matrix                           Comparison
		tests, failures, errors, skipped int
	}{
		{"without thresholds", eachKind(hostile), 6, 1, 3, 1},
		{"with thresholds", withThresholds(hostile), 7, 1, 4, 1},
		{"a valid cell", Comparison{Cells: eachKind("").Cells[:1]}, 1, 0, 0, 0},
		{"a whole that nothing can be run of", Comparison{Cells: eachKind("").Cells[2:3]}, 2, 0, 1, 1},
		{"a part that nothing was left for", Comparison{Shard: "3/3", Cells: eachKind("").Cells[5:6]}, 1, 0, 0, 1},
	} {
		var file junit.Testsuites
		if err := xml.Unmarshal([]byte(written(t, junitOf, c.matrix)), &file); err != nil || len(file.Suites) != 1 {
			t.Fatalf("%s: %d suites, %v", c.name, len(file.Suites), err)
		}
		suite := file.Suites[0]
		took := 0
		for _, test := range suite.Testcases {
			if test.Time == "12.340" {
				took++
			}
			if failed := test.Failure; failed != nil && !strings.Contains(failed.Data, "again: lockcheck test --nemesis 'pause:one server") {
				t.Errorf("%s: how to make the run again is missing: %+v", c.name, failed)
			}
		}
		if ran := len(slices.DeleteFunc(slices.Clone(c.matrix.Cells), func(c Cell) bool { return len(c.Runs) == 0 })); took != ran {
			t.Errorf("%s: %d cases have the time of their cell, want %d", c.name, took, ran)
		}
		if suite.Tests != c.tests || suite.Failures != c.failures || suite.Errors != c.errors || suite.Skipped != c.skipped {
			t.Errorf("%s: %d tests, %d failures, %d errors, %d skipped", c.name, suite.Tests, suite.Failures, suite.Errors, suite.Skipped)
		}
	}
}

func TestAnnotations(t *testing.T) {
	const again = "; again: lockcheck test --nemesis 'pause:one server"
	text := written(t, annotationsOf, withThresholds("\n::error::made up, 100%"))
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	levels := []string{"::error title=", "::warning title=", "::warning title=", "::warning title=lockcheck%3A all cells::"}
	if len(lines) != len(levels) {
		t.Fatalf("%d lines, want one for each cell that is not valid, and one for the run that is missing:\n%s", len(lines), text)
	}
	for i, level := range levels[:3] {
		title, message, _ := strings.Cut(strings.TrimPrefix(lines[i], level), "::")
		if !strings.HasPrefix(lines[i], level) || strings.ContainsAny(title, ":,") || message == "" || strings.Contains(message, "violation: violation") || !strings.Contains(message, again) {
			t.Errorf("%q", lines[i])
		}
	}
	if !strings.HasPrefix(lines[3], levels[3]) {
		t.Errorf("%q", lines[3])
	}
	if valid := eachKind(""); written(t, annotationsOf, Comparison{Cells: valid.Cells[:1]}) != "" {
		t.Error("a valid cell is annotated")
	}
}

func TestJSON(t *testing.T) {
	var read Comparison
	if err := json.Unmarshal([]byte(written(t, jsonOf, withThresholds(""))), &read); err != nil {
		t.Fatal(err)
	}
	if read.Verdict != checker.Violation || read.Missing() != 1 || len(read.Cells) != 6 {
		t.Errorf("read back: %+v", read)
	}
}

// TestRepetitions: a cell that is not as wanted is listed with a command. A valid cell is listed only if it
// got worse.
func TestRepetitions(t *testing.T) {
	for _, c := range []struct {
		name            string
		verdict, counts checker.Verdict
		listed          bool
	}{
		{"valid", checker.Valid, checker.Valid, false},
		{"known", checker.Violation, checker.Valid, false},
		{"a violation", checker.Violation, checker.Violation, true},
		{"undecided", checker.Undecided, checker.Undecided, true},
		{"broken", checker.Broken, checker.Broken, true},
		{"of an older file", checker.Violation, "", true},
		{"valid, and worse than the baseline", checker.Valid, checker.Violation, true},
		{"valid, and made otherwise than the baseline", checker.Valid, checker.Undecided, false},
	} {
		m := eachKind("")
		m.Cells = m.Cells[:1]
		m.Cells[0].Verdict, m.Cells[0].Counts = c.verdict, c.counts
		if n := len(m.repetitions(0).Items); n > 0 != c.listed || strings.Contains(written(t, annotationsOf, m), "lockcheck test --nemesis") != c.listed {
			t.Errorf("%s: %d are listed", c.name, n)
		}
	}
}

// TestVersionsOfLocks: versions name the origin of the servers, also if two origins run the same lock.
func TestVersionsOfLocks(t *testing.T) {
	c := Comparison{Cells: []Cell{
		{Place: Place{Lock: "redis"}}, // not run yet
		{Place: Place{Lock: "redis"}, Versions: map[string]string{"redis": "7.0.15"}, Source: "built from Debian packages"},
		{Place: Place{Lock: "redis@official"}, Versions: map[string]string{"redis": "7.4.2"}, Source: "official image x/redis:7.4.2 (sha256:0b33)"},
		{Place: Place{Lock: "memory"}, Versions: map[string]string{"lockcheck": "v1.0.0"}},
	}}
	for lock, want := range map[string]string{
		"redis":          "redis 7.0.15; servers built from Debian packages",
		"redis@official": "redis 7.4.2; servers official image x/redis:7.4.2 (sha256:0b33)",
		"memory":         "lockcheck 1.0.0",
		"etcd":           "",
	} {
		if got := c.versions(lock); got != want {
			t.Errorf("%s: %q, want %q", lock, got, want)
		}
	}
}

// TestEarlierFiles: a file of an earlier version can be read, and rewriting it loses nothing.
func TestEarlierFiles(t *testing.T) {
	text, err := os.ReadFile("testdata/earlier/comparison.json")
	if err != nil {
		t.Fatal(err)
	}
	var c Comparison
	var before, after any
	if err := errors.Join(json.Unmarshal(text, &c), json.Unmarshal(text, &before), json.Unmarshal([]byte(written(t, jsonOf, c)), &after)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(before, after) {
		t.Errorf("written again it is\n%s", written(t, jsonOf, c))
	}
	if line := NewLine(c); line.Verdict != "violation" || len(c.Cells) != 2 || c.Cells[1].Place != (Place{"memory", "pause:holder", "none"}) {
		t.Errorf("%+v", line)
	}
	f, err := Open("testdata/earlier")
	if err != nil {
		t.Fatal(err)
	}
	failed, _ := f.latestRun(Place{"memory", "none", "none"}, 1)
	late, _ := f.latestRun(Place{"memory", "pause:holder", "none"}, 1)
	if f.Shard != (suites.Shard{N: 1, Of: 2}) || failed.Failed != "no engine" || failed.Took == 0 || !late.OutOfTime {
		t.Errorf("shard %s, entries %+v", f.Shard, f.entries())
	}
}
