package main

import (
	"fmt"
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

// findingRow and recordRow are rows of the tables of reproductions in docs/findings.md or
// docs/findings-examples.md, and in README.md.
var (
	findingRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| [^|]+ \\| (\\d+) of (\\d+)[^|]* \\| [^|]+ \\| (\\d+) of (\\d+)[^|]* \\|")
	recordRow  = regexp.MustCompile("(?m)^\\| [^|]+ \\| [^|]+ \\| `([^`]+)`(?: \\((\\d+) locks\\))? \\| (\\d+ of \\d+, \\d+ of \\d+)(?: in all)? \\|$")
)

// record counts runs: as expected and made of a finding, and of its control.
type record [4]int

func (r record) String() string { return fmt.Sprintf("%d of %d, %d of %d", r[0], r[1], r[2], r[3]) }

// wrongRecord says where the track record of the README is not that of the findings. A row
// that stands for several findings has the sum of theirs.
func wrongRecord(readme, findings string) []string {
	observed := make(map[string]record)
	for _, row := range findingRow.FindAllStringSubmatch(findings, -1) {
		var r record
		for i := range r {
			r[i], _ = strconv.Atoi(row[2+i]) // the expression has found digits
		}
		observed[row[1]] = r
	}
	var wrong []string
	for _, row := range recordRow.FindAllStringSubmatch(readme, -1) {
		name, said := nameOf(row[1]), row[3]
		family, is := strings.CutSuffix(name, "LOCK")
		n, sum := 0, record{}
		for finding, seen := range observed {
			lock, ofFamily := strings.CutPrefix(finding, family)
			if finding != name && !(is && ofFamily && slices.Contains(clients.Names(), lock)) {
				continue
			}
			n++
			for i := range sum {
				sum[i] += seen[i]
			}
			delete(observed, finding)
		}
		switch {
		case is && fmt.Sprint(n) != row[2] || !is && n != 1:
			wrong = append(wrong, fmt.Sprintf("%s stands for %d findings", name, n))
		case sum.String() != said:
			wrong = append(wrong, fmt.Sprintf("%s: %s, observed %s", name, said, sum))
		}
	}
	for finding := range observed {
		wrong = append(wrong, finding+" is missing")
	}
	slices.Sort(wrong)
	return wrong
}

// nameOf is the name of the finding that an argument of repro stands for.
func nameOf(argument string) string {
	if r, err := repros.FromFile(filepath.Join(repository, argument)); err == nil {
		return r.Name
	}
	return argument
}

// TestTrackRecord: the README says of each finding what was observed last.
func TestTrackRecord(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, page := range []string{"findings.md", "findings-examples.md"} {
		findings, err := os.ReadFile(filepath.Join(repository, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		if len(findingRow.FindAllString(string(findings), -1)) == 0 {
			t.Fatalf("docs/%s has no findings", page)
		}
		all.Write(findings)
	}
	for _, what := range wrongRecord(string(readme), all.String()) {
		t.Errorf("README.md: %s", what)
	}
}

// TestTrackRecordControl: what was not observed cannot be said, and nothing be left out.
func TestTrackRecordControl(t *testing.T) {
	const findings = "| `a` | `redis` | valid | 1 of 2 (it was late) | valid | 3 of 3 | 5s |\n" +
		"| `stop-redis` | `redis` | valid | 4 of 4 | valid | 4 of 4 | 5s |\n" +
		"| `stop-etcd` | `etcd` | valid | 4 of 4 | valid | 4 of 4 | 5s |\n"
	const kazoo = "| `kazoo-leaked-contender` | `examples/kazoo/lock.yaml` | valid | 5 of 5 | valid | 5 of 5 | 5s |\n"
	const byFile = "| x | y | `examples/kazoo/leaked-contender.yaml` | 5 of 5, 5 of 5 |\n"
	if got := wrongRecord(byFile, kazoo); len(got) > 0 {
		t.Errorf("a finding that is named by its file: %q", got)
	}
	const a, stop = "| x | y | `a` | 1 of 2, 3 of 3 |\n", "| x | y | `stop-LOCK` (2 locks) | 8 of 8, 8 of 8 in all |\n"
	for _, c := range []struct {
		readme, want string
	}{
		{a + stop, "[]"},
		{stop, "[a is missing]"},
		{strings.Replace(a, "1 of 2", "2 of 2", 1) + stop, "[a: 2 of 2, 3 of 3, observed 1 of 2, 3 of 3]"},
		{strings.Replace(a, "`a`", "`b`", 1) + stop, "[a is missing b stands for 0 findings]"},
		{a + strings.Replace(stop, "2 locks", "3 locks", 1), "[stop-LOCK stands for 2 findings]"},
	} {
		if got := fmt.Sprint(wrongRecord(c.readme, findings)); got != c.want {
			t.Errorf("%q: %s, want %s", c.readme, got, c.want)
		}
	}
}
