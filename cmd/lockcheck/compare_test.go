package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockcheck/clusters/clustertest"
)

// suiteFile writes a suite and returns its path.
func (s *shell) suiteFile(text string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "suite.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// quick is the shortest run of the embedded lock.
const quick = "locks: [memory]\nfaults: [none]\nguards: [none]\nttl: 300ms\ntime-limit: 3s\nmin-ops: 5\n"

// TestCompareThresholds: thresholds determine the exit code. Under GitHub Actions missed thresholds are
// annotated and summarised. Elsewhere nothing of that is written.
func TestCompareThresholds(t *testing.T) {
	t.Parallel()
	clustertest.StartsServers(t)
	for _, c := range []struct {
		name, thresholds string
		github           bool
		code             int
		stdout           string
	}{
		{"kept", "{lost: 0, min_ops: 5}", true, exitOK, "2 thresholds kept, 0 not"},
		{"missed", "{lost: 0, min_ops: 1000000}", true, exitViolation, "::error title=lockcheck%3A memory%2C none%2C guard none::violation: min_ops is "},
		{"missed elsewhere", "{min_ops: 1000000}", false, exitViolation, "0 thresholds kept, 1 not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			summary := filepath.Join(t.TempDir(), "summary.md")
			s.env["GITHUB_STEP_SUMMARY"] = summary
			if c.github {
				s.env["GITHUB_ACTIONS"] = "true"
			}
			out := filepath.Join(s.store, "out")
			s.want(s.run("compare", "-f", s.suiteFile(quick+"thresholds: "+c.thresholds+"\n"), "--out", out), c.code, c.stdout, "1 of 1")
			s.nothingLeft()
			if strings.Contains(s.stdout, "::error") && (!c.github || c.code == exitOK) {
				t.Errorf("annotated:\n%s", s.stdout)
			}
			text, err := os.ReadFile(summary)
			if c.github != (err == nil && strings.Contains(string(text), "| memory | 0 of 1 | valid (no failure in 1 run")) && c.code == exitOK || !c.github && err == nil {
				t.Errorf("summary %q, %v", text, err)
			}
			for _, name := range []string{"comparison.html", "comparison.md", "comparison.json", "junit.xml", "suite.yaml"} {
				if _, err := os.Stat(filepath.Join(out, name)); err != nil {
					t.Error(err)
				}
			}
			// A complete comparison is shown again with the same verdict.
			s.want(s.run("compare", "--resume", out), c.code, c.stdout, "")
			s.want(s.run("compare", "merge", "--out", filepath.Join(s.store, "whole"), out), c.code, c.stdout, "")
		})
	}
}

// TestComparePart: a part reports its findings, but leaves the exit code and annotations to the whole. The
// whole is undecided while a part is missing.
func TestComparePart(t *testing.T) {
	t.Parallel()
	clustertest.StartsServers(t)
	s := newShell(t)
	s.env["GITHUB_ACTIONS"] = "true"
	suite := s.suiteFile(strings.Replace(quick, "[none]", "[none, clock]", 1) + "seeds: 2\nthresholds: {wait_p99: 1us}\n")
	part := filepath.Join(s.store, "part")
	s.want(s.run("compare", "-f", suite, "--shard", "1/2", "--out", part), exitOK, "VIOLATION", "1 of 1")
	if strings.Contains(s.stdout, "::") || !strings.Contains(s.stdout, "1 run not made yet") {
		t.Errorf("a part is annotated, or does not say what it lacks:\n%s", s.stdout)
	}
	s.want(s.run("compare", "merge", "--out", filepath.Join(s.store, "whole"), part), exitViolation, "::error title=lockcheck%3A memory", "")
	if !strings.Contains(s.stdout, "1 run not made yet") {
		t.Errorf("the whole does not say what it lacks:\n%s", s.stdout)
	}
	s.nothingLeft()
}

