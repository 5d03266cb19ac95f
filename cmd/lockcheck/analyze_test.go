package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
		phase(history.PhaseRecovery), phase(history.PhaseFinal),
		{Process: history.Resource, Type: history.OK, F: history.Final, Key: "k0", Version: 1, Value: json.RawMessage("[11]")},
		phase(history.PhaseEnd),
	}
}

// store writes a history with one event a millisecond, and returns the folder of the run.
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

// TestAnalyze judges the smallest valid run, and for each other verdict a run that differs in one thing.
func TestAnalyze(t *testing.T) {
	t.Parallel()
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
			// Given only the history, the report is the same, without a folder.
			byFolder, _, _ := strings.Cut(s.stdout, "\nfolder  ")
			s.want(s.run("analyze", filepath.Join(folder, "history.jsonl")), c.code, byFolder, "")
		})
	}
}

func TestAnalyzeMalformed(t *testing.T) {
	t.Parallel()
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
		{"a line that is no event", with(3, "{", "<"), exitUsage, "", "line 4: "},
		{"an event that cannot be", with(3, `"w1"`, `"w7"`), exitUsage, "", `line 4: process "w7" is not in the header`},
		{"a foreign file", "a,b,c\n", exitUsage, "", "line 1: "},
		{"an empty file", "", exitUsage, "", "line 1: "},
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
			s.stdout = strings.Join(strings.Fields(s.stdout), " ") // the text is wrapped
			s.want(code, c.code, c.stdout, c.stderr)
		})
	}
	missing := filepath.Join(t.TempDir(), "missing")
	s.want(s.run("analyze", missing), exitUsage, "", missing)
	s.want(s.run("analyze", t.TempDir()), exitUsage, "", "is no run")
}

// TestColor: only terminals get colours, and not if NO_COLOR is set.
func TestColor(t *testing.T) {
	t.Parallel()
	folder := store(t, history.Header{Workers: []string{"w1"}}, nil)
	for _, c := range []struct {
		terminal      bool
		noColor, term string
		want          bool
	}{
		{true, "", "", true}, {true, "1", "", false}, {false, "", "", false}, {false, "1", "", false},
		{true, "", "xterm", true}, {true, "", "dumb", false},
	} {
		s := newShell(t)
		s.term, s.env["NO_COLOR"], s.env["TERM"] = c.terminal, c.noColor, c.term
		s.run("analyze", folder)
		if got := strings.Contains(s.stdout, "\x1b["); got != c.want {
			t.Errorf("terminal %t, NO_COLOR=%q, TERM=%q: colours %t", c.terminal, c.noColor, c.term, got)
		}
	}
}

// TestAnalyzeJepsen judges a run, exports it in Jepsen's format, and judges that. The same updates are lost,
// and none in the control.
func TestAnalyzeJepsen(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for final, want := range map[string]int{"[]": exitViolation, "[11]": exitOK} {
		header, events := smallRun()
		events[13].Value = json.RawMessage(final)
		folder := store(t, header, events)
		s.want(s.run("analyze", "--export", "jepsen", folder), exitOK, `:f :acquire`, "")
		path := filepath.Join(t.TempDir(), "history.edn")
		if err := os.WriteFile(path, []byte(s.stdout), 0o644); err != nil {
			t.Fatal(err)
		}
		s.want(s.run("analyze", "--format", "jepsen", path), want, "imported", "")
	}
	for _, workload := range []string{history.WorkloadJobs, history.WorkloadReadWrite} {
		header, events := smallRun()
		header.Workload = workload
		s.want(s.run("analyze", "--export", "jepsen", store(t, header, events)), exitUsage, "", "says what that form does not")
	}
	s.want(s.run("analyze", "--format", "jepsen", os.DevNull), exitUndecided, "UNDECIDED", "")
	bad := filepath.Join(t.TempDir(), "bad.edn")
	if err := os.WriteFile(bad, []byte("{:f :acquire :process 0 :type :perhaps}"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.want(s.run("analyze", "--format", "jepsen", bad), exitUsage, "", "operation 1")
	s.want(s.run("analyze", "--format", "csv", bad), exitUsage, "", "there are lockcheck and jepsen")
	s.want(s.run("analyze", "--lease", "1s", bad), exitUsage, "", "apply only to Jepsen histories")
	s.want(s.run("analyze", "--format", "jepsen", "--keys", "name", bad), exitUsage, "", "which begin with a colon")
	keys := filepath.Join(t.TempDir(), "keys.edn")
	if err := os.WriteFile(keys, []byte("{:f :acquire :process 0 :type :invoke :value :a} {:f :acquire :process 1 :type :invoke :value :b}\n\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.want(s.run("analyze", "--format", "jepsen", keys), exitUsage, "", "may be locks, clients or attempts; --keys says")
	s.want(s.run("analyze", "--format", "jepsen", "--keys", "value", keys), exitUndecided, "UNDECIDED", "")
}

// TestAnalyzeTwo: a set of runs that loses many more updates than another set is worse. The reverse is not
// worse, and neither are equal losses. Sets with so few runs that none could be worse are refused before they
// are judged.
func TestAnalyzeTwo(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	guard := "none"
	losing := func(lost int) string {
		header, events := smallRun()
		header.Guard = guard
		final := slices.Clone(events[len(events)-2:])
		events = events[:len(events)-2]
		var present []string
		for i := range 40 {
			e := history.Event{Process: history.Resource, Type: history.OK, F: history.Write, Key: "k0", Grant: "w1-1", Client: "w1",
				Element: int64(100 + i), Seq: int64(3 + i), Base: int64(1 + i), Version: int64(2 + i)}
			events = append(events, e)
			if i >= lost {
				present = append(present, fmt.Sprint(e.Element))
			}
		}
		final[0].Value = json.RawMessage("[11," + strings.Join(present, ",") + "]")
		return store(t, header, append(events, final...))
	}
	several := func(lost ...int) string {
		folder := t.TempDir()
		for i, n := range lost {
			if err := os.Rename(losing(n), filepath.Join(folder, fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("0", filepath.Join(folder, "latest")); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	few, many := several(0, 1, 0, 1, 2), several(20, 18, 19, 22, 20)
	s.want(s.run("analyze", few, many), exitViolation, "the second is worse", "")
	s.want(s.run("analyze", many, few), exitOK, "the second is better", "")
	s.want(s.run("analyze", many, many), exitOK, "no difference shown", "")
	s.want(s.run("analyze", few), exitViolation, "4 of 205 acknowledged updates (95 % interval over 10 periods:", "")
	s.want(s.run("analyze", losing(0), losing(20)), exitUsage, "", "hold too few runs to show a difference beyond chance (1 and 1)")
	if s.stdout != "" {
		t.Errorf("runs were judged that could not be compared:\n%s", s.stdout)
	}
	s.want(s.run("analyze", losing(0), many), exitUsage, "", "run at least 5 on each side")
	none := several(0, 0, 0, 0)
	s.want(s.run("analyze", none, several(0, 0, 0, 0)), exitOK, "Nothing happened that could be compared", "")
	if strings.Contains(s.stdout, "so a difference below") {
		t.Error("runs made alike are said to be incomparable")
	}
	guard = "cas"
	s.want(s.run("analyze", none, several(0, 0, 0, 0)), exitOK, "guard (none; cas)", "")
	s.want(s.run("analyze", few, few, few), exitUsage, "", "one set of runs or two")
}
