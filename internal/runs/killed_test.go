package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
	"lockcheck/internal/cleanup"
)

// killInMidRun starts lockcheck, kills it with SIGKILL while a worker is paused, and checks that nothing is
// left. It returns what the journal had.
func killInMidRun(t *testing.T, args ...string) journaled {
	t.Helper()
	clustertest.StartsServers(t)
	store := t.TempDir()
	command := exec.Command(clustertest.Binary(t), append([]string{"test", "--store", store}, args...)...)
	journals := ownJournals(t, command)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill() }()
	folder := filepath.Join(store, latestLink)
	awaitEvent(t, filepath.Join(folder, HistoryFile), func(line string) bool {
		return strings.Contains(line, `"stage":"proven"`)
	})
	all := journals.read(t)
	if len(all) != 1 {
		t.Fatalf("journals %v: want one", all)
	}
	run := all[0]
	if err := command.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // "signal: killed" is expected
	journals.nothingLeft(t, all)
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

// journaled is what the journal of a run contains.
type journaled struct {
	id        string
	processes []cleanup.Entry
	folders   []string
}

// journals is the folder of journals of one lockcheck only, so that no other run cleans up after it.
type journals string

// ownJournals gives a lockcheck that has not started yet its own cache folder.
func ownJournals(t *testing.T, command *exec.Cmd) journals {
	t.Helper()
	cache := t.TempDir()
	command.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
	return journals(filepath.Join(cache, "lockcheck", "runs"))
}

func (j journals) read(t *testing.T) (all []journaled) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(string(j), "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just been cleaned up
		}
		if err != nil {
			t.Fatal(err)
		}
		run := journaled{id: strings.TrimSuffix(filepath.Base(path), ".jsonl")}
		for line := range bytes.Lines(text) {
			var e cleanup.Entry
			if json.Unmarshal(line, &e) != nil {
				continue // the line is incomplete: lockcheck was writing it
			}
			if e.PID != 0 {
				run.processes = append(run.processes, e)
			}
			if e.Folder != "" {
				run.folders = append(run.folders, e.Folder)
			}
		}
		all = append(all, run)
	}
	return all
}

// nothingLeft waits until everything of the runs of a killed process has been cleaned up.
func (j journals) nothingLeft(t *testing.T, runs []journaled) {
	t.Helper()
	clustertest.Eventually(t, time.Minute, func() error {
		if left := j.read(t); len(left) > 0 {
			return fmt.Errorf("journals %v", left)
		}
		for _, run := range runs {
			if err := clustertest.NothingLeft(run.id); err != nil {
				return err
			}
		}
		return nil
	})
	for _, run := range runs {
		for _, child := range run.processes {
			gone(t, child)
		}
		for _, folder := range run.folders {
			if exists(folder) {
				t.Errorf("%s is still there", folder)
			}
		}
	}
}

// TestKilledPool: a cluster that has served a run before is removed when the process that keeps it dies.
func TestKilledPool(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	folder := filepath.Join(t.TempDir(), "comparison")
	command := exec.Command(clustertest.Binary(t), "compare", "--locks", "redis", "--faults", "none", "--guards", "none",
		"--seeds", "9", "--parallel", "1", "--time-limit", "8s", "--out", folder)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill() }()
	var header history.Header // header of a run that followed another one; on a busy machine some runs get a new cluster
	clustertest.Eventually(t, 5*time.Minute, func() error {
		found, err := filepath.Glob(filepath.Join(folder, "runs", "*", "2*", TestFile))
		if err != nil {
			return err
		}
		for _, path := range found {
			if header, err = readHeader(path); err == nil && header.Earlier > 0 {
				return nil
			}
		}
		return fmt.Errorf("%d runs, none on the cluster of another one, error %v", len(found), err)
	})
	if err := command.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // "signal: killed" is expected
	clustertest.Eventually(t, time.Minute, func() error {
		journals, err := cleanup.Journals()
		if err != nil || slices.Contains(journals, header.Cluster) {
			return fmt.Errorf("journals %v, %v", journals, err)
		}
		return clustertest.NothingLeft(header.Cluster)
	})
}

func readHeader(path string) (header history.Header, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return header, err
	}
	return header, json.Unmarshal(text, &header)
}

// TestKilledDaemons: a process that a client has started, and that has dropped its environment, ends when the
// run is killed. It carries no mark of its run, but it descends from the client.
func TestKilledDaemons(t *testing.T) {
	t.Parallel()
	seconds := fmt.Sprintf("600.%d", time.Now().UnixNano()) // no other process sleeps for that time
	lock := filepath.Join(t.TempDir(), "lock.yaml")
	if err := os.WriteFile(lock, []byte(`
client:
  command: [sh, -c, 'env -i setsid sleep `+seconds+` >/dev/null 2>&1 & exec flock "{folder}/{key}" "$@"', sh, "{child}"]
  wrap: true
servers: none
`), 0o600); err != nil {
		t.Fatal(err)
	}
	daemons := func() (pids []string) {
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range lines {
			if text, err := os.ReadFile(path); err == nil && string(text) == "sleep\x00"+seconds+"\x00" {
				pids = append(pids, filepath.Base(filepath.Dir(path)))
			}
		}
		return pids
	}
	killInMidRun(t, "--lock", lock, "--nemesis", "pause", "--time-limit", "60s")
	clustertest.Eventually(t, time.Minute, func() error {
		if left := daemons(); len(left) > 0 {
			return fmt.Errorf("processes %v still run", left)
		}
		return nil
	})
}