// TestCompareWithoutDocker: without Docker, compare runs the locks that do not need it, and reports which
// locks it left out. Resuming fails, because no other lock is left to run.
func TestCompareWithoutDocker(t *testing.T) {
	t.Parallel()
	clustertest.StartsServers(t)
	s := newShell(t)
	out := filepath.Join(s.store, "out")
	suite := s.suiteFile(strings.Replace(quick, "[memory]", "[memory, redis, redlock]", 1))
	s.want(s.run("compare", "-f", suite, "--out", out), exitUndecided, "2 runs not made yet", "left out: redis, redlock: no Docker engine")
	s.nothingLeft()
	s.want(s.run("compare", "--resume", out), exitBroken, "", `run "lockcheck doctor"`)
}

func TestCompareUsage(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	suite := s.suiteFile(quick)
	whole := filepath.Join(s.store, "whole")
	for _, c := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"compare", "-f", suite, "--locks", "memory"}, "--file and --locks exclude each other"},
		{[]string{"compare", "-f", filepath.Join(s.store, "none.yaml")}, "no such file"},
		{[]string{"compare", "-f", s.suiteFile("locks: [memory]\ncolour: red\n")}, "line 2"},
		{[]string{"compare", "--locks", "memroy"}, `lockcheck: --locks: unknown lock "memroy"; did you mean "memory"?`},
		{[]string{"compare", "--locks", "memory", "--faults", "pauze"}, `lockcheck: --faults: unknown fault "pauze"; did you mean "pause"?`},
		{[]string{"compare", "--locks", "memory", "--faults", "none", "--concurrency", "0"}, "lockcheck: --concurrency 0: at least 2 workers are needed to compete for the lock"},
		{[]string{"compare", "--locks", "memory", "--ttl", "2s"}, "--ttl 2s: only a comparison under random faults takes it; to get one, use --faults pause:holder"},
		{[]string{"compare", "--locks", "memory", "--faults", "at-rest,holder-pausd"}, "unknown fault \"holder-pausd\""},
		{[]string{"compare", "--locks", "memory,memory"}, "lockcheck: --locks: memory is named twice"},
		{[]string{"compare", "-f", s.suiteFile("locks: [memory]\nconfirm: -1\n")}, "line 2: suite: confirm: from 0 to 100"},
		{[]string{"compare", "-f", s.suiteFile("locks:\n  - memory\n  - memroy\n")}, `line 3: suite: unknown lock "memroy"; did you mean "memory"?`},
		{[]string{"compare", "-f", s.suiteFile("locks: [memory]\nfaults:\n  - none\n  - pauze\n")}, `line 4: suite: unknown fault "pauze"; did you mean "pause"?`},
		{[]string{"compare", "-f", s.suiteFile("locks: [memory]\nfaults:\n  - none\n\n  - pause:holdr\n")}, `line 5: suite: pause:holdr: "holdr" is neither a role nor the name of a node; did you mean pause:holder?`},
		{[]string{"compare", "-f", s.suiteFile("locks: [memory]\nguards: [none,\n  fense]\n")}, `line 3: suite: unknown guard "fense"; did you mean "fence"?`},
		{[]string{"compare", "-f", s.suiteFile("locks: [memory]\nfaults: [none]\n\nmin-ops: -4\n")}, "line 4: suite: --min-ops -4: it must not be negative"},
		{[]string{"compare", "-f", s.suiteFile("locks: [memory]\nsection: 80ms-20ms\n")}, "line 2: section: \"80ms-20ms\": the range is reversed; write 20ms-80ms"},
		{[]string{"compare", "-f", s.suiteFile("locks: [memory]\nfaults: [pause]\ntime-limit: 4s\n")}, "line 3: suite: --time-limit 4s: it leaves 1.25s for faults, and pause needs "},
		{[]string{"compare", "-f", s.suiteFile("locks: [memory]\nfaults: [none]\nthresholds: {lost: 0,\n  failover_p50: 1s}\n")}, "line 4: suite: thresholds: failover_p50"},
		{[]string{"compare", "-f", s.suiteFile("locks: [memory]\nfaults: [none\nguards: [none]\n")}, "line 2: did not find"},
		{[]string{"compare", "--locks", "memory", "--out", suite}, "not a directory"},
		{[]string{"compare", "--locks", "memory", "--shard", "3/2"}, "--shard 3/2"},
		{[]string{"compare", "--locks", "memory", "--parallel", "-1"}, "--parallel"},
		{[]string{"compare", "--locks", "memory", "--shard", "1/2", "--baseline", s.store}, "--baseline: a part is not judged"},
		{[]string{"compare", "--locks", "memory", "--baseline", s.store}, "no such file"},
		{[]string{"compare", "merge", "--out", whole, "--baseline", suite, s.store}, "--baseline "},
		{[]string{"compare", "--locks", "memory", "--budget", "-1s"}, "--budget -1s: it must be at least 0s"},
		{[]string{"compare", "--locks", "memory", "--confirm", "-1"}, "lockcheck: --confirm: from 0 to 100"},
		{[]string{"compare", "-f", suite, "--confirm", "101"}, "lockcheck: --confirm: from 0 to 100"},
		{[]string{"compare", "--resume", s.store, "--confirm", "2"}, "--resume and --confirm exclude each other"},
		{[]string{"compare", "-f", s.suiteFile("locks: [memory]\nfaults: [none]\nexpected:\n  - {lock: redis}\n")}, "line 4: suite: expected: entry 1 is about no cell"},
		{[]string{"compare", "--locks", "memory", "--seeds", "0"}, "lockcheck: --seeds 0: it must be at least 1"},
		{[]string{"compare", "--resume", s.store}, "holds no comparison"},
		{[]string{"compare", "--resume", s.store, "--seeds", "2"}, "--resume and --seeds exclude each other"},
		{[]string{"compare", "merge", s.store}, "--out"},
		{[]string{"compare", "merge", "--out", whole, s.store}, "holds no comparison"},
		{[]string{"compare", "merge", "--out", whole}, "name the folders"},
		{[]string{"compare", "--locks", "memory", "--swarm", "-1"}, "--swarm -1: it must be at least 0"},
		{[]string{"compare", "--locks", "memory", "--swarm", "2", "--shard", "1/2"}, "--swarm and --shard exclude each other"},
		{[]string{"compare", "--locks", "memory", "--swarm-image", "lockcheck"}, "need --swarm"},
		{[]string{"compare", "--locks", "memory", "--swarm", "2", "--out", s.store}, "it exists already"},
		{[]string{"hunt", "--swarm", "2", "--resume", s.store}, "--swarm and --resume exclude each other"},
		{[]string{"hunt", "--swarm", "2", "--budget", "-1s"}, "--budget -1s: it must be positive"},
		{[]string{"hunt", "--budget", "0"}, "--budget 0s: it must be positive"},
		{[]string{"hunt", "--ttl", "0"}, "--ttl 0s: a lease must be positive"},
		{[]string{"hunt", "--nodes", "2"}, "--nodes 2: lock memory has 1 servers"},
		{[]string{"hunt", "--resume", s.store, "--nodes", "1"}, "--resume and --nodes exclude each other"},
		{[]string{"hunt", "--swarm", "2", "--lock", "../lock.yaml"}, "lock"},
		{[]string{"hunt", "--shard", "3/2"}, "--shard 3/2"},
	} {
		s.want(s.run(c.args...), exitUsage, "", c.stderr)
	}
}

// TestConcluded: an error besides a comparison does not hide that the comparison found a violation or was
// interrupted.
func TestConcluded(t *testing.T) {
	broken, interrupted := errors.New("not all could be removed"), &exitError{code: exitInterrupted}
	for _, c := range []struct {
		name        string
		code        int
		failed, err error
		want        int
	}{
		{"valid", exitOK, nil, nil, exitOK},
		{"violated", exitViolation, nil, nil, exitViolation},
		{"valid, and not all removed", exitOK, broken, nil, exitBroken},
		{"violated, and not all removed", exitViolation, broken, nil, exitViolation},
		{"undecided, for it could not go on", exitUndecided, broken, nil, exitBroken},
		{"violated, and interrupted", exitViolation, interrupted, nil, exitInterrupted},
		{"valid, and a report not written", exitOK, nil, broken, exitBroken},
		{"violated, and a report not written", exitViolation, nil, broken, exitViolation},
	} {
		if got := exitCode(concluded(c.code, c.failed, c.err)); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
