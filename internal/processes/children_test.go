package processes

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEndDescendants: an orphan that has cleared its environment is ended, too.
func TestEndDescendants(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
	command := exec.Command("sh", "-c", "env -i setsid sleep 60 >/dev/null 2>&1 & echo")
	output, err := command.Output()
	if err != nil || len(output) == 0 {
		t.Fatalf("%q, %v", output, err)
	}
	before, err := Descendants(os.Getpid())
	if err != nil || slices.IndexFunc(before, func(pid int) bool { return !ended(pid) }) < 0 {
		t.Fatalf("descendants %v, %v: want one that runs", before, err)
	}
	if err := EndDescendants(); err != nil {
		t.Error(err)
	}
	for _, pid := range before {
		if !ended(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
}
