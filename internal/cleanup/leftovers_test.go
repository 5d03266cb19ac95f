package cleanup

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
	"lockcheck/internal/folders"
	"lockcheck/internal/processes"
)

// TestSweepAll: a run with an object that cannot be removed does not end the sweep, and the sweep of that run
// gives up after a time. Once the object can be removed, the run is swept.
func TestSweepAll(t *testing.T) {
	docker := clustertest.Engine(t)
	binary := clustertest.Binary(t) // before XDG_CACHE_HOME changes: it also moves the compiler's cache
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	self, err := images.Maker{Engine: docker, Progress: t.Logf}.EnsureSelf(t.Context(), binary)
	if err != nil {
		t.Fatal(err)
	}
	labels := func(run string) map[string]string {
		t.Cleanup(func() { _, _ = docker.RemoveRun(context.Background(), run) })
		return labelsOf(t, run)
	}
	held, free, holder := newID(t), newID(t), newID(t)
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

// TestCleanWithoutEngine: while the engine is not asked, a run that may have objects there is neither swept nor
// reported as swept. A run without objects there is.
func TestCleanWithoutEngine(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dead, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	dead.boot = "another"
	embedded, onEngine := newID(t), newID(t)
	for id, onDocker := range map[string]bool{embedded: false, onEngine: true} {
		j, err := OpenJournal(id, dead, onDocker)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(j.Begin("cut-1", "heal cut-1"), j.Close()); err != nil {
			t.Fatal(err)
		}
	}
	left, unavailable, err := Clean(t.Context(), false)
	if err != nil || unavailable != nil || len(left) != 1 || left[0].Run != embedded || len(left[0].Undone) != 1 {
		t.Errorf("removed %+v, %v, %v", left, unavailable, err)
	}
	if runs, err := Journals(); err != nil || len(runs) != 1 || runs[0] != onEngine {
		t.Errorf("there are journals of %v, %v", runs, err)
	}
}

// TestCleanAfterBoot: after a reboot, a process with a recorded number belongs to somebody else and survives. A
// journal that cannot be read does not keep others from being swept.
func TestCleanAfterBoot(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dead, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	dead.boot = "another"
	stranger := exec.Command("sleep", "600")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = stranger.Process.Kill(), stranger.Wait() })
	before, unreadable := newID(t), newID(t)
	j, err := OpenJournal(before, dead, false)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := folders.Temporary()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.process(stranger.Process.Pid), j.Folder(folder), j.Close()); err != nil {
		t.Fatal(err)
	}
	journals, err := journalFolder()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(journals, unreadable+".jsonl"), 0o755); err != nil {
		t.Fatal(err)
	}
	left, _, err := Clean(t.Context(), false)
	if err == nil || !strings.Contains(err.Error(), unreadable) || len(left) != 1 || left[0].Run != before || left[0].Processes != 0 {
		t.Errorf("removed %+v, %v", left, err)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Errorf("%s is still there", folder)
	}
}

// journalOfDead opens, in a cache folder of its own, the journal of a dead lockcheck process. This process now
// has its number.
func journalOfDead(t *testing.T) *Journal {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dead, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	dead.start = "1"
	j, err := OpenJournal(newID(t), dead, false)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestCleanForged: if a journal names paths that lockcheck cannot have made, they are reported and not removed.
// The folder that lockcheck has made is removed all the same.
func TestCleanForged(t *testing.T) {
	j := journalOfDead(t)
	precious := t.TempDir()
	ours, err := folders.Temporary()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Folder(precious), j.Folder(ours), j.Close()); err != nil {
		t.Fatal(err)
	}
	if left, _, err := Clean(t.Context(), false); err == nil || !strings.Contains(err.Error(), precious) || len(left) != 0 {
		t.Errorf("removed %+v, %v: want the error to name %s", left, err, precious)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(ours); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", ours, err)
	}
}

