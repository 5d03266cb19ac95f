package suites

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/reports"
)

// TestStoredRuns: a run counts for its experiment unless it was interrupted. A run of no experiment never
// counts.
func TestStoredRuns(t *testing.T) {
	store := t.TempDir()
	for name, c := range map[string]struct {
		experiment  string
		interrupted bool
	}{"a": {"claim/x", false}, "b": {"claim/x", true}, "c": {"", false}} {
		folder := filepath.Join(store, name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		h := history.Header{Parameters: map[string]string{ExperimentParameter: c.experiment}}
		r := checker.Results{Verdict: checker.Valid, Interrupted: c.interrupted}
		if err := runs.WriteFile(folder, runs.ResultsFile, func(w io.Writer) error { return reports.JSON(w, h, r) }); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := StoredRuns(store)
	if err != nil || len(stored) != 1 || len(stored["claim/x"]) != 1 || stored["claim/x"][0].Folder != "a" {
		t.Errorf("stored are %v, %v: want a alone", stored, err)
	}
}
