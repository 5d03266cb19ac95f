package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockcheck/clients/clienttest"
	"lockcheck/clients/conformance"
	"lockcheck/clusters/clustertest"
)

// client is the command line of a test client. The mark is an argument by which it is found.
func client(behaviour, mark string) []string {
	command := clienttest.Command(behaviour)
	line := append([]string{"env"}, command.Env...)
	return append(append(line, command.Args...), mark)
}

// checkClient checks a test client on the embedded service, and fails the test if anything of it is
// left.
func (s *shell) checkClient(behaviour string, flags ...string) int {
	s.t.Helper()
	clustertest.StartsServers(s.t)
	mark := "mark=" + s.t.TempDir()
	code := s.run(append(append([]string{"client", "check"}, append(flags, "--")...), client(behaviour, mark)...)...)
	s.nothingLeft()
	s.noneRuns(mark)
	return code
}

// noneRuns fails the test if a process with an argument still runs.
func (s *shell) noneRuns(argument string) {
	s.t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range commands {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte("\x00"+argument+"\x00")) {
			s.t.Errorf("%s still runs: %q", path, text)
		}
	}
}

func TestClientCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		behaviour string
		code      int
		stdout    []string
	}{
		{"right", exitOK, []string{"CONFORMS  clienttest 1.0 keeps the protocol: ", "release-twice      passed"}},
		{"releases-twice", exitViolation, []string{"FAILS  clienttest 1.0 breaks the protocol: ", "release-twice      FAILED", "docs/protocol.md: `not_held` says", "\n> "}},
		{"dies-at-once", exitViolation, []string{"FAILS  ", "hello              FAILED", "ImportError: no module named redis"}},
	} {
		t.Run(c.behaviour, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			code := s.checkClient(c.behaviour)
			for _, want := range c.stdout {
				s.want(code, c.code, want, "checking the client")
			}
		})
	}
}

// TestClientCheckNoProgram: a command without its interpreter and a command without its file are reported as
// the same mistake: nothing answers hello.
func TestClientCheckNoProgram(t *testing.T) {
	t.Parallel()
	clustertest.StartsServers(t)
	for _, command := range [][]string{{"/no/such/program"}, {"sh", "/no/such/program"}} {
		s := newShell(t)
		code := s.run(append([]string{"client", "check", "--"}, command...)...)
		s.want(code, exitViolation, "1 failed", "")
		s.want(code, exitViolation, "hello              FAILED", "")
		s.want(code, exitViolation, "/no/such/program", "")
		s.nothingLeft()
	}
}

// TestClientSecrets: values that a lock file gives its client are on no command line. Of this environment the
// client gets only what every program needs and what the file asks for.
func TestClientSecrets(t *testing.T) {
	t.Parallel()
	clustertest.StartsServers(t)
	for name, arguments := range map[string][]string{
		"check": {"client", "check"},
		"test":  {"test", "--nemesis", "none", "--time-limit", "5s", "--concurrency", "1", "--store", t.TempDir(), "--lock"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			file := filepath.Join(t.TempDir(), "lock.yaml")
			if err := os.WriteFile(file, []byte(`
client:
  command: [sh, -c, "env >environment; cat /proc/*/cmdline >lines 2>/dev/null; cat /proc/$PPID/cmdline >parent"]
  environment: {PASSWORD: of-this-lock, WANTED: }
servers: memory
`), 0o600); err != nil {
				t.Fatal(err)
			}
			s.run(append(arguments, file)...) // the run fails, because the client ends at once
			read := func(name string) string {
				text, err := os.ReadFile(filepath.Join(filepath.Dir(file), name))
				if err != nil {
					t.Fatalf("%v; %s", err, s.stderr)
				}
				return string(text)
			}
			environment := read("environment")
			for variable, given := range map[string]bool{"PASSWORD=of-this-lock": true, "WANTED=passed-on": true, "PATH=": true, "SECRET": false} {
				if strings.Contains(environment, variable) != given {
					t.Errorf("%s in the environment: want %t\n%s", variable, given, environment)
				}
			}
			if parent := read("parent"); !strings.HasPrefix(parent, s.binary) {
				t.Errorf("the parent is %q", parent)
			}
			if strings.Contains(read("lines"), "of-this-lock") {
				t.Error("a command line has the password")
			}
		})
	}
}

func TestClientCheckJSON(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(s.checkClient("other-version", "--json"), exitViolation, "", "")
	var report struct {
		Conclusion conformance.Conclusion
		conformance.Report
	}
	if err := json.Unmarshal([]byte(s.stdout), &report); err != nil {
		t.Fatal(err)
	}
	if report.Conclusion != conformance.Fails || report.Count(conformance.Failed) != 1 || len(report.Results) < 25 {
		t.Errorf("%+v", report)
	}
}

// TestClientCheckFile: a lock file says what its client supports.
func TestClientCheckFile(t *testing.T) {
	t.Parallel()
	clustertest.StartsServers(t)
	s := newShell(t)
	command, err := json.Marshal(client("right", "of a file"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "lock.yaml")
	text := fmt.Sprintf("client: {command: %s}\nservers: memory\nlease: 1s\ntokens: true\n", command)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.want(s.run("client", "check", path), exitOK, "tokens             passed", "")
	s.want(exitOK, exitOK, "renew              -          the lock is not described with renew", "")
	s.nothingLeft()
}

// TestClientCheckInterrupted: Ctrl-C ends a check of a client that does not answer.
func TestClientCheckInterrupted(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.onLine = func(line string) {
		if strings.Contains(line, "checking the client") {
			s.signals <- os.Interrupt
		}
	}
	s.want(s.checkClient("silent-in-hello"), exitInterrupted, "", "")
	if s.stdout != "" { // a check that was not interrupted prints what it found
		t.Error(s.stdout)
	}
}

func TestClientCheckUsage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock.yaml")
	if err := os.WriteFile(path, []byte("client: {command: [\"true\"]}\nservers: memory\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrapped := filepath.Join(t.TempDir(), "wrapped.yaml")
	if err := os.WriteFile(wrapped, []byte("client: {command: [\"true\"], wrap: true}\nservers: none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "name a lock file, or a command after --"},
		{[]string{"--"}, "name a lock file, or a command after --"},
		{[]string{"a.yaml", "--", "true"}, "name a lock file, or a command after --"},
		{[]string{"python3", "client.py"}, "write a command after --"},
		{[]string{"redis"}, "redis is no lock file"},
		{[]string{"missing.yaml"}, "missing.yaml: no such file"},
		{[]string{wrapped}, "does not speak the protocol"},
		{[]string{"--renew", path}, "--renews: the lock file says what the client can do; omit --renews"},
		{[]string{"--ttl", "1s", path}, "has no lease"},
		{[]string{"--ttl", "-1s", "--", "true"}, "at least 1ms"},
		{[]string{"--renew", "--session", "--", "true"}, "with --session the client renews by itself"},
	} {
		s.want(s.run(append([]string{"client", "check"}, c.args...)...), exitUsage, "", c.want)
		if s.stdout != "" {
			t.Errorf("%q: %q on stdout", c.args, s.stdout)
		}
	}
}
