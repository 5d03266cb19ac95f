package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockcheck/clusters/clustertest"
)

// test runs the embedded lock for the shortest time that its recovery period allows.
func (s *shell) test(args ...string) int {
	s.t.Helper()
	clustertest.StartsServers(s.t)
	defer s.nothingLeft()
	return s.run(append([]string{"test", "--store", s.store, "--ttl", "300ms", "--min-ops", "5", "--seed", "1"}, args...)...)
}

// nothingLeft fails the test if a process of lockcheck still runs, or if a journal has something to undo.
func (s *shell) nothingLeft() {
	s.t.Helper()
	clustertest.Eventually(s.t, 10*time.Second, func() error {
		commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return err
		}
		for _, path := range commands {
			if text, err := os.ReadFile(path); err == nil && bytes.HasPrefix(text, []byte(s.binary+"\x00")) {
				return fmt.Errorf("%s still runs: %s", path, bytes.ReplaceAll(text, []byte{0}, []byte{' '}))
			}
		}
		return nil
	})
}

// TestViolation makes the first run of the README. Its stdout has only the report.
func TestViolation(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	code := s.test("--time-limit", "6s", "--expect", "violation")
	// On a busy machine hardly any worker holds the lock in that time, or a pause comes when the hold is over.
	late := func() bool { return code == exitUndecided || strings.Contains(s.stdout, "fault-evidence    undecided") }
	for n := 0; late() && n < 2; n++ {
		code = s.test("--time-limit", "30s", "--expect", "violation")
	}
	s.want(code, exitOK, "VIOLATION", "pause of w")
	if !strings.HasPrefix(s.stdout, "VIOLATION") || strings.Contains(s.stdout+s.stderr, "\x1b") {
		t.Errorf("stdout does not begin with the verdict, or there are escape sequences:\n%s%s", s.stdout, s.stderr)
	}
	for _, step := range []string{"starting the workers (5)", "judging the history"} {
		if strings.Contains(s.stdout, step) || !strings.Contains(s.stderr, step) {
			t.Errorf("progress %q belongs to stderr", step)
		}
	}
	latest := filepath.Join(s.store, "latest")
	// Judging the run again gives the same verdict. Without --expect the exit code shows it.
	s.want(s.run("analyze", latest), exitViolation, "VIOLATION", "")

	// The schedule as it was executed can be run again.
	schedule := filepath.Join(latest, "schedule.yaml")
	text, err := os.ReadFile(schedule)
	if err != nil || !regexp.MustCompile(`(?m)^executed:\n +- id: pause-1$`).Match(text) {
		t.Fatalf("the schedule as stored, %v:\n%s", err, text)
	}
	copied := filepath.Join(t.TempDir(), "again.yaml")
	if err := os.WriteFile(copied, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []string{"6s", "30s", "30s"} {
		if code = s.test("--time-limit", limit, "--schedule", copied); code != exitUndecided {
			break
		}
	}
	s.want(code, exitViolation, "VIOLATION", "pause of w")
}

// TestValid is the control: without a fault nothing happens, and a run that was expected to violate is
// reported.
func TestValid(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(s.test("--time-limit", "3s", "--nemesis", "none", "--expect", "violation"), exitViolation,
		"VALID", "lockcheck: not as expected: the verdict is valid, not violation\n")
	s.want(s.run("analyze", filepath.Join(s.store, "latest")), exitOK, "VALID", "")
	s.want(s.run("clean"), exitOK, "nothing to clean\n", "")
}

// TestNoTimeForFaults: a run that is too short for its fault does not begin. Without the fault it does.
func TestNoTimeForFaults(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(s.test("--time-limit", "2200ms", "--nemesis", "pause", "--min-ops", "1"), exitUsage, "", "it leaves 150ms for faults, and pause needs ")
	s.want(s.test("--time-limit", "2200ms", "--nemesis", "none", "--min-ops", "1"), exitOK, "VALID", "")
}

// TestInterrupted sends one signal in mid-fault, or two at once.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		signals []os.Signal
		report  bool // a report of what was recorded
	}{
		{"once", []os.Signal{os.Interrupt}, true},
		{"twice", []os.Signal{os.Interrupt, syscall.SIGTERM}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			sent := false
			s.onLine = func(line string) {
				if !sent && strings.Contains(line, " proven: ") {
					sent = true
					for _, signal := range c.signals {
						s.signals <- signal
					}
				}
			}
			code := s.test("--time-limit", "10m", "--section", "50ms")
			s.want(code, exitInterrupted, "folder ", " proven: ")
			if strings.Contains(s.stdout, "BROKEN") || !strings.Contains(s.stdout, "the run was interrupted") {
				t.Errorf("it is broken, not interrupted:\n%s", s.stdout)
			}
			if c.report {
				s.want(code, exitInterrupted, "1 injected", "of w")
			}
		})
	}
}

// TestCount: several runs are added up, each with the next seed. The most telling exit code counts.
func TestCount(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(s.test("--time-limit", "3s", "--nemesis", "none", "--test-count", "2"), exitOK, "2: 2 valid", "")
	unwrapped := strings.Join(strings.Fields(s.stdout), " ")
	for _, seed := range []string{"; seed 1;", "; seed 2;"} {
		if !strings.Contains(unwrapped, seed) {
			t.Errorf("no run with %q:\n%s", seed, s.stdout)
		}
	}
	s.want(s.test("--test-count", "0"), exitUsage, "", "--test-count 0: it must be at least 1")
}

// TestInterruptedBetweenRuns: a signal at the end of a run still ends the command.
func TestInterruptedBetweenRuns(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	sent := false
	s.onLine = func(line string) {
		if !sent && strings.Contains(line, "judging the history") {
			sent = true
			s.signals <- os.Interrupt
		}
	}
	s.want(s.test("--time-limit", "3s", "--nemesis", "none", "--test-count", "3"), exitInterrupted, "VALID", "")
	if strings.Contains(s.stdout, "3 valid") {
		t.Errorf("all runs were made:\n%s", s.stdout)
	}
}

// TestLessTellingIsPrinted: of two errors, the one whose exit code is not used is printed.
func TestLessTellingIsPrinted(t *testing.T) {
	violation, failed := codeOnly(exitViolation), &exitError{code: exitBroken, err: errors.New("the disk is full")}
	for _, pair := range [][2]error{{violation, failed}, {failed, violation}} {
		var stderr strings.Builder
		s := &system{stderr: &stderr}
		if got := s.moreTellingOf(pair[0], pair[1]); got != violation || stderr.String() != "lockcheck: the disk is full\n" {
			t.Errorf("%v: %v, %q printed", pair, got, stderr.String())
		}
	}
}

// TestMoreTelling: the most telling exit code of several runs counts, in whatever order the runs were.
func TestMoreTelling(t *testing.T) {
	order := []int{exitOK, exitBroken, exitUndecided, exitViolation, exitInterrupted, exitUsage}
	for i, less := range order {
		for _, more := range order[i:] {
			for _, pair := range [][2]int{{less, more}, {more, less}} {
				if got := exitCode(moreTelling(codeOnly(pair[0]), codeOnly(pair[1]))); got != more {
					t.Errorf("of %v: %d, want %d", pair, got, more)
				}
			}
		}
	}
}
