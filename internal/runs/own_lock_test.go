package runs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// example is the lock file of a folder in examples/.
func example(name string) string { return filepath.Join("..", "..", "examples", name, "lock.yaml") }

// TestClientInImage runs a library of another language in a user's image. Without faults the run is valid,
// and a pause stops the library together with its worker.
func TestClientInImage(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t, clustertest.Rest)
	for faults, want := range map[string]checker.Verdict{"none": checker.Valid, "pause": checker.Violation} {
		t.Run(faults, func(t *testing.T) {
			t.Parallel()
			outcome := verdictIs(t, want, options(t, func(o *Options) {
				o.Lock, o.TTL, o.Nemesis, o.TimeLimit = example("redis-py"), time.Second, faults, 12*time.Second
			}))
			for _, e := range outcome.History.Events {
				f := e.Fault
				if f != nil && f.Stage == history.Proven && (!strings.Contains(f.Evidence, "python3") || !strings.Contains(f.Evidence, "lockcheck")) {
					t.Errorf("evidence %q: want both the worker and its client", f.Evidence)
				}
			}
			if err := clustertest.NothingLeft(outcome.History.Header.Run); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCompose starts the services of a Compose file. Their names resolve, their files exist, and a command
// reads their wall clocks. A command that asks a process other than the server proves nothing.
func TestCompose(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t, clustertest.Rest)
	for _, c := range []struct {
		name, faults, lock string
		want               []checker.Verdict
		proven             []string
	}{
		{"no faults", "none", example("compose-redis"), []checker.Verdict{checker.Valid}, nil},
		// A Redis lock expires by the wall clock. Some clock steps let two workers hold it, others do not.
		{"clock step and kill", "clock:n1,kill:n2", example("compose-redis"), []checker.Verdict{checker.Valid, checker.Violation}, []string{"clock", "kill"}},
		// The clock steps happen anyway, and if they cause a visible violation, that counts.
		{"clock of another process", "clock:n1", otherClock(t), []checker.Verdict{checker.Undecided, checker.Violation}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := options(t, func(o *Options) {
				o.Lock, o.TTL, o.Nemesis, o.TimeLimit = c.lock, time.Second, c.faults, 20*time.Second
			})
			var outcome Outcome
			if len(c.want) == 1 {
				outcome = verdictIs(t, c.want[0], o)
			} else {
				outcome = runTest(t, o)
			}
			if !slices.Contains(c.want, outcome.Results.Verdict) {
				t.Errorf("verdict %s, want one of %v", outcome.Results.Verdict, c.want)
			}
			proven := make(map[string]bool)
			for _, f := range outcome.Results.Faults {
				if f.Proven {
					proven[f.Kind] = true
				}
			}
			if got := slices.Sorted(maps.Keys(proven)); !slices.Equal(got, c.proven) {
				t.Errorf("proven: %v, want %v", got, c.proven)
			}
			if servers := strings.Join(outcome.History.Header.Servers, " "); servers != "n1 n2" {
				t.Errorf("servers %s, want n1 n2", servers)
			}
		})
	}
}

// otherClock is the example with a clock command that reads its own clock instead of the server's.
func otherClock(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"compose-redis", "redis-py"} {
		if err := os.CopyFS(filepath.Join(folder, name), os.DirFS(filepath.Dir(example(name)))); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(folder, "compose-redis", "lock.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  clock:") {
			lines[i] = "  clock: {command: [date, +%s.%N]}"
		}
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
