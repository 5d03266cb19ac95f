// Package locktest tests a lock under faults in "go test". The test binary itself is the client. A package
// whose tests call Run has
//
//	func TestMain(m *testing.M) { locktest.Main(m, open) }
package locktest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lockcheck/clients/serve"
)

// clientVariable is the environment variable that makes the test binary a client. Program is the variable with
// the path of lockcheck, if lockcheck is not in the PATH.
const (
	clientVariable = "LOCKCHECK_CLIENT"
	Program        = "LOCKCHECK"
)

// Main runs the tests of a package. If lockcheck has started the test binary as a client, it serves the lock
// instead. It does not return.
func Main(m *testing.M, open serve.Open) {
	if os.Getenv(clientVariable) == "" {
		os.Exit(m.Run())
	}
	if err := serve.Run(open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Run runs "lockcheck test" with the arguments, logs the verdict, and fails the test unless lockcheck exits
// with 0. about is a lock file without its client, as in "servers: redis\nlease: 2s". If the test fails, the
// folder with the run and its page is kept, and the output names it; otherwise it is removed. With -short the
// test is skipped, because a run takes half a minute.
func Run(t *testing.T, about string, arguments ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("a run takes half a minute")
	}
	run(t, about, arguments...)
}

func run(t testing.TB, about string, arguments ...string) {
	t.Helper()
	program := os.Getenv(Program)
	if program == "" {
		program = "lockcheck"
	}
	file, err := write(t.TempDir(), about)
	if err != nil {
		t.Fatal(err)
	}
	arguments = append([]string{"test", "--lock", file, "--store", newStore(t)}, arguments...)
	output, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput()
	if err != nil {
		t.Errorf("lockcheck: %v\n%s", err, output)
		return
	}
	t.Log(verdicts(string(output)))
}

// newStore makes a folder that is kept if the test fails, because its pages show why.
func newStore(t testing.TB) string {
	t.Helper()
	store, err := os.MkdirTemp("", "locktest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		if err := os.RemoveAll(store); err != nil {
			t.Error(err)
		}
	})
	return store
}

// verdict matches a line that begins with a verdict, and its continuation lines.
var verdict = regexp.MustCompile(`(?m)^(?:VALID|VIOLATION|UNDECIDED|BROKEN)  .*(?:\n +\S.*)*`)

// verdicts returns lockcheck's verdict on each run.
func verdicts(output string) string {
	return strings.Join(verdict.FindAllString(output, -1), "\n")
}

// onHost matches servers whose clients run on this machine.
var onHost = regexp.MustCompile(`(?m)^servers: *(memory|none)\s*$`)

// dockerfile puts the test binary into an image. The image has a C library, which the binary may need.
const dockerfile = "FROM debian:trixie-slim\nCOPY client /\n"

// write writes a lock file and the files that it names.
func write(folder, about string) (path string, err error) {
	binary, err := os.Executable()
	if err != nil {
		return "", err
	}
	client := fmt.Sprintf("  command: [%q]\n", binary)
	if !onHost.MatchString(about) {
		client = "  build: .\n  command: [/client]\n"
		if err := os.WriteFile(filepath.Join(folder, "Dockerfile"), []byte(dockerfile), 0o600); err != nil {
			return "", err
		}
		if err := copyTo(filepath.Join(folder, "client"), binary); err != nil {
			return "", err
		}
	}
	text := fmt.Sprintf("name: under-test\n%s\nclient:\n%s  environment: {%s: \"1\"}\n", about, client, clientVariable)
	path = filepath.Join(folder, "lock.yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

func copyTo(path, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o700)
}
