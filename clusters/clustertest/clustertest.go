// Package clustertest gives tests what they need from the machine: a lockcheck binary, and a Docker engine or a
// skip.
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

// folder is where the binary was built, for Main to remove; "" if it was not built.
var folder string

// builtVariable names an up-to-date binary of lockcheck, so that not every package has to link one.
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

// Binary builds lockcheck once and returns its path. TestMain of the package must call Main.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// workerPrograms builds the worker programs that are not part of lockcheck, next to the binary.
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

// WithWorkerPrograms is Binary, with the worker programs next to it.
func WithWorkerPrograms(t testing.TB) string {
	t.Helper()
	if err := workerPrograms(); err != nil {
		t.Fatal(err)
	}
	return Binary(t)
}

// Alone gives the tests of this package the binary under a path that no other package uses. They can then
// distinguish their processes from those of other packages. Call it before Main.
func Alone() error {
	path := os.Getenv(builtVariable)
	if path == "" {
		return nil // the tests build one
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

// restVariable is an environment variable. If it is set, only the tests run that make test leaves out.
const restVariable = "LOCKCHECK_REST"

// Rest, as an argument of Engine or StartsServers, marks a test that make test leaves out, whatever servers it starts.
const Rest = "rest"

// usual are the servers whose tests make test runs. make test-all also runs the others.
var usual = []string{"redis", "redis5", "redis-aof", "redis-aof-everysec", "etcd", "postgres"}

// inRing skips a test that does not belong to the ring that runs now.
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

// StartsServers leaves a test out of -short, which is for tests without servers. Embedded servers count,
// because a run with them takes seconds. With Rest make test leaves the test out, too.
func StartsServers(t testing.TB, ring ...string) {
	t.Helper()
	inRing(t, ring)
}

// Engine returns the Docker engine for a test that starts the given servers; name none for a test that make
// test always runs. Without an engine the test is skipped. In CI it fails, because a skip would look like a
// pass.
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

// ClientLibraries skips a test in a build with the tag embedded, which has no client libraries.
func ClientLibraries(t testing.TB) {
	t.Helper()
	if clients.EmbeddedOnly {
		t.Skip("needs a client library, and this build has none")
	}
}

// slowVariable is an environment variable with the factor by which all waiting bounds grow: 4 on a machine that
// is four times slower than two idle processors.
const slowVariable = "LOCKCHECK_SLOW"

// Slow returns a waiting bound adapted to this machine. Bounds only decide when a test gives up; a passing test
// takes equally long with any factor.
func Slow(limit time.Duration) time.Duration {
	factor, err := strconv.ParseFloat(os.Getenv(slowVariable), 64)
	if err != nil || factor < 1 {
		return limit
	}
	return time.Duration(factor * float64(limit))
}

// Eventually calls ask until it returns no error. After the limit (see Slow) it fails the test with the last
// error.
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

// NothingLeft returns an error if a run has left objects on the engine. It is nil without an engine.
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
