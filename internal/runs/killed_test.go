package runs

import (
	"encoding/json"
	"fmt"
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

// killInMidRun starts lockcheck, kills it with SIGKILL while a worker is stopped,
// and looks for what is left. It returns what the journal had.
func killInMidRun(t *testing.T, args ...string) journaled {
	t.Helper()
	clustertest.StartsServers(t)
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
		gone(t, child)
	}
	clustertest.Eventually(t, time.Minute, func() error {
		if left, err := cleanup.Journals(); err != nil || len(left) > 0 {
			return fmt.Errorf("journals %v, %v", left, err)
		}
		return clustertest.NothingLeft(run.id)
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
	processes []cleanup.Entry
	folders   []string
}

// onlyRun reads the only journal that there is.
func onlyRun(t *testing.T) journaled {
	t.Helper()
	all, err := cleanup.Journals()
	if err != nil || len(all) != 1 {
		t.Fatalf("journals %v, %v: want one", all, err)
	}
	return readRun(t, all[0])
}

// readRun reads the journal of a run.
func readRun(t *testing.T, id string) journaled {
	t.Helper()
	entries, err := cleanup.ReadJournal(id)
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

// TestKilledPool: a cluster that has served a run before goes with the process that keeps it.
func TestKilledPool(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	folder := filepath.Join(t.TempDir(), "comparison")
	command := exec.Command(clustertest.Binary(t), "compare", "--locks", "redis", "--faults", "none", "--guards", "none",
		"--seeds", "2", "--parallel", "1", "--time-limit", "8s", "--out", folder)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill() }()
	var header history.Header
	clustertest.Eventually(t, 2*time.Minute, func() error {
		found, err := filepath.Glob(filepath.Join(folder, "runs", "*", "2*", TestFile))
		if err != nil || len(found) < 2 {
			return fmt.Errorf("%d runs, %w", len(found), err)
		}
		text, err := os.ReadFile(found[1])
		if err != nil {
			return err
		}
		return json.Unmarshal(text, &header)
	})
	if header.Cluster == "" || header.Earlier != 1 {
		t.Fatalf("the second run has cluster %q after %d runs", header.Cluster, header.Earlier)
	}
	if err := command.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // "signal: killed" is what was asked for
	clustertest.Eventually(t, time.Minute, func() error {
		journals, err := cleanup.Journals()
		if err != nil || slices.Contains(journals, header.Cluster) {
			return fmt.Errorf("journals %v, %v", journals, err)
		}
		return clustertest.NothingLeft(header.Cluster)
	})
}

// TestKilledDaemons: what a client has started and has thrown its environment away ends with a run
// that is killed: no mark tells whose it is, but whose descendant it is does.
func TestKilledDaemons(t *testing.T) {
	seconds := fmt.Sprintf("600.%d", time.Now().UnixNano()) // which no other process sleeps
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
