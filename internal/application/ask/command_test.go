package ask

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// TestCommand: what the exit status and the output of a command mean.
func TestCommand(t *testing.T) {
	once, always, kept, work := history.InvariantOnce, history.InvariantAlways, history.InvariantKept, history.InvariantWork
	for _, c := range []struct {
		kind, script string
		want         outcome
	}{
		{once, "true", outcome{kind: history.OK}},
		{once, "echo all is well", outcome{kind: history.OK}},
		{once, "echo job-1; echo; echo job-2; exit 1", outcome{kind: history.Fail, rows: []string{"job-1", "job-2"}}},
		{once, "test -e /no/such/file", outcome{kind: history.Fail}},
		{once, "seq 30; exit 1", outcome{kind: history.Fail, rows: numbers(20), count: 30}},
		{once, "echo 'Traceback'; echo ValueError >&2; exit 1", outcome{kind: history.Fail, rows: []string{"Traceback"}}},
		{once, "printf 'Traceback\nValueError\n' >&2; exit 1", outcome{kind: history.Info, error: "exit status 1: ValueError"}},
		{once, "exit 2", outcome{kind: history.Info, error: "exit status 2"}},
		{once, "/no/such/program", outcome{kind: history.Info, error: "exit status 127: /bin/sh"}},
		{once, "kill -9 $$", outcome{kind: history.Info, error: "signal: killed"}},
		{always, "true", outcome{kind: history.OK}},
		{always, "echo w1", outcome{kind: history.OK, rows: []string{"w1"}}},
		{always, "exit 1", outcome{kind: history.Fail}},
		{always, "echo ConnectionError >&2; exit 1", outcome{kind: history.Info, error: "ConnectionError"}},
		{kept, "seq 30", outcome{kind: history.OK, rows: numbers(30)}},
		{kept, "true", outcome{kind: history.OK}},
		{kept, "seq 30; exit 1", outcome{kind: history.Info, error: "exit status 1"}},
		{work, "seq 30", outcome{kind: history.OK, rows: numbers(20), count: 30}},
		{once, "yes", outcome{kind: history.Info, error: "more than"}},
		{once, "seq 100001; exit 1", outcome{kind: history.Info, error: "more than"}},
		{once, "seq 100000; exit 1", outcome{kind: history.Fail, rows: numbers(20), count: 100_000}},
		{once, "yes >&2; exit 0", outcome{kind: history.OK}},
		{once, "tr '\\0' x </dev/zero", outcome{kind: history.Info, error: "more than"}},
	} {
		t.Run(c.kind+" "+c.script, func(t *testing.T) {
			q := question(c.kind, Shell, "", c.script)
			q.Timeout = clustertest.Slow(time.Minute) // a flood takes its time under the race detector
			asked(t, q, c.want)
		})
	}
}

// TestCommandPlace: a command runs in its folder and with its environment.
func TestCommandPlace(t *testing.T) {
	q := question(history.InvariantKept, Shell, "", `pwd; echo "$BILLS"; cat`)
	q.Folder, q.Env = t.TempDir(), []string{"BILLS=all of them"}
	asked(t, q, outcome{kind: history.OK, rows: []string{q.Folder, "all of them"}})
	q.Folder = filepath.Join(q.Folder, "no such folder")
	asked(t, q, outcome{kind: history.Info, error: "there is no folder"})
}

// TestCommandLeftovers: whatever a command leaves behind ends with it, and an answer does not wait for it.
func TestCommandLeftovers(t *testing.T) {
	const hour = "sleep 3600"
	for _, c := range []struct {
		name, script string
		want         outcome
	}{
		{"hangs", hour, outcome{kind: history.Info, error: "no answer within"}},
		{"forks and hangs", hour + " & echo row; " + hour, outcome{kind: history.Info, error: "no answer within"}},
		{"hangs with another group", "timeout 3600 " + hour, outcome{kind: history.Info, error: "no answer within"}},
		{"ignores signals", "trap '' TERM INT HUP; " + hour, outcome{kind: history.Info, error: "no answer within"}},
		{"forks and keeps the output", hour + " & echo row; exit 1", outcome{kind: history.Fail, rows: []string{"row"}}},
		{"forks in another group and keeps the output", "test -e in && exit 1; setsid sh -c '>in; " + hour + "' & while ! test -e in; do sleep 0.01; done; echo row; exit 1", outcome{kind: history.Info, error: errLeftBehind.Error()}},
		{"forks and keeps nothing", hour + " >/dev/null 2>&1 & echo row; exit 1", outcome{kind: history.Fail, rows: []string{"row"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			q := question(history.InvariantOnce, Shell, "", "echo $$ >>pids; "+c.script)
			q.Folder = folder
			// Long enough to start, on a slow machine too; whoever answers does not take that long.
			q.Timeout = clustertest.Slow(5 * time.Second)
			event := asked(t, q, c.want)
			if took := time.Duration(event.Time - event.From); took > q.Timeout+clustertest.Slow(5*time.Second) {
				t.Errorf("it took %s", took)
			}
			clustertest.Eventually(t, time.Minute, func() error { return noneIn(folder) })
		})
	}
}

// noneIn returns an error if a process is in a folder, or if something is left of one that wrote its number into pids
// there: a zombie is in no folder.
func noneIn(folder string) error {
	places, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		return err
	}
	for _, place := range places {
		if in, err := os.Readlink(place); err == nil && in == folder {
			return fmt.Errorf("%s is in %s", place, in)
		}
	}
	for _, pid := range written(folder) {
		if _, err := os.Stat("/proc/" + pid); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("process %s is there: %v", pid, err)
		}
	}
	return nil
}

// written are the numbers of processes that commands wrote into a folder.
func written(folder string) []string {
	text, _ := os.ReadFile(filepath.Join(folder, "pids"))
	return strings.Fields(string(text))
}

// TestCommandOrphans: what commands fork does not stay as a zombie.
func TestCommandOrphans(t *testing.T) {
	folder := t.TempDir()
	q := question(history.InvariantNever, Shell, "", "sleep 3600 & echo $! >>pids; echo x >>asked; test $(wc -l <asked) -lt 20")
	q.Folder = folder
	a := started(t, q)
	a.answers(history.InvariantNever, history.OK)
	a.answers(history.InvariantNever, history.Fail)
	a.stop()
	if n := len(written(folder)); n < 20 {
		t.Fatalf("%d processes were left behind, want 20", n)
	}
	clustertest.Eventually(t, time.Minute, func() error { return noneIn(folder) })
}
