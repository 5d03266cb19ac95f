package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"lockcheck/clients"
	"lockcheck/clients/clienttest"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/cleanup"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/repros"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

func TestMain(m *testing.M) {
	clienttest.Main()
	if err := clustertest.Alone(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code, err := withoutEngine(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withoutEngine runs the tests without Docker and with their own cache folder, and checks that no run has
// left its journal there.
func withoutEngine(m *testing.M) (code int, err error) {
	cache, err := os.MkdirTemp("", "lockcheck-test-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cache)) }()
	compiled, err := exec.Command("go", "env", "GOCACHE").Output() // by default it is in the cache folder
	if err != nil {
		return 0, fmt.Errorf("go env: %w", err)
	}
	for name, value := range map[string]string{
		"DOCKER_HOST": noEngine, "XDG_CACHE_HOME": cache, "GOCACHE": strings.TrimSpace(string(compiled)),
		"SECRET": "of-this-user", "WANTED": "passed-on", // see TestClientSecrets
	} {
		if err := os.Setenv(name, value); err != nil {
			return 0, err
		}
	}
	code = clustertest.Main(m)
	journals, err := cleanup.Journals()
	for end := time.Now().Add(10 * time.Second); len(journals) > 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		journals, err = cleanup.Journals() // a reaper may still be at work
	}
	if len(journals) > 0 {
		err = fmt.Errorf("journals %v are left", journals)
	}
	return code, err
}

// noEngine is an address at which no Docker engine answers.
const noEngine = "unix:///nonexistent/docker.sock"

// shell runs command lines in this process.
type shell struct {
	t       *testing.T
	store   string // folder for runs
	env     map[string]string
	term    bool // stdout and stderr are terminals
	width   int  // of the terminal, in columns; 0 if unknown
	signals chan os.Signal
	onLine  func(line string) // receives each line on stderr
	binary  string            // lockcheck, at a path that no other shell uses

	stdout, stderr string // of the last command
}

// newShell makes a shell that can distinguish the processes of its runs from others.
func newShell(t *testing.T) *shell {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "lockcheck")
	if err := os.Link(clustertest.Binary(t), binary); err != nil {
		t.Fatal(err)
	}
	return &shell{t: t, store: t.TempDir(), binary: binary, env: make(map[string]string), signals: make(chan os.Signal, 2)}
}

// run returns the exit code of a command line.
func (s *shell) run(args ...string) int {
	s.t.Helper()
	var stdout bytes.Buffer
	stderr := &lineWriter{each: s.onLine}
	code := run(s.t.Context(), &system{
		args: args, stdin: strings.NewReader(""), stdout: &stdout, stderr: stderr,
		env: func(name string) string { return s.env[name] }, terminal: s.term, progressTerminal: s.term, width: s.width,
		signals: s.signals, binary: func() (string, error) { return s.binary, nil },
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

// TestUsage: a command line that makes no sense is reported on stderr, with exit code 64, and has no other
// effect.
func TestUsage(t *testing.T) {
	t.Parallel()
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
		{[]string{"tset"}, `unknown command "tset"; did you mean "test"?`},
		{[]string{"analize", "a"}, `did you mean "analyze"?`},
		{[]string{"tset", "--lock", "memory"}, `did you mean "test"?`},
		{[]string{"wrker"}, "there are "}, // lockcheck's own processes are not commands for users
		{[]string{"guide", "advice"}, `unknown command "advice"; did you mean "advise"?`},
		{[]string{"list", "loks"}, `did you mean "lo`},
		{[]string{"test", "--lok", "memory"}, "unknown flag: --lok; did you mean --lock?"},
		{[]string{"compare", "--fault", "pause"}, "did you mean --faults?"},
		{[]string{"test", "--nemesis", "clock"}, "does not use the wall clock"},
		{[]string{"test", "--nemesis", "clock", "--skip-unsupported"}, "nothing is left of the schedule"},
		{[]string{"test", "--nemesis", "clock", "--skip-unavailable"}, "nothing is left of the schedule"}, // its former name
		{[]string{"test", "--nemesis", "pause:n9"}, `neither a node nor a role "n9"`},
		{[]string{"test", "--min-ops", "-4"}, "--min-ops -4: it must not be negative"},
		{[]string{"test", "--rate", "NaN"}, "--rate NaN"},
		{[]string{"test", "--lock-delay", "-1s"}, "--lock-delay -1s"},
		{[]string{"test", "--section", "10s..5s"}, "the range is reversed; write 5s-10s"},
		{[]string{"test", "--require", "no-lost-updates"}, `did you mean "no-lost-update"?`},
		{[]string{"test", "--expect", "violated"}, `did you mean "violation"?`},
		{[]string{"test", "--lock", "redis", "--image", "rediz=redis:7"}, `lock redis does not use that image; did you mean "redis"?`},
		{[]string{"--frobnicate"}, "unknown flag: --frobnicate"},
		{[]string{"test", "--frobnicate"}, "unknown flag: --frobnicate"},
		{[]string{"test", "memory"}, "memory"},
		{[]string{"test", "--lock", "redlok"}, `unknown lock "redlok"; did you mean "redlock"?`},
		{[]string{"test", "--lock", "zzz"}, "there are memory, "},
		{[]string{"test", "--nemesis", "pauze"}, `did you mean "pause"?`},
		{[]string{"test", "--ttl", "5"}, "missing unit"},
		{[]string{"test", "--lock", "none", "--ttl", "5s"}, "--ttl 5s: lock none has no lease"},
		{[]string{"test", "--section", "long"}, "write 50ms, or 20ms-80ms"},
		{[]string{"test", "--section", "80ms-20ms"}, "the range is reversed; write 20ms-80ms"},
		{[]string{"test", "--expect", "nonsense"}, "there are valid, broken, undecided, violation"},
		{[]string{"test", "--image", "redis"}, "NAME=IMAGE"},
		{[]string{"test", "--image", "redis="}, "NAME=IMAGE"},
		{[]string{"test", "--image", "redis=redis:7"}, "lock memory does not use that image"},
		{[]string{"test", "--schedule", odd}, odd + `: schedule: line 4: there is no key "untill"`},
		{[]string{"test", "--schedule", file("fault.yaml", "steps:\n  - for: 1s\n    fault: pauze\n")}, `line 3: schedule: step "pauze-1": fault: unknown fault "pauze"; did you mean "pause"?`},
		{[]string{"test", "--schedule", file("role.yaml", "seed: 1\nsteps:\n  - fault: pause\n    for: 1s\n    target: holdr\n")}, `line 5: schedule: step "pause-1": target: "holdr" is neither a role nor the name of a node; did you mean "holder"?`},
		{[]string{"test", "--schedule", file("late.yaml", "steps:\n  - fault: pause\n    for: 1s\n    after: 1m\n"), "--time-limit", "30s"}, "pause needs 1m1s; write --time-limit 1m35s, or omit it"},
		{[]string{"test", "--schedule", filepath.Join(t.TempDir(), "missing.yaml")}, "missing.yaml"},
		{[]string{"test", "--schedule", good, "--nemesis", "clock"}, "--schedule and --nemesis exclude each other"},
		{[]string{"test", "--schedule", good, "--pause", "3s"}, "--schedule and --pause exclude each other"},
		{[]string{"test", "--schedule", good, "--nemesis-interval", "3s"}, "--schedule and --nemesis-interval exclude each other"},
		{[]string{"test", "--nemesis", "kill:holder", "--pause", "3s"}, "write --nemesis pause,kill:holder"},
		{[]string{"test", "--nemesis", "kill", "--pause", "3s"}, "workers can be killed, as in kill:holder"}, // the advice does not suggest what would be refused
		{[]string{"test", "--nemesis", "pause:w7"}, `neither a node nor a role "w7" (the nodes are n1, w1, w2, w3, w4, w5)`},
		{[]string{"test", "--schedule", file("many.yaml", "steps:\n  - fault: kill\n    target: all workers\n")}, `many.yaml: step "kill-1": target: too few workers would be left alive: "all workers" would kill every worker, and at least 2 must stay alive; write target: w1,w2,w3`},
		{[]string{"hunt", "--budget", "0"}, "write --budget 5m, or omit it"},
		{[]string{"test", "--nemesis", "none", "--pause", "3s"}, "--pause: --nemesis none has no faults"},
		{[]string{"test", "--nemesis", "none", "--nemesis-interval", "3s"}, "--nemesis-interval: --nemesis none has no faults"},
		{[]string{"test", "--time-limit", "1s"}, "recovery period of this lock alone takes 2.75s; write --time-limit "},
		{[]string{"test", "--time-limit", "0"}, "--time-limit 0s: it must be positive"},
		{[]string{"test", "--lock", "etcd@3.5.16"}, "write the version with its own flag: --lock etcd --version 3.5.16"},
		{[]string{"test", "--lock", "etcd@3.5.16+watch-session"}, "--lock etcd+watch-session --version 3.5.16"},
		{[]string{"test", "--lock", "etcd+watch-session@3.5.16"}, "--lock etcd+watch-session --version 3.5.16"},
		{[]string{"test", "--lock", "redis:7"}, "--lock redis --version 7"},
		{[]string{"test", "--nemesis", "kill:foo"}, `--nemesis kill:foo: there is neither a node nor a role "foo" (the nodes are n1, w1, w2, w3, w4, w5); here write one of kill:holder, kill:waiter, "kill:one worker"`},
		{[]string{"test", "--nemesis", "pause,kill:all workers"}, `--nemesis "kill:all workers": too few workers would be left alive: "all workers" would kill every worker, and at least 2 must stay alive; here write one of kill:holder,`},
		{[]string{"test", "--nemesis", "pause:w7"}, "pause:w1 to pause:w5"},
		{[]string{"test", "--nemesis", "pause:holdr"}, "did you mean pause:holder?"},
		{[]string{"test", "--nemesis", "kill:w1,w2"}, "write kill:w2"},
		{[]string{"test", "--nemesis", "kill one worker"}, `write "kill:one worker"`},
		{[]string{"test", "--nemesis", "pause kill"}, "write pause,kill"},
		{[]string{"test", "--lock", "etdc@3.5.16"}, "unknown lock"},
		{[]string{"test", "--lock", "redlok", "--test-count", "2"}, `unknown lock "redlok"`},
		{[]string{"repro", "all", "--times", "0"}, "--times 0: it must be at least 1"},
		{[]string{"repro", "all", "--parallel", "0"}, "--parallel 0: it must be at least 1"},
		{[]string{"repro"}, "--list"},
		{[]string{"repro", "moon-landing"}, `unknown reproduction "moon-landing" (there are `},
		{[]string{"repro", "redlock-clock-jmp"}, `did you mean "redlock-clock-jump"?`},
		{[]string{"repro", "one", "two"}, "at most 1"},
		{[]string{"repro", "holder-pause"}, "say for which"},
		{[]string{"repro", "redis-orphan", "--lock", "redis"}, "for the lock redis-noexpiry alone"},
		{[]string{"repro", good}, good + `: line 1: there is no key "steps"`},
		{[]string{"repro", "--list", t.TempDir()}, "there is no reproduction in it"},
		{[]string{"repro", "all", filepath.Join(t.TempDir(), "none")}, "no such file"},
		{[]string{"analyze"}, "name one set of runs"},
		{[]string{"analyze", "a", "b", "c"}, "name one set of runs"},
		{[]string{"serve", "ducks"}, `"ducks"`},
		{[]string{"serve", "--store", filepath.Join(t.TempDir(), "none")}, "no such file"},
		{[]string{"serve", "--store", good}, "not a directory"},
		{[]string{"repro", "table", "--store", filepath.Join(t.TempDir(), "none")}, "no runs are stored there"},
		{[]string{"repro", "claims", "table", "--store", filepath.Join(t.TempDir(), "none")}, "no runs are stored there"},
		{[]string{"analyze", good}, "line 1: "},
		{[]string{"analyze", "--format", "jepsen", filepath.Join(t.TempDir(), "none")}, "no such file"},
		{[]string{"analyze", "--format", "jepsen", good}, "operation 1"},
		{[]string{"analyze", "--export", "jepsen", good}, "line 1: "},
		{[]string{"images", "redsi"}, `unknown recipe "redsi"; did you mean "redis"?`},
		{[]string{"images", "etcd"}, "etcd-3.6.16"},
		{[]string{"serve", "--port", "65536"}, "--port 65536: ports go from 1 to 65535"},
		{[]string{"list", "ducks"}, `"ducks"`},
		{[]string{"help", "ducks"}, `"ducks"`},
		{[]string{"clean", "up"}, `"up"`},
		{[]string{"images", "ducks"}, `"ducks"`},
		{[]string{"doctor", "who"}, `"who"`},
		{[]string{"hold"}, "the child of a command that a lock file wraps (client.wrap)"},
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
	if entries, err := os.ReadDir(s.store); err != nil || len(entries) != 0 {
		t.Errorf("something was run: %v, %v", entries, err)
	}
}

// TestHoldWithoutWorker: a missing worker is not the user's mistake, and lockcheck's output must not mix with
// the output of the wrapped command.
func TestHoldWithoutWorker(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.env[clients.HoldVariable] = filepath.Join(t.TempDir(), "gone.sock")
	if code := s.run("hold"); code != exitHoldAlone || s.stdout+s.stderr != "" {
		t.Errorf("exit code %d, want %d; said %q and %q, want nothing", code, exitHoldAlone, s.stdout, s.stderr)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(s.run(), exitOK, "lockcheck [command]", "")
	plain := s.stdout
	s.want(s.run("--help"), exitOK, plain, "")
	s.want(s.run("help"), exitOK, plain, "")
	for _, hidden := range []string{"worker", "resource", "server", "agent", "reap", "hold", "reference", "sweep", "profile", "merge", "findings", "claims", "advise"} {
		if regexp.MustCompile(`(?m)^  ` + hidden + ` `).MatchString(plain) {
			t.Errorf("help shows the hidden command %s", hidden)
		}
	}
	for _, command := range []string{"test", "compare", "repro", "hunt", "guide", "analyze", "serve", "list", "doctor", "clean", "init", "client", "images", "completion"} {
		if !regexp.MustCompile(`(?m)^  ` + command + ` `).MatchString(plain) {
			t.Errorf("help does not show the command %s", command)
		}
	}
	for _, args := range [][]string{{"test", "--help"}, {"repro", "--help"}, {"analyze", "--help"}, {"help", "exit-codes"}} {
		s.want(s.run(args...), exitOK, reflow(exitCodes, defaultWidth), "")
	}
	for _, code := range []string{"0", "1", "2", "3", "64", "130"} {
		if !regexp.MustCompile(`(?m)^ +` + code + `  `).MatchString(exitCodes) {
			t.Errorf("the exit code %s is not explained", code)
		}
	}
}

// TestWidth: help and lists are no wider than the terminal.
func TestWidth(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	narrow := func(args ...string) {
		s.want(s.run(args...), exitOK, "", "")
		for line := range strings.Lines(s.stdout) {
			line = strings.TrimSuffix(line, "\n")
			// Examples and addresses must not be wrapped, because then they cannot be copied.
			whole := s.width < defaultWidth && strings.Contains(line, "  lockcheck ") || !strings.Contains(strings.TrimSpace(line), " ")
			if len([]rune(line)) > s.width && !whole {
				t.Errorf("%s: wider than %d columns: %s", args, s.width, line)
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
	for _, s.width = range []int{80, 60} {
		each(rootCommand(&system{}), nil)
		for _, args := range [][]string{{"list", "locks", "--long"}, {"list", "faults", "--long"}, {"list", "workloads"}, {"repro", "--list"}} {
			narrow(args...)
		}
	}
}

// TestList: every name in a table begins a line.
func TestList(t *testing.T) {
	t.Parallel()
	var finds []string
	all, err := repros.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		finds = append(finds, r.Name)
	}
	examples := filepath.Join(repository, "examples")
	s := newShell(t)
	for _, c := range []struct {
		args  []string
		names []string
	}{
		{[]string{"list", "locks"}, clients.Names()},
		{[]string{"list", "faults"}, nemesis.KindNames()},
		{[]string{"list", "workloads"}, workloads.Names()},
		{[]string{"list", "causes", "--long"}, []string{"section outlasted the lease"}},
		{[]string{"repro", "--list"}, finds},
		{[]string{"repro", "--list", examples}, []string{filepath.Join(examples, "kazoo", "leaked-contender.yaml")}},
	} {
		s.want(s.run(c.args...), exitOK, "", "")
		for _, name := range c.names {
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `(  +\S|$)`).MatchString(s.stdout) {
				t.Errorf("%v does not list %s:\n%s", c.args, name, s.stdout)
			}
		}
		if s.stderr != "" || len(c.names) == 0 {
			t.Errorf("%v of %d names: stderr %q", c.args, len(c.names), s.stderr)
		}
	}
}

// TestWithoutEngine: commands that need Docker report that it is missing, and do nothing else instead.
func TestWithoutEngine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(s.run("doctor"), exitBroken, "missing  Docker engine", "something is missing")
	if !regexp.MustCompile(`(?m)^ok +own image +\S`).MatchString(s.stdout) {
		t.Errorf("the binary is not looked at without an engine:\n%s", s.stdout)
	}
	for _, args := range [][]string{
		{"images"}, {"test", "--lock", "redis"}, {"test", "--lock", "redis", "--expect", "broken"}, {"repro", "redlock-gc-pause"},
		{"repro", "all", "--only", "^lock/redis/"}, {"repro", "claims", "run"}, {"compare", "--locks", "redis,etcd"},
	} {
		if args[0] != "images" {
			args = append(args, "--store", s.store)
		}
		s.want(s.run(args...), exitBroken, "", `run "lockcheck doctor"`)
		if s.stdout != "" || strings.Count(s.stderr, "no Docker engine") != 1 {
			t.Errorf("%v: want one sentence:\n%s%s", args, s.stdout, s.stderr)
		}
	}
	if entries, err := os.ReadDir(s.store); err != nil || len(entries) != 0 {
		t.Errorf("something was stored: %v, %v", entries, err)
	}
	s.want(s.run("clean"), exitOK, "nothing to clean\n", "")
	s.want(s.run("clean", "--images"), exitBroken, "nothing to clean\n", "no Docker engine")
}

// TestDynamicBinary: a binary that cannot run in containers is refused before anything starts, and commands
// without containers run all the same.
func TestDynamicBinary(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	var err error
	if s.binary, err = filepath.EvalSymlinks("/bin/ls"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"images"}, {"test", "--lock", "redis"}, {"repro", "redlock-gc-pause"},
		{"repro", "all", "--only", "^lock/redis/"}, {"compare", "--locks", "memory,redis"},
	} {
		if args[0] != "images" {
			args = append(args, "--store", s.store)
		}
		s.want(s.run(args...), exitUsage, "", "CGO_ENABLED=0 go build ./cmd/lockcheck")
	}
	if entries, err := os.ReadDir(s.store); err != nil || len(entries) != 0 {
		t.Errorf("something was run: %v, %v", entries, err)
	}
}

// TestExitCode: an exit code is found in an error, however deeply it is wrapped.
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
