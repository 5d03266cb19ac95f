package reports

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"lockcheck/checker"
)

var update = flag.Bool("update", false, "write golden files anew")

// examplePage has a block of each kind. Every text that can come from outside contains the given text.
func examplePage(text string) Page {
	table := Table{
		Caption: "What happened" + text, Heat: true,
		Columns: []Column{{Name: "lock"}, {Name: "pause:one server" + text, Summary: "a pause" + text}, {Name: "clock"}},
		Rows: []Row{
			{Cells: []Cell{{Text: "redis" + text}, {Text: "lost", More: "in 1 of 2 runs", Verdict: checker.Violation, Link: "#redis", Title: text, SortKey: "0"}, {Text: "undecided", Short: "undec.", Verdict: checker.Undecided}}},
			{Cells: []Cell{{Text: "etcd"}, {Text: "valid", Verdict: checker.Valid, Links: []Link{{Text: "known" + text, Href: "#known", Verdict: checker.Violation}}}, {Text: "–"}}},
		},
	}
	figures := Table{
		Summary: "Figures" + text,
		Columns: Columns("fault", "runs", "acquire", "command"),
		Rows: []Row{{
			Anchor: "redis", Note: "Two runs." + text, Command: []string{"lockcheck", "test", text},
			Cells: []Cell{{Text: "clock"}, {Links: []Link{{Text: "seed 1", Href: "runs/a b" + text}, {Text: "seed 2"}}}, LengthCells([]time.Duration{time.Second}, []string{"slow" + text})[0], {Text: "lockcheck repro", Code: true}},
		}},
	}
	return Page{Title: "An example" + text, Blocks: []Block{
		Conclusion{Verdict: checker.Violation, Text: "Two runs." + text}, Heading{Level: 2, Text: "Seen" + text, Anchor: "seen"}, Heading{Level: 3, Text: "guard none"},
		table, Note("A note." + text), Text("A paragraph." + text),
		List{Items: []Item{{Text: "one" + text}, {Verdict: checker.Undecided, Text: "two"}}},
		List{Summary: "Again" + text, Items: []Item{{Text: "three", Command: []string{"lockcheck", "test", "--seed", "1" + text}}}},
		List{Summary: "nothing"}, Terms{{"word" + text, "meaning" + text}}, Picture{Title: "A picture" + text, File: "a.svg", SVG: "<svg/>"},
		Drawing{{{Text: "1 s "}, {Verdict: checker.Valid, Text: "."}}}, figures,
	}}
}

func writtenPage(t *testing.T, p Page) map[string]string {
	t.Helper()
	var terminal, markdown, html bytes.Buffer
	for _, err := range []error{p.WriteTerminal(&terminal, TerminalOptions{Width: 60}), p.WriteMarkdown(&markdown), p.WriteHTML(&html)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, body, _ := strings.Cut(html.String(), "<body>")
	body, _, _ = strings.Cut(body, "<script>")
	return map[string]string{"page.txt": terminal.String(), "page.md": markdown.String(), "page.html": strings.ReplaceAll(body, "><", ">\n<")}
}

// TestPage compares each kind of block, for each target, with a stored file. With -update it rewrites the
// files.
func TestPage(t *testing.T) {
	for name, got := range writtenPage(t, examplePage("")) {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is now\n%s", path, got)
		}
	}
}

// TestPageHostile: text from outside neither controls a terminal nor becomes markup.
func TestPageHostile(t *testing.T) {
	page := examplePage(hostile + "|`")
	leads := Link{Text: "leads", Href: " JavaScript:alert(1)"}
	page.Blocks = append(page.Blocks, List{Items: []Item{{Link: leads}}}, Table{Columns: Columns("a", "b"), Rows: []Row{{Cells: []Cell{{}, {Link: leads.Href, Links: []Link{leads}}}}}})
	for name, got := range writtenPage(t, page) {
		bad := []string{"\x1b", "\x00", "\x07", "\u202e"}
		if name != "page.txt" {
			bad = append(bad, "<script>alert", "JavaScript:")
		}
		if name == "page.html" {
			bad = append(bad, `"' onload`)
		}
		for _, bad := range bad {
			if strings.Contains(got, bad) {
				t.Errorf("%s has %q:\n%s", name, bad, got)
			}
		}
	}
	// Each row of a table has as many cells as its header.
	columns := 0
	for line := range strings.Lines(writtenPage(t, examplePage(hostile+"|`"))["page.md"]) {
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		switch {
		case !strings.HasPrefix(line, "|"):
			columns = 0
		case columns == 0:
			columns = n
		case n != columns:
			t.Errorf("%d columns, want %d: %s", n-1, columns-1, line)
		}
	}
}

// TestTableOnTerminal: columns that do not fit follow below, and no line is wider than the terminal.
func TestTableOnTerminal(t *testing.T) {
	table := Table{Columns: Columns("lock", "pause:holder", "partition:holder", "kill:one server"), Rows: []Row{{Cells: Cells("a lock of a long name", "valid", "overlap", "lost")}}}
	for width, parts := range map[int]int{80: 1, 40: 1, 25: 3} {
		tt := &terminal{width: width}
		table.terminal(tt)
		text := tt.out.String()
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: a line of %d: %s", width, n, line)
			}
		}
		if got := strings.Count(text, "a lock"); got != parts {
			t.Errorf("width %d: %d parts, want %d:\n%s", width, got, parts, text)
		}
	}
}

// TestAxis: equal ratios have equal distances, a single value is in the middle, and a linear axis is linear.
func TestAxis(t *testing.T) {
	var a Axis
	for _, v := range []float64{1, 100, 0} {
		a.Include(v)
	}
	if a.along(10) != 0.5 || a.At(0.5) != 10 || len(a.Quarters()) != 5 {
		t.Errorf("10 is at %v, the middle is %v", a.along(10), a.At(0.5))
	}
	if share := (Axis{High: 1, Linear: true}); share.along(0.25) != 0.25 || share.At(0.75) != 0.75 {
		t.Errorf("a share is at %v", share.along(0.25))
	}
	if one := (Axis{Low: 5, High: 5}); one.along(5) != 0.5 || one.At(1) != 5 {
		t.Errorf("one value is at %v", one.along(5))
	}
}
