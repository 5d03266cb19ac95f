package web

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/suites/matrix"
	"lockcheck/reports"
)

// comparison writes a comparison of two locks.
func (s *shelf) comparison(folder string, began time.Time, verdicts ...checker.Verdict) {
	s.t.Helper()
	c := matrix.Comparison{
		Schema: matrix.Schema, Began: began, Took: time.Minute,
		Locks: []string{"redis", "etcd"}, Faults: []string{"pause"}, Guards: []string{"none"},
	}
	for _, v := range verdicts {
		c.Cells = append(c.Cells, matrix.Cell{
			Place: matrix.Place{Lock: "redis", Fault: "pause", Guard: "none"}, Verdict: v, Runs: []matrix.Run{{Verdict: v}},
		})
	}
	var text bytes.Buffer
	if err := reports.WriteJSON(&text, c); err != nil {
		s.t.Fatal(err)
	}
	s.file(folder+"/comparison.json", text.String())
	s.file(folder+"/comparison.html", "<p>the tables of "+folder+"</p>")
}

var comparedRows = regexp.MustCompile(`(?s)<tr><td class="time">([^<]*)</td><th scope="row"><a href="([^"]*)">([^<]*)</a></th><td><span class="badge [a-z]*">([^<]*)</span></td><td>([^<]*)</td></tr>`)

// comparedIn returns the comparisons that a page lists, one a line.
func comparedIn(page string) []string {
	var out []string
	for _, m := range comparedRows.FindAllStringSubmatch(page, -1) {
		out = append(out, strings.Join(m[1:], " | "))
	}
	return out
}

// TestComparisons: comparisons come before the runs, the newest first, each with its verdict.
func TestComparisons(t *testing.T) {
	s := newShelf(t)
	s.run("redis/1", document("redis", "2026-01-01T00:00:00Z", 0))
	site := s.serve()
	if page := site.page("/"); len(comparedIn(page)) > 0 || strings.Contains(page, "Comparisons") {
		t.Error("there is a comparison in a store that has none")
	}
	day := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.comparison("compare/a", day, checker.Valid, checker.Violation, checker.Valid)
	s.comparison("compare/b", day.Add(time.Hour), checker.Valid)
	page := site.page("/")
	want := []string{
		"2026-01-02 04:04:05 | /files/compare/b/comparison.html | compare/b | valid | 1 run of 2 locks in 1m0s; cells: 1 valid.",
		"2026-01-02 03:04:05 | /files/compare/a/comparison.html | compare/a | violation | 3 runs of 2 locks in 1m0s; cells: 2 valid, 1 violation.",
	}
	if got := comparedIn(page); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if strings.Index(page, "compare/a/comparison.html") > strings.Index(page, `name="run"`) {
		t.Error("the runs come before the comparisons")
	}
	site.contains(site.page("/files/compare/a/comparison.html"), "the tables of compare/a")
}

// TestBrokenComparison: an unreadable comparison is reported, and hides neither its page nor other comparisons.
func TestBrokenComparison(t *testing.T) {
	for name, c := range map[string]struct{ text, verdict, want string }{
		"cut off":           {`{"schema": 1,`, "no results", "comparison.json cannot be read: unexpected end of JSON input"},
		"of another schema": {`{"schema": 3}`, "no results", "comparison.json cannot be read: it has schema 3, and this lockcheck knows 2"},
		"of no schema":      {`{}`, "no results", "comparison.json cannot be read: it has schema 0, and this lockcheck knows 2"},
		"missing":           {"", "no results", "It has no comparison.json."},
		"empty":             {`{"schema": 1}`, "undecided", "0 runs of 0 locks in 0s."},
		"unheard of":        {`{"schema": 1, "cells": [{"verdict": "fine", "runs": [{}]}]}`, "broken", "1 run of 0 locks in 0s; cells: 1 broken."},
		"hostile":           {`{"schema": 1, "shard": "<b>1/2"}`, "no results", "Part &lt;b&gt;1/2: 0 runs of 0 locks in 0s."},
		"of schema 1":       {`{"schema": 1, "locks": ["a", "b"], "cells": [{"verdict": "valid", "runs": [{}]}]}`, "valid", "1 run of 2 locks in 0s; cells: 1 valid."},
		"whole":             {`{"schema": 2, "locks": ["a"], "cells": [{"verdict": "valid", "runs": [{}]}]}`, "valid", "1 run of 1 lock in 0s; cells: 1 valid."},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			s.run("redis/1", document("redis", "2026-01-01T00:00:00Z", 0))
			s.comparison("compare/sound", time.Unix(0, 0), checker.Valid)
			s.file("compare/other/comparison.html", "tables")
			if c.text != "" {
				s.file("compare/other/comparison.json", c.text)
			}
			site := s.serve()
			page := site.page("/")
			got := comparedIn(page)
			if len(got) != 2 {
				t.Fatalf("got %q", got)
			}
			i := slices.IndexFunc(got, func(line string) bool { return strings.Contains(line, "| compare/other |") })
			if i < 0 || !strings.HasSuffix(got[i], "| "+c.verdict+" | "+c.want) {
				t.Errorf("got %q, want %q and %q", got, c.verdict, c.want)
			}
			if !strings.HasSuffix(got[1-i], "| valid | 1 run of 2 locks in 1m0s; cells: 1 valid.") {
				t.Errorf("the other one is %q", got[1-i])
			}
			site.contains(page, "no violation", "1 of 1 runs")
			site.contains(site.page("/files/compare/other/comparison.html"), "tables")
		})
	}
}

