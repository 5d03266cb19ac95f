package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockcheck/internal/runs"
)

// TestWithRemedies: after a violation each remedy that the lock supports is run, and the exit code stays that
// of the first run. Without a violation no remedy is run.
func TestWithRemedies(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	args := []string{"--nemesis", "none", "--time-limit", "3s", "--with-remedies"}
	s.want(s.run(append([]string{"test", "--lock", "none", "--store", s.store, "--min-ops", "5", "--seed", "1"}, args...)...), exitViolation, "VIOLATION", "1 of 1: with --guard cas")
	for _, want := range []string{"as asked for", "--guard cas  ", "not tried: --guard fence: the lock none has no fencing token"} {
		if !strings.Contains(s.stdout, want) {
			t.Errorf("%q is not in\n%s", want, s.stdout)
		}
	}
	pages, err := filepath.Glob(filepath.Join(s.store, "remedies", "2*", runs.RemediesFile))
	if err != nil || len(pages) != 1 {
		t.Fatal(pages, err)
	}
	reports, err := filepath.Glob(filepath.Join(filepath.Dir(pages[0]), "runs", "*", "2*", runs.ReportFile))
	if err != nil || len(reports) != 2 {
		t.Error(reports, err)
	}
	page, err := os.ReadFile(pages[0])
	if err != nil || strings.Count(string(page), "/report.html\"") != 2 {
		t.Errorf("%v\n%s", err, page)
	}
	s.want(s.test(args...), exitOK, "No remedies were tried: the run is valid.", "")
	s.want(s.test("--with-remedies", "--test-count", "2"), exitUsage, "", "exclude each other")
	s.want(s.run("test", "--lock", "redlok", "--with-remedies"), exitUsage, "", `unknown lock "redlok"`)
}
