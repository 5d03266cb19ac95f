package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
)

// TestSweepAll: a run of which something cannot be removed ends neither the sweep nor
// its patience, and is swept when that can be removed.
func TestSweepAll(t *testing.T) {
	docker := clustertest.Engine(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	self, err := images.Maker{Engine: docker, Progress: t.Logf}.EnsureSelf(t.Context(), clustertest.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	labels := func(run string) map[string]string {
		t.Cleanup(func() { _, _ = docker.RemoveRun(context.Background(), run) })
		return map[string]string{engine.RunLabel: run, engine.OwnerLabel: "test"}
	}
	prefix := fmt.Sprintf("sweep-%d-%d-", os.Getpid(), time.Now().UnixNano())
	held, free, holder := prefix+"held", prefix+"free", prefix+"holder"
	for _, run := range []string{held, free} {
		if err := docker.CreateVolume(t.Context(), run, labels(run)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := docker.Start(t.Context(), engine.Spec{
		Name: holder, Image: self.ID, Labels: labels(holder), Command: []string{"agent"},
		Network: "none", Volumes: map[string]string{held: "/held"},
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	swept, err := sweepAll(ctx, docker, []string{held, free})
	if err == nil || !strings.Contains(err.Error(), held) || !strings.Contains(err.Error(), "in use") || ctx.Err() != nil {
		t.Errorf("error %v, want that the volume of %s is in use", err, held)
	}
	if len(swept) != 1 || swept[0].Run != free || swept[0].Objects != 1 {
		t.Errorf("swept %+v, want %s", swept, free)
	}
	if _, err := docker.RemoveRun(ctx, holder); err != nil {
		t.Fatal(err)
	}
	if swept, err := sweepAll(ctx, docker, []string{held}); err != nil || len(swept) != 1 || swept[0].Objects != 1 {
		t.Errorf("then swept %+v, %v, want %s", swept, err, held)
	}
}

// TestCleanWithoutEngine: what a dead run may have left on the engine is neither removed nor
// said to be while nobody looks there; what left nothing there is.
func TestCleanWithoutEngine(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dead, err := self()
	if err != nil {
		t.Fatal(err)
	}
	dead.boot = "another"
	for name, onDocker := range map[string]bool{"embedded": false, "docker": true} {
		j, err := openJournal(name, dead, onDocker)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(j.Begin("cut-1", "heal cut-1"), j.close()); err != nil {
			t.Fatal(err)
		}
	}
	left, unavailable, err := Clean(t.Context(), false)
	if err != nil || unavailable != nil || len(left) != 1 || left[0].Run != "embedded" || len(left[0].Undone) != 1 {
		t.Errorf("removed %+v, %v, %v", left, unavailable, err)
	}
	if runs, err := journaledRuns(); err != nil || len(runs) != 1 || runs[0] != "docker" {
		t.Errorf("there are journals of %v, %v", runs, err)
	}
}
