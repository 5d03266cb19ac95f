package runs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
)

// killInMidRun starts lockcheck, kills it with SIGKILL while a worker is stopped,
// and looks for what is left. It returns what the journal had.
func killInMidRun(t *testing.T, args ...string) journaled {
	t.Helper()
	store := t.TempDir()
	command := exec.Command(clustertest.Binary(t), append([]string{"test", "--store", store}, args...)...)
	command.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	t.Setenv("XDG_CACHE_HOME", strings.TrimPrefix(command.Env[len(command.Env)-1], "XDG_CACHE_HOME="))
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill() }()
	folder := filepath.Join(store, latestLink)
	awaitEvent(t, filepath.Join(folder, HistoryFile), func(line string) bool {
		return strings.Contains(line, `"stage":"proven"`)
	})
	run := onlyRun(t)
	if err := command.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // "signal: killed" is what was asked for
	for _, child := range run.processes {
		gone(t, child.PID, child.Start)
	}
	clustertest.Eventually(t, 5*time.Second, func() error {
		if left, err := journaledRuns(); err != nil || len(left) > 0 {
			return fmt.Errorf("journals %v, %v", left, err)
		}
		return nothingOnDocker(run.id)
	})
	for _, temporary := range run.folders {
		if exists(temporary) {
			t.Errorf("%s is still there", temporary)
		}
	}
	j, err := Judge(folder)
	if err != nil {
		t.Fatalf("what the killed run left: %v", err)
	}
	if v := j.Results.Verdict; v != checker.Broken && v != checker.Violation {
		t.Errorf("a killed run is %s", v)
	}
	if f := j.Results.Finding(checker.Assumptions); f.Verdict != checker.Broken {
		t.Errorf("assumptions of a killed run are %s, want broken", f.Verdict)
	}
	return run
}

// journaled is what the journal of a run says.
type journaled struct {
	id        string
	processes []entry
	folders   []string
}

// onlyRun reads the only journal that there is.
func onlyRun(t *testing.T) journaled {
	t.Helper()
	all, err := journaledRuns()
	if err != nil || len(all) != 1 {
		t.Fatalf("journals %v, %v: want one", all, err)
	}
	return readRun(t, all[0])
}

// readRun reads the journal of a run.
func readRun(t *testing.T, id string) journaled {
	t.Helper()
	entries, err := readJournal(id)
	if err != nil {
		t.Fatal(err)
	}
	run := journaled{id: id}
	for _, e := range entries {
		switch {
		case e.PID != 0:
			run.processes = append(run.processes, e)
		case e.Folder != "":
			run.folders = append(run.folders, e.Folder)
		}
	}
	return run
}

// nothingOnDocker says what a run has left on the engine, if there is one.
func nothingOnDocker(run string) error {
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
