package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/runs"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// noEngine is where no Docker engine answers.
const noEngine = "unix:///nonexistent/docker.sock"

// shell runs command lines in this process.
type shell struct {
	t       *testing.T
	store   string // folder for runs
	env     map[string]string
	term    bool // stdout and stderr are terminals
	signals chan os.Signal
	onLine  func(line string) // told each line on stderr

	stdout, stderr string // of the last command
}

// newShell makes a shell without Docker, and with a cache folder of its own, so
// that it finds no traces of other runs.
func newShell(t *testing.T) *shell {
	t.Helper()
	clustertest.Binary(t) // before the cache folder moves: go build has its own there
	t.Setenv("DOCKER_HOST", noEngine)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return &shell{t: t, store: t.TempDir(), env: make(map[string]string), signals: make(chan os.Signal, 2)}
}

// run returns the exit code of a command line.
func (s *shell) run(args ...string) int {
	s.t.Helper()
	var stdout bytes.Buffer
	stderr := &lineWriter{each: s.onLine}
	code := run(s.t.Context(), &system{
		args: args, stdin: strings.NewReader(""), stdout: &stdout, stderr: stderr,
		env: func(name string) string { return s.env[name] }, terminal: s.term, progressTerminal: s.term,
		signals: s.signals, binary: func() (string, error) { return clustertest.Binary(s.t), nil },
	})
	s.stdout, s.stderr = stdout.String(), stderr.all.String()
	return code
}

// lineWriter passes on each whole line.
type lineWriter struct {
	mu   sync.Mutex
	all  bytes.Buffer
	line []byte
	each func(string)
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(p)
	for _, b := range p {
		if b != '\n' {
			w.line = append(w.line, b)
			continue
		}
		if w.each != nil {
			w.each(string(w.line))
		}
		w.line = nil
	}
	return len(p), nil
}

// want fails the test unless the last command gave the code and printed the texts.
func (s *shell) want(code, wanted int, stdout, stderr string) {
	s.t.Helper()
	if code != wanted || !strings.Contains(s.stdout, stdout) || !strings.Contains(s.stderr, stderr) {
		s.t.Errorf("exit code %d, want %d; %q on stdout, %q on stderr wanted of\n%s\n--- stderr:\n%s",
			code, wanted, stdout, stderr, s.stdout, s.stderr)
	}
}

// TestUsage: what makes no sense is told on stderr, with code 64, and nothing is
// done.
func TestUsage(t *testing.T) {
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.yaml", "steps:\n  - fault: pause\n    for: 1s\n")
	odd := file("odd.yaml", "steps:\n  - fault: pause\n    for: 1s\n    untill: 2s\n")
	s := newShell(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"tset"}, `unknown command "tset"`},
		{[]string{"--frobnicate"}, "unknown flag: --frobnicate"},
		{[]string{"test", "--frobnicate"}, "unknown flag: --frobnicate"},
		{[]string{"test", "memory"}, "memory"},
		{[]string{"test", "--lock", "redlok"}, `unknown lock "redlok"; did you mean "redlock"?`},
		{[]string{"test", "--lock", "zzz"}, "there are memory, "},
		{[]string{"test", "--nemesis", "pauze"}, `did you mean "pause"?`},
		{[]string{"test", "--ttl", "5"}, "missing unit"},
		{[]string{"test", "--section", "long"}, "write 50ms, or 20ms-80ms"},
		{[]string{"test", "--section", "80ms-20ms"}, "--section"},
		{[]string{"test", "--expect", "nonsense"}, "valid, violation, undecided and broken"},
		{[]string{"test", "--image", "redis"}, "NAME=IMAGE"},
		{[]string{"test", "--image", "redis="}, "NAME=IMAGE"},
		{[]string{"test", "--image", "redis=redis:7"}, "lock memory does not use that image"},
		{[]string{"test", "--schedule", odd}, odd + `: schedule: line 4: there is no key "untill"`},
		{[]string{"test", "--schedule", filepath.Join(t.TempDir(), "missing.yaml")}, "missing.yaml"},
		{[]string{"test", "--schedule", good, "--nemesis", "clock"}, "--schedule and --nemesis exclude each other"},
		{[]string{"test", "--time-limit", "1s"}, "--time-limit 1s"},
		{[]string{"test", "--lock", "redlok", "--test-count", "2"}, `unknown lock "redlok"`},
		{[]string{"findings", "run", "--times", "0"}, "--times 0"},
		{[]string{"repro"}, "--list"},
		{[]string{"repro", "moon-landing"}, `unknown reproduction "moon-landing" (there are `},
		{[]string{"repro", "redlock-clock-jmp"}, `did you mean "redlock-clock-jump"?`},
		{[]string{"repro", "one", "two"}, "at most 1"},
		{[]string{"analyze"}, "name one run"},
		{[]string{"analyze", "a", "b", "c"}, "name one run"},
		{[]string{"serve", "ducks"}, `"ducks"`},
		{[]string{"serve", "--port", "65536"}, "--port 65536: ports go from 1 to 65535"},
		{[]string{"list", "ducks"}, `"ducks"`},
		{[]string{"help", "ducks"}, `"ducks"`},
		{[]string{"clean", "up"}, `"up"`},
		{[]string{"images", "ducks"}, `"ducks"`},
		{[]string{"doctor", "who"}, `"who"`},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			if len(c.args) > 1 && c.args[0] == "test" {
				c.args = append(c.args, "--store", s.store)
			}
			s.want(s.run(c.args...), exitUsage, "", c.want)
			if s.stdout != "" || !strings.HasPrefix(s.stderr, "lockcheck: ") {
				t.Errorf("stdout %q, stderr %q: want one message on stderr", s.stdout, s.stderr)
			}
		})
	}
	if runs, err := os.ReadDir(s.store); err != nil || len(runs) != 0 {
		t.Errorf("something was run: %v, %v", runs, err)
	}
}

