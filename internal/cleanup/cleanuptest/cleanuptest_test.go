package cleanuptest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
	"lockcheck/internal/cleanup"
)

// toBeKilled is set in the environment of the test process that is to be killed.
const toBeKilled = "LOCKCHECK_TEST_TO_BE_KILLED"

// TestKilledTest: what a test process has created on the engine is removed after the process was killed, but
// not while it runs.
func TestKilledTest(t *testing.T) {
	docker := clustertest.Engine(t)
	id, labels := Run(t)
	if err := docker.CreateVolume(t.Context(), id, labels); err != nil {
		t.Fatal(err)
	}
	if os.Getenv(toBeKilled) != "" {
		fmt.Printf("%s\n", id)
		select {} // until it is killed
	}
	t.Cleanup(func() { _, _ = docker.RemoveRun(context.Background(), id) })
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // hides the journals of other runs
	killed := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	killed.Env = append(os.Environ(), toBeKilled+"=1")
	output, err := killed.StdoutPipe()
	if err == nil {
		err = killed.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer killed.Process.Kill() //nolint:errcheck // it has ended by then
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	other := strings.TrimSpace(line)
	t.Cleanup(func() { _, _ = docker.RemoveRun(context.Background(), other) })
	if both := cleaned(t, docker); !both[id] || !both[other] {
		t.Errorf("of two living test processes there is left: %v", both)
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // the error says that it was killed
	if left := cleaned(t, docker); !left[id] || left[other] {
		t.Errorf("of this test process and of %s, which was killed, there is left: %v", other, left)
	}
}

// cleaned removes what dead processes have left behind, and returns the runs that still have objects on the
// engine.
func cleaned(t *testing.T, docker *engine.Engine) map[string]bool {
	t.Helper()
	if _, unavailable, err := cleanup.Clean(t.Context(), true); unavailable != nil || err != nil {
		t.Fatal(unavailable, err)
	}
	runs, err := docker.Runs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left := make(map[string]bool)
	for _, r := range runs {
		left[r.ID] = true
	}
	return left
}
