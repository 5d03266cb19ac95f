// Package clustertest gives tests what they need of the machine: a lockcheck
// binary, a Docker engine or a reason to do without.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/engine"
)

// folder is where the binary was built, for Main to remove; "" if it was not.
var folder string

// builtVariable names a binary of lockcheck that is up to date, which saves each package to link
// one of its own.
const builtVariable = "LOCKCHECK_TESTED"

// build is the binary that all tests of a process share.
var build = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(builtVariable); path != "" {
		return path, nil
	}
	var err error
	if folder, err = os.MkdirTemp("", "lockcheck-test-"); err != nil {
		return "", err
	}
	path := filepath.Join(folder, "lockcheck")
	command := exec.Command("go", "build", "-tags", "grpcnotrace", "-o", path, "lockcheck/cmd/lockcheck") // as make build does
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, output)
	}
	return path, nil
})

// Binary builds lockcheck once and returns its path. TestMain of the package must
// call Main.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// workerPrograms builds the programs of workers that are not lockcheck itself, next to the binary.
var workerPrograms = sync.OnceValue(func() error {
	path, err := build()
	if err != nil {
		return err
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "lockcheck").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	sources, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "workers", "*"))
	if err != nil {
		return err
	}
	for _, source := range sources {
		name := filepath.Base(source)
		command := exec.Command("go", "build", "-tags", name, "-o", path+"-"+name, ".")
		command.Dir, command.Env = source, append(os.Environ(), "CGO_ENABLED=0")
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("go build in %s: %w\n%s", source, err, output)
		}
	}
	return nil
})

// WithWorkerPrograms is Binary, with the programs of workers next to it.
func WithWorkerPrograms(t testing.TB) string {
	t.Helper()
	if err := workerPrograms(); err != nil {
		t.Fatal(err)
	}
	return Binary(t)
}

// Alone gives the tests of this package the binary under a path that no other package uses, so that
// they can tell their own processes from those of others. It belongs in front of Main.
func Alone() error {
	path := os.Getenv(builtVariable)
	if path == "" {
		return nil // they build one
	}
	var err error
	if folder, err = os.MkdirTemp("", "lockcheck-test-"); err != nil {
		return err
	}
	own := filepath.Join(folder, "lockcheck")
	if err := os.Link(path, own); err != nil { // another file system
		content, err := os.ReadFile(path)
		if err := errors.Join(err, os.WriteFile(own, content, 0o755)); err != nil {
			return err
		}
	}
	return os.Setenv(builtVariable, own)
}

// Main runs the tests of a package and removes the binary if they built it.
func Main(m *testing.M) int {
	code := m.Run()
	if folder != "" {
		_ = os.RemoveAll(folder)
	}
	return code
}

// restVariable of the environment says that only the tests run which make test leaves out.
const restVariable = "LOCKCHECK_REST"

// Rest stands among the servers that Engine is told of for a test that make test leaves out,
// whichever servers it starts.
const Rest = "rest"

// usual are the servers whose tests make test runs. make test-all runs those of the others as well.
var usual = []string{"redis", "redis5", "redis-aof", "etcd", "postgres"}

// inRing skips a test that is not of the ones that run now.
func inRing(t testing.TB, servers []string) {
	t.Helper()
	rest := slices.ContainsFunc(servers, func(s string) bool { return !slices.Contains(usual, s) })
	switch only := os.Getenv(restVariable) != ""; {
	case testing.Short():
		t.Skip("starts servers, and -short leaves that out")
	case rest && !only:
		t.Skip("make test-all runs this test")
	case !rest && only:
		t.Skip("make test runs this test")
	}
}

// StartsServers leaves a test out of -short, which is for what needs no servers. Those of the
// embedded lock count: a run of it takes seconds.
func StartsServers(t testing.TB) {
	t.Helper()
	inRing(t, nil)
}

// Engine returns the Docker engine, for a test that starts such servers; none for those that make
// test starts. Without an engine the test is skipped; in CI, where a skip would look like a pass, it
// fails.
func Engine(t testing.TB, servers ...string) *engine.Engine {
	t.Helper()
	inRing(t, servers)
	docker, err := engine.Connect(context.Background())
	switch {
	case err == nil:
		t.Cleanup(func() { _ = docker.Close() })
		return docker
	case os.Getenv("CI") == "true":
		t.Fatalf("CI needs Docker: %v", err)
	default:
		t.Skipf("needs Docker: %v", err)
	}
	return nil
}

// ClientLibraries leaves a test out of a build with the tag embedded, which has none.
func ClientLibraries(t testing.TB) {
	t.Helper()
	if clients.EmbeddedOnly {
		t.Skip("needs a client library, and this build has none")
	}
}

// slowVariable of the environment says by which factor all bounds on waiting grow: 4 on a machine
// that is four times slower than two idle processors.
const slowVariable = "LOCKCHECK_SLOW"

// Slow returns a bound on waiting as it is on this machine. Bounds only decide when a test gives up:
// a test that passes takes as long with any factor.
func Slow(limit time.Duration) time.Duration {
	factor, err := strconv.ParseFloat(os.Getenv(slowVariable), 64)
	if err != nil || factor < 1 {
		return limit
	}
	return time.Duration(factor * float64(limit))
}

// Eventually calls ask until it returns no error. Once the limit has passed (see Slow),
// it fails the test with the last error.
func Eventually(t testing.TB, limit time.Duration, ask func() error) {
	t.Helper()
	limit = Slow(limit)
	deadline := time.Now().Add(limit)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %v", limit, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// NothingLeft says what a run has left on the engine, if there is one.
func NothingLeft(run string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	docker, err := engine.Connect(ctx)
	if err != nil {
		return nil
	}
	defer docker.Close()
	all, err := docker.Runs(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.ID == run {
			return fmt.Errorf("run %s has left objects on the engine", run)
		}
	}
	return nil
}