func TestHelp(t *testing.T) {
	s := newShell(t)
	s.want(s.run(), exitOK, "lockcheck [command]", "")
	plain := s.stdout
	s.want(s.run("--help"), exitOK, plain, "")
	s.want(s.run("help"), exitOK, plain, "")
	for _, hidden := range []string{"worker", "resource", "server", "agent", "reap", "completion"} {
		if regexp.MustCompile(`(?m)^  ` + hidden + ` `).MatchString(plain) {
			t.Errorf("help shows the hidden command %s", hidden)
		}
	}
	for _, command := range []string{"test", "repro", "analyze", "serve", "list", "doctor", "clean", "images"} {
		if !regexp.MustCompile(`(?m)^  ` + command + ` `).MatchString(plain) {
			t.Errorf("help does not show the command %s", command)
		}
	}
	for _, args := range [][]string{{"test", "--help"}, {"repro", "--help"}, {"analyze", "--help"}, {"help", "exit-codes"}} {
		s.want(s.run(args...), exitOK, exitCodes, "")
	}
	for _, code := range []string{"0", "1", "2", "3", "64", "130"} {
		if !regexp.MustCompile(`(?m)^ +` + code + `  `).MatchString(exitCodes) {
			t.Errorf("the exit code %s is not explained", code)
		}
	}
}

// TestWidth: no help and no list is wider than a terminal.
func TestWidth(t *testing.T) {
	s := newShell(t)
	narrow := func(args ...string) {
		s.want(s.run(args...), exitOK, "", "")
		for line := range strings.Lines(s.stdout) {
			if len([]rune(strings.TrimSuffix(line, "\n"))) > defaultWidth {
				t.Errorf("%s: wider than %d columns: %s", args, defaultWidth, line)
			}
		}
	}
	var each func(*cobra.Command, []string)
	each = func(c *cobra.Command, path []string) {
		narrow(append(path[:len(path):len(path)], "--help")...)
		for _, sub := range c.Commands() {
			each(sub, append(path[:len(path):len(path)], sub.Name()))
		}
	}
	each(rootCommand(&system{}), nil)
	for _, args := range [][]string{{"list", "locks"}, {"list", "faults"}, {"list", "workloads"}, {"repro", "--list"}} {
		narrow(args...)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"one", "one"},
		{"one two", "one two"},
		{"one two three", "one two|three"},
		{"one  two\nthree", "one two|three"},
		{"one two three four", "one two|three|four"}, // later lines are indented by two
		{"extraordinary one", "extraordinary|one"},
		{"zwölf äöü", "zwölf|äöü"},
		{"wölf äöü", "wölf äöü"},
	} {
		if got := strings.Join(wrap(c.text, 8), "|"); got != c.want {
			t.Errorf("%q is wrapped to %s, want %s", c.text, got, c.want)
		}
	}
}

// TestList: every name of a table is the first word of a line.
func TestList(t *testing.T) {
	var finds []string
	all, err := runs.Reproductions()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		finds = append(finds, r.Name)
	}
	s := newShell(t)
	for _, c := range []struct {
		args  []string
		names []string
	}{
		{[]string{"list", "locks"}, clients.Names()},
		{[]string{"list", "faults"}, nemesis.KindNames()},
		{[]string{"list", "workloads"}, workloads.Names()},
		{[]string{"repro", "--list"}, finds},
	} {
		s.want(s.run(c.args...), exitOK, "", "")
		for _, name := range c.names {
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `  +\S`).MatchString(s.stdout) {
				t.Errorf("%v does not list %s:\n%s", c.args, name, s.stdout)
			}
		}
		if s.stderr != "" || len(c.names) == 0 {
			t.Errorf("%v of %d names: stderr %q", c.args, len(c.names), s.stderr)
		}
	}
}

// TestWithoutEngine: what needs Docker says so and falls back to nothing.
func TestWithoutEngine(t *testing.T) {
	s := newShell(t)
	s.want(s.run("doctor"), exitBroken, "missing  Docker engine", "something is missing")
	if !regexp.MustCompile(`(?m)^ok +own image +\S`).MatchString(s.stdout) {
		t.Errorf("the binary is not looked at without an engine:\n%s", s.stdout)
	}
	s.want(s.run("test", "--lock", "redis", "--store", s.store), exitBroken, "no Docker engine", "")
	s.want(s.run("test", "--lock", "redis", "--store", s.store, "--expect", "broken"), exitOK, "no Docker engine", "")
	s.want(s.run("repro", "redlock-gc-pause", "--store", s.store), exitBroken, "no Docker engine", "not reproduced: the verdict is broken")
	s.want(s.run("images"), exitBroken, "", "no Docker engine")
	s.want(s.run("clean"), exitOK, "nothing to clean\n", "")
	s.want(s.run("clean", "--images"), exitBroken, "nothing to clean\n", "no Docker engine")
}

// TestExitCode: a code rides on an error, however deep.
func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{context.Canceled, exitBroken},
		{&runs.UsageError{Err: context.Canceled}, exitUsage},
		{&exitError{code: exitUndecided}, exitUndecided},
		{&exitError{code: exitInterrupted, err: &runs.UsageError{}}, exitInterrupted},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%#v gives %d, want %d", c.err, got, c.want)
		}
	}
}
