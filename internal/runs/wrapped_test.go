package runs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// lockFile writes the lock file of a command that wraps its child.
func lockFile(t *testing.T, command string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "command.yaml")
	text := "client:\n  command: " + command + "\n  wrap: true\n  busy_status: 75\nservers: none\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWrapped runs commands that take a lock and run a child under it. flock has no lease, so a pause of its
// holder is harmless. One command takes no lock, and one releases the lock while its child is still at work.
func TestWrapped(t *testing.T) {
	t.Parallel()
	const section = 400 * time.Millisecond
	for _, c := range []struct {
		name, lock, nemesis string
		section             time.Duration // the least length
		want                checker.Verdict
		check               func(*testing.T, Outcome)
	}{
		{name: "flock", lock: example("flock"), nemesis: "none", section: section, want: checker.Valid},
		{name: "flock, pauses", lock: example("flock"), nemesis: "pause:holder", section: section, want: checker.Valid, check: stoppedTogether},
		{name: "no lock", lock: lockFile(t, `[sh, -c, '"$@"', sh, "{child}"]`), nemesis: "none", section: section, want: checker.Violation, check: grantedTwice},
		{
			// The child works long enough for the next holder to begin meanwhile, even on a busy machine.
			name: "a command that does not wait for its child", nemesis: "none", section: 2 * time.Second, want: checker.Violation,
			lock: lockFile(t, `[flock, -n, -o, -E, "75", "{folder}/{key}", sh, -c, '"$@" & sleep 0.2', sh, "{child}"]`),
			check: func(t *testing.T, outcome Outcome) {
				grantedTwice(t, outcome)
				if !releaseSays(outcome, "while its child went on") {
					t.Error("no release tells that the command had ended")
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			outcome := verdictIs(t, c.want, options(t, func(o *Options) {
				o.Lock, o.Nemesis, o.TTL, o.TimeLimit = c.lock, c.nemesis, 0, 8*time.Second
				o.Section.Min, o.Section.Max = c.section, 2*c.section
				// Each attempt starts two processes, which takes a busy machine some time.
				o.Concurrency, o.Wait = 3, 10*time.Second
			}))
			if c.check != nil {
				c.check(t, outcome)
			}
			if err := clustertest.NothingLeft(outcome.History.Header.Run); err != nil {
				t.Error(err)
			}
		})
	}
}

func grantedTwice(t *testing.T, outcome Outcome) {
	t.Helper()
	if outcome.Results.Overlaps.DoubleGrants == 0 {
		t.Errorf("overlaps %+v: want double grants", outcome.Results.Overlaps)
	}
}

// stoppedTogether checks that a worker, its command and the command's child are paused as one.
func stoppedTogether(t *testing.T, outcome Outcome) {
	t.Helper()
	proven := 0
	for _, e := range outcome.History.Events {
		if f := e.Fault; f != nil && f.Stage == history.Proven {
			proven++
			if !strings.Contains(f.Evidence, "flock") || strings.Count(f.Evidence, "lockcheck") < 2 {
				t.Errorf("evidence %q: want the worker, the command and its child", f.Evidence)
			}
		}
	}
	if proven == 0 {
		t.Error("no pause was proven")
	}
}

// releaseSays says whether a release failed with a text.
func releaseSays(outcome Outcome, text string) bool {
	for _, e := range outcome.History.Events {
		if e.F == history.Release && strings.Contains(e.Error, text) {
			return true
		}
	}
	return false
}
