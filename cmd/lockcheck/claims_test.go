package main

import (
	"path/filepath"
	"testing"
)

// TestClaims runs an experiment on the embedded lock and finds it in the table. Unknown names and a store
// without runs are reported.
func TestClaims(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	defer s.nothingLeft()
	const one = "^claim/ask-server-stopped$"
	s.want(s.run("repro", "claims", "run", "--store", s.store, "--only", one), exitOK, "as expected: ", "")
	s.want(s.run("repro", "claims", "table", "--store", s.store, "--links", "../runs"), exitOK, "[claim/ask-server-stopped](../runs/memory-set-pause-ask/", "")
	// One of five experiments does not decide the verdict.
	s.want(s.run("repro", "claims", "table", "--store", s.store), exitOK, "| **open**<br>not run: claim/ask-paused-redis, ", "")

	s.want(s.run("repro", "claims", "run", "--store", s.store, "--only", one, "--missing"), exitOK, "", "")
	if s.stdout != "" {
		t.Errorf("run again though it was there:\n%s", s.stdout)
	}
	s.want(s.run("repro", "claims", "run", "--only", "^moon$"), exitUsage, "", "--only ^moon$: nothing matches")
	s.want(s.run("repro", "claims", "run", "--only", "("), exitUsage, "", "--only: ")
	s.want(s.run("repro", "claims", "run", "--parallel", "0"), exitUsage, "", "--parallel 0: it must be at least 1")
	s.want(s.run("repro", "claims", "table", "--store", filepath.Join(s.store, "nowhere")), exitUsage, "", "no runs are stored")
}
