package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockcheck/clients"
	"lockcheck/internal/suites/repros"
)

// recordRow is a row of docs/findings.md: the argument of `lockcheck repro`, the number of locks it covers,
// and how many runs of the finding and of its control were as expected. Rows of libraries have no counts.
var recordRow = regexp.MustCompile("(?m)^\\| [^|]+ \\| [^|]+ \\| `([^`]+)`(?: \\((\\d+) locks\\))? \\|(?: (\\d+) of (\\d+), (\\d+) of (\\d+) \\|)? [^|]+ \\|$")

// wrongRecord says where a page differs from the existing reproductions: a reproduction is missing, covers
// another number of locks, or has more expected runs than runs.
func wrongRecord(page string, names []string) (wrong []string) {
	missing := make(map[string]bool)
	for _, name := range names {
		missing[name] = true
	}
	for _, row := range recordRow.FindAllStringSubmatch(page, -1) {
		name, locks := row[1], 0
		family, stands := strings.CutSuffix(name, "LOCK")
		for _, known := range names {
			lock, ofFamily := strings.CutPrefix(known, family)
			if known == name || stands && ofFamily && slices.Contains(clients.Names(), lock) {
				locks++
				delete(missing, known)
			}
		}
		if stands && strconv.Itoa(locks) != row[2] || !stands && locks != 1 {
			wrong = append(wrong, fmt.Sprintf("%s stands for %d reproductions", name, locks))
		}
		for _, at := range []int{3, 5} {
			asExpected, _ := strconv.Atoi(row[at]) // the expression has found digits, or nothing
			if made, _ := strconv.Atoi(row[at+1]); asExpected > made {
				wrong = append(wrong, fmt.Sprintf("%s: %d of %d", name, asExpected, made))
			}
		}
	}
	for name := range maps.Keys(missing) {
		wrong = append(wrong, name+" is missing")
	}
	slices.Sort(wrong)
	return wrong
}

// TestTrackRecord: the page of findings has every reproduction of lockcheck and of the examples.
func TestTrackRecord(t *testing.T) {
	t.Parallel()
	all, err := repros.All()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
	}
	files, err := filepath.Glob(filepath.Join(repository, "examples", "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, err := repros.FromFile(file); err == nil { // other files are lock files and suites
			path, err := filepath.Rel(repository, file)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, path)
		}
	}
	page, err := os.ReadFile(filepath.Join(repository, "docs", "findings.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range wrongRecord(string(page), names) {
		t.Errorf("docs/findings.md: %s", what)
	}
	if len(names) < 50 {
		t.Errorf("only %d reproductions were found", len(names))
	}
}

// TestTrackRecordControl: missing and invented reproductions are found, and invented runs, too.
func TestTrackRecordControl(t *testing.T) {
	names := []string{"a", "stop-redis", "stop-etcd", "examples/kazoo/x.yaml"}
	const a, kazoo = "| x | y | `a` | 1 of 2, 3 of 3 | 0 of 5, none |\n", "| x | y | `examples/kazoo/x.yaml` | none |\n"
	const stop = "| x | y | `stop-LOCK` (2 locks) | 8 of 8, 8 of 8 | none |\n"
	for _, c := range []struct {
		page, want string
	}{
		{a + stop + kazoo, "[]"},
		{stop + kazoo, "[a is missing]"},
		{a + stop, "[examples/kazoo/x.yaml is missing]"},
		{strings.Replace(a, "3 of 3", "4 of 3", 1) + stop + kazoo, "[a: 4 of 3]"},
		{strings.Replace(a, "`a`", "`b`", 1) + stop + kazoo, "[a is missing b stands for 0 reproductions]"},
		{a + kazoo + strings.Replace(stop, "2 locks", "3 locks", 1), "[stop-LOCK stands for 2 reproductions]"},
	} {
		if got := fmt.Sprint(wrongRecord(c.page, names)); got != c.want {
			t.Errorf("%q: %s, want %s", c.page, got, c.want)
		}
	}
}