// TestComparisonOutside: a link out of the store is not followed.
func TestComparisonOutside(t *testing.T) {
	s := newShelf(t)
	s.comparison("compare/a", time.Unix(0, 0), checker.Valid)
	s.comparison("../outside", time.Unix(0, 0), checker.Violation)
	site := s.serve()
	site.contains(site.page("/"), "1 valid.")
	if err := os.Remove(filepath.Join(s.folder, "compare/a/comparison.json")); err != nil {
		t.Fatal(err)
	}
	s.link("compare/a/comparison.json", "../../../outside/comparison.json")
	page := site.page("/")
	site.contains(page, "comparison.json cannot be read")
	if strings.Contains(page, "1 violation.") {
		t.Error("a file outside of the store was read")
	}
}

// TestManyComparisons: all except the newest are folded.
func TestManyComparisons(t *testing.T) {
	for _, n := range []int{maxComparisons, maxComparisons + 2} {
		s := newShelf(t)
		for i := range n {
			s.comparison(fmt.Sprintf("compare/%d", i), time.Unix(int64(i), 0), checker.Valid)
		}
		page := s.serve().page("/")
		shown, folded, _ := strings.Cut(page, "<details>")
		if a, b := len(comparedIn(shown)), len(comparedIn(folded)); a != maxComparisons || a+b != n {
			t.Errorf("%d comparisons: %d shown, %d folded", n, a, b)
		}
		if says := strings.Contains(folded, "<summary>2 earlier</summary>"); says != (n > maxComparisons) {
			t.Errorf("%d comparisons: says that there are more: %v", n, says)
		}
	}
}

// TestKnownComparison: a comparison is read again only after its file has changed.
func TestKnownComparison(t *testing.T) {
	s := newShelf(t)
	s.comparison("compare/a", time.Unix(0, 0), checker.Valid)
	site := s.serve()
	site.contains(site.page("/"), "1 valid.")
	path := filepath.Join(s.folder, "compare/a/comparison.json")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.file("compare/a/comparison.json", strings.Replace(string(text), "60000000000", "80000000000", 1)) // same length as before
	for _, c := range []struct {
		changed time.Time
		want    string
	}{{before.ModTime(), "in 1m0s"}, {before.ModTime().Add(time.Second), "in 1m20s"}} {
		if err := os.Chtimes(path, c.changed, c.changed); err != nil {
			t.Fatal(err)
		}
		site.contains(site.page("/"), c.want)
	}
}

// TestOtherPages: pages that are neither runs nor comparisons are listed, and the runs that they link to are
// served. A page within a run is not listed, and neither is one outside the known places.
func TestOtherPages(t *testing.T) {
	s := newShelf(t)
	s.run("redis/1", document("redis", "2026-01-01T00:00:00Z", 0))
	s.file("redis/1/remedies.html", "a page of the run")
	s.file("remedies.html", "a page of nothing")
	if page := s.serve().page("/"); strings.Contains(page, "Other pages") {
		t.Error("there is a page in a store that has none")
	}
	s.file("remedies/a/remedies.html", "side by side")
	s.file("sweeps/<b>/sweep.html", "a chart")
	s.file("hunt/c/hunt.html", "what was hunted for")
	s.file("hunt/c/finds/one.yaml", "a find")
	s.run("remedies/a/runs/redis/2", document("redis", "2026-01-02T00:00:00Z", 0))
	site := s.serve()
	page := site.page("/")
	site.contains(page, "Other pages", ">sweeps/&lt;b&gt;/sweep.html</a>")
	site.contains(site.page(linkOf(t, page, "remedies/a/remedies.html")), "side by side")
	site.contains(site.page(linkOf(t, page, "sweeps/&lt;b&gt;/sweep.html")), "a chart")
	site.contains(site.page(linkOf(t, page, "hunt/c/hunt.html")), "what was hunted for")
	site.contains(site.page("/files/hunt/c/finds/one.yaml"), "a find")
	site.contains(site.page("/files/remedies/a/runs/redis/2/report.html"), "report of remedies/a/runs/redis/2")
	if n := strings.Count(page, "remedies.html"); n != 2 { // in its address and its name
		t.Errorf("remedies.html is there %d times", n)
	}
}
