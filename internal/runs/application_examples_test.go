package runs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/checker/application"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/appfile"
)

// TestApplicationExamples: the wrong form of each example violates the invariant that its page names, and the right form is
// valid under faults.
func TestApplicationExamples(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t, clustertest.Rest)
	folder := builtExamples(t)
	for _, c := range []struct {
		name         string
		wrong, right string // faults
		invariant    string
		property     checker.Property // which the wrong form violates, too
		cause        string           // of that
	}{
		{"billing", "pause", "pause,kill,partition", "billed-once", checker.ExactlyOnce, application.CauseOverlappingHolders},
		{"leader", "pause", "pause,kill,partition", "no-older-plan", "", ""},
		{"scheduler", "none", "pause,partition", "ran-once", checker.ExactlyOnce, application.CauseDecidedBeforeLock},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			t.Run("wrong", func(t *testing.T) {
				t.Parallel()
				r := applicationEnds(t, checker.Violation, exampleOptions(t, folder, c.name, "wrong", c.wrong))
				if r.Verdict != checker.Violation || !violates(r, c.invariant) {
					t.Errorf("%s: %s; want that %s is violated", r.Verdict, r.Sentence, c.invariant)
				}
				if c.cause != "" && r.Finding(c.property).Causes[c.cause] == 0 {
					t.Errorf("%s is violated by %v, want %s", c.property, r.Finding(c.property).Causes, c.cause)
				}
			})
			t.Run("right", func(t *testing.T) {
				t.Parallel()
				if r := applicationEnds(t, checker.Valid, exampleOptions(t, folder, c.name, "right", c.right)); r.Verdict != checker.Valid {
					t.Errorf("%s: %s", r.Verdict, r.Sentence)
				}
			})
		})
	}
}

// builtExamples is a copy of the folder with the program that the page says to build.
func builtExamples(t *testing.T) string {
	t.Helper()
	const source = "../../examples/applications"
	folder := filepath.Join(t.TempDir(), "applications")
	if err := os.CopyFS(folder, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(folder, "leader", "leader"), "./"+source+"/leader")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return folder
}

func exampleOptions(t *testing.T, folder, name, form, faults string) ApplicationOptions {
	t.Helper()
	app, err := appfile.Read(filepath.Join(folder, name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range app.Servers {
		if s.Replica {
			app.Servers[i].Environment = slices.Concat(s.Environment, []string{"FORM=" + form})
		}
	}
	return ApplicationOptions{
		App: app, Nemesis: faults, Interval: DefaultInterval, TimeLimit: clustertest.Slow(25 * time.Second), MinOps: 1, Seed: 1,
		Machine: Machine{Store: t.TempDir(), Binary: clustertest.Binary(t), Version: "test"},
	}
}

func violates(r checker.Results, invariant string) bool {
	return slices.ContainsFunc(r.Finding(checker.Invariants).Facts, func(f checker.Fact) bool {
		return f.Kind == application.FactViolated && slices.Contains(f.Keys, invariant)
	})
}