// TestCleanElsewhere: a run is swept even if its TMPDIR was another one and is gone.
func TestCleanElsewhere(t *testing.T) {
	j := journalOfDead(t)
	if err := errors.Join(j.Folder(filepath.Join(t.TempDir(), "gone", "lockcheck-1")), j.Close()); err != nil {
		t.Fatal(err)
	}
	if left, _, err := Clean(t.Context(), false); err != nil || len(left) != 1 {
		t.Errorf("removed %+v, %v: want one run, and no error", left, err)
	}
}

// TestSweepForged: an ID that leads out of the journal folder is refused by every caller, before a file of that
// name is read or removed.
func TestSweepForged(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	journals, err := journalFolder()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(journals, "..", "elsewhere.jsonl")
	if err := os.WriteFile(elsewhere, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Reap(t.Context(), "../elsewhere", false, strings.NewReader("")); err == nil {
		t.Error("the run ../elsewhere was swept")
	}
	if _, err := os.Stat(elsewhere); err != nil {
		t.Error(err)
	}
	if err := Reap(t.Context(), newID(t), false, strings.NewReader("")); err != nil {
		t.Errorf("a run without a journal: %v", err)
	}
}

// TestRunsForged: an object whose label no run could have made, such as a label of an image, belongs to no run.
func TestRunsForged(t *testing.T) {
	docker := clustertest.Engine(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	ours := newID(t)
	forged := "../" + ours
	for name, run := range map[string]string{ours + "-ours": ours, ours + "-forged": forged} {
		t.Cleanup(func() { _, _ = docker.RemoveRun(context.Background(), run) })
		if err := docker.CreateVolume(t.Context(), name, labelsOf(t, run)); err != nil {
			t.Fatal(err)
		}
	}
	owners, err := ownersOf(t.Context(), docker)
	if err != nil || owners[ours] == "" || owners[forged] != "" {
		t.Errorf("owners %v, %v: want %s among them, not %s", owners, err, ours, forged)
	}
}

// TestID: an ID made by NewID is accepted, and one that leads to another folder is refused.
func TestID(t *testing.T) {
	for id, is := range map[string]bool{
		newID(t): true, "": false, "../x": false, newID(t) + "/../x": false, newID(t) + "\n": false, "20060102t150405": false,
	} {
		if isID(id) != is {
			t.Errorf("%q: is %t, want %t", id, !is, is)
		}
	}
}

// labelsOf returns the labels of objects made by a run of this process.
func labelsOf(t *testing.T, run string) map[string]string {
	t.Helper()
	me, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{engine.RunLabel: run, engine.OwnerLabel: me.String()}
}

func newID(t *testing.T) string {
	t.Helper()
	id, err := NewID(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestCleanOrphans: orphans of a process group that the run has started are killed. A group of another program
// that has a recorded number survives.
func TestCleanOrphans(t *testing.T) {
	j := journalOfDead(t)
	_, ours := orphan(t, j.Start)
	group, others := orphan(t, (*exec.Cmd).Start)
	if err := errors.Join(j.write(Entry{PID: group, Start: "1"}), j.Close()); err != nil {
		t.Fatal(err)
	}
	left, _, err := Clean(t.Context(), false)
	if err != nil || len(left) != 1 || left[0].Processes != 1 {
		t.Errorf("removed %+v, %v: want one process", left, err)
	}
	clustertest.Eventually(t, 10*time.Second, func() error {
		if runs(ours) {
			return errors.New("a process of the run goes on")
		}
		return nil
	})
	if !runs(others) {
		t.Error("a process of somebody else was ended")
	}
}

// orphan starts a process whose group leader has ended, and returns its number and its group's.
func orphan(t *testing.T, start func(*exec.Cmd) error) (group, pid int) {
	t.Helper()
	leader := exec.Command("sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!")
	leader.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said bytes.Buffer
	leader.Stdout = &said
	if err := errors.Join(start(leader), leader.Wait()); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(said.String()))
	if err != nil || !runs(pid) {
		t.Fatalf("%q, %v", said.String(), err)
	}
	t.Cleanup(func() {
		if runs(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return leader.Process.Pid, pid
}

// runs reports whether a process has not ended.
func runs(pid int) bool {
	fields, err := processes.Stat(pid)
	return err == nil && fields[processes.State] != "Z"
}
