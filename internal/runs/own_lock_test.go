package runs

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// example is the lock file of a folder in examples/.
func example(name string) string { return filepath.Join("..", "..", "examples", name, "lock.yaml") }

// TestClientInImage runs a library of another language in an image of the user's: without
// faults it is right, and a pause stops it together with its worker.
func TestClientInImage(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	for faults, want := range map[string]checker.Verdict{"none": checker.Valid, "pause": checker.Violation} {
		t.Run(faults, func(t *testing.T) {
			t.Parallel()
			outcome := runTest(t, options(t, func(o *Options) {
				o.Lock, o.TTL, o.Nemesis, o.TimeLimit = example("redis-py"), time.Second, faults, 12*time.Second
			}))
			if outcome.Results.Verdict != want {
				t.Errorf("verdict %s, want %s", outcome.Results.Verdict, want)
			}
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

// TestCompose starts the services of a Compose file: their names lead to them, their files
// are there, and their wall clocks are asked by a command.
func TestCompose(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	outcome := runTest(t, options(t, func(o *Options) {
		o.Lock, o.TTL, o.Nemesis, o.TimeLimit = example("compose-redis"), time.Second, "clock:n1,kill:n2", 20*time.Second
	}))
	// A lock of Redis ends by the wall clock: some steps let two hold it, others do not.
	if v := outcome.Results.Verdict; v != checker.Valid && v != checker.Violation {
		t.Errorf("verdict %s", v)
	}
	proven := make(map[string]bool)
	for _, f := range outcome.Results.Faults {
		proven[f.Kind] = proven[f.Kind] || f.Proven
	}
	if !proven["clock"] || !proven["kill"] {
		t.Errorf("proven: %v, want a clock step and a kill", proven)
	}
	if servers := strings.Join(outcome.History.Header.Servers, " "); servers != "n1 n2" {
		t.Errorf("servers %s, want n1 n2", servers)
	}
}
