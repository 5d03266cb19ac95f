package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockcheck/history"
)

// smallRun is the smallest run that is valid: one hold with one update.
func smallRun() (history.Header, []history.Event) {
	worker := func(kind history.Type, f history.Function, op int64) history.Event {
		e := history.Event{Process: "w1", Type: kind, F: f, Key: "k0", Op: op, Grant: "w1-1"}
		if f == history.Write {
			e.Element = 11
		}
		return e
	}
	resource := func(f history.Function, op, seq int64) history.Event {
		e := worker(history.OK, f, op)
		e.Process, e.Client, e.Seq = history.Resource, "w1", seq
		if f == history.Write {
			e.Version = 1
		}
		return e
	}
	phase := func(name string) history.Event {
		return history.Event{Process: history.Harness, Type: history.Info, F: history.Phase, Note: name}
	}
	header := history.Header{
		Run: "small", Lock: "memory", Workload: "set", Guard: "none", Workers: []string{"w1", "w2"},
		Lease: time.Second, MinOps: 1,
	}
	return header, []history.Event{
		phase(history.PhaseReady),
		worker(history.Invoke, history.Acquire, 1), worker(history.OK, history.Acquire, 1),
		worker(history.Invoke, history.Read, 2), resource(history.Read, 2, 1), worker(history.OK, history.Read, 2),
		worker(history.Invoke, history.Write, 3), resource(history.Write, 3, 2), worker(history.OK, history.Write, 3),
		worker(history.Invoke, history.Release, 4), worker(history.OK, history.Release, 4),
		phase(history.PhaseQuiet), phase(history.PhaseFinal),
		{Process: history.Resource, Type: history.OK, F: history.Final, Key: "k0", Version: 1, Value: json.RawMessage("[11]")},
		phase(history.PhaseEnd),
	}
}

// store writes a history, an event a millisecond, and returns the folder of the run.
func store(t *testing.T, header history.Header, events []history.Event) string {
	t.Helper()
	folder := t.TempDir()
	w, err := history.Create(filepath.Join(folder, "history.jsonl"), header)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		e.Time = int64(i+1) * int64(time.Millisecond)
		if _, err := w.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestAnalyze judges the smallest valid run, and beside it the same with one
// thing changed for each other verdict.
func TestAnalyze(t *testing.T) {
	s := newShell(t)
	for _, c := range []struct {
		name   string
		change func(*history.Header, *[]history.Event)
		code   int
		word   string
	}{
		{"valid", func(*history.Header, *[]history.Event) {}, exitOK, "VALID"},
		{"lost update", func(_ *history.Header, e *[]history.Event) { (*e)[13].Value = json.RawMessage("[]") }, exitViolation, "VIOLATION"},
		{"too few updates", func(h *history.Header, _ *[]history.Event) { h.MinOps = 2 }, exitUndecided, "UNDECIDED"},
		{"a fault that never came", func(h *history.Header, _ *[]history.Event) { h.Faults = []string{"pause"} }, exitUndecided, "UNDECIDED"},
		{"without its end", func(_ *history.Header, e *[]history.Event) { *e = (*e)[:14] }, exitBroken, "BROKEN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			header, events := smallRun()
			c.change(&header, &events)
			folder := store(t, header, events)
			s.want(s.run("analyze", folder), c.code, c.word, "")
			if !strings.HasPrefix(s.stdout, c.word) || s.stderr != "" {
				t.Errorf("the report does not begin with %s, or there is more on stderr: %q\n%s", c.word, s.stderr, s.stdout)
			}
			if _, err := os.Stat(filepath.Join(folder, "report.html")); err != nil {
				t.Errorf("the folder of the run has no report: %v", err)
			}
			// By its history alone: the same, without a folder to name.
			byFolder, _, _ := strings.Cut(s.stdout, "\nfolder  ")
			s.want(s.run("analyze", filepath.Join(folder, "history.jsonl")), c.code, byFolder, "")
		})
	}
}

func TestAnalyzeMalformed(t *testing.T) {
	s := newShell(t)
	header, events := smallRun()
	path := filepath.Join(store(t, header, events), "history.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	with := func(n int, old, replacement string) string {
		changed := append([]string(nil), lines...)
		changed[n] = strings.Replace(changed[n], old, replacement, 1)
		return strings.Join(changed, "")
	}
	for _, c := range []struct {
		name, text     string
		code           int
		stdout, stderr string
	}{
		{"as it was", string(text), exitOK, "VALID", ""},
		{"a line that is no event", with(3, "{", "<"), exitBroken, "", "line 4: "},
		{"an event that cannot be", with(3, `"w1"`, `"w7"`), exitBroken, "", `line 4: process "w7" is not in the header`},
		{"a foreign file", "a,b,c\n", exitBroken, "", "line 1: "},
		{"an empty file", "", exitBroken, "", "line 1: "},
		{
			"cut off in mid-write, as a killed run leaves it", string(text[:len(text)-2]),
			exitBroken, "line 16 of the", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history.jsonl")
			if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			code := s.run("analyze", path)
			s.stdout = strings.Join(strings.Fields(s.stdout), " ") // it is wrapped
			s.want(code, c.code, c.stdout, c.stderr)
		})
	}
	missing := filepath.Join(t.TempDir(), "missing")
	s.want(s.run("analyze", missing), exitBroken, "", missing)
	s.want(s.run("analyze", t.TempDir()), exitBroken, "", "is no run")
}

// TestColor: colours are for terminals, unless NO_COLOR asks for none.
func TestColor(t *testing.T) {
	folder := store(t, history.Header{Workers: []string{"w1"}}, nil)
	for _, c := range []struct {
		terminal bool
		noColor  string
		want     bool
	}{
		{true, "", true}, {true, "1", false}, {false, "", false}, {false, "1", false},
	} {
		s := newShell(t)
		s.term, s.env["NO_COLOR"] = c.terminal, c.noColor
		s.run("analyze", folder)
		if got := strings.Contains(s.stdout, "\x1b["); got != c.want {
			t.Errorf("terminal %t, NO_COLOR=%q: colours %t", c.terminal, c.noColor, got)
		}
	}
}
