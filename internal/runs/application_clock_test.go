package runs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
	"lockcheck/internal/appfile"
)

// ticker is an application that says of each piece of work who did it, and its wall clock, which it also tells who asks; and
// by the monotonic clock, which all containers share, a time before the line and one after the line before.
const ticker = `
import os, socket, time
after = time.monotonic_ns()
while True:
    with open("/tmp/new", "w") as file:
        file.write(f"{time.time():.6f}")
    os.replace("/tmp/new", "/tmp/now")
    print(f"did {socket.gethostname()},{time.time_ns()},{time.monotonic_ns()},{after}", flush=True)
    after = time.monotonic_ns()
    time.sleep(0.05)
`

const tickerCompose = `
services:
  ticker:
    build: .
    command: [python3, /ticker.py]
    volumes: ["./ticker.py:/ticker.py:ro"]
    depends_on: [redis]
  redis:
    build: .
    command: [redis-server, --bind, 0.0.0.0, --protected-mode, "no"]
    healthcheck: {test: [CMD, redis-cli, ping]}
`

const tickerApp = `
name: ticker
app:
  compose: ticker.compose.yaml
  service: ticker
  lease: 1s
  clock:
    command: [cat, /tmp/now]
    redis: {command: [sh, -c, "redis-cli time | awk 'NR == 1 {s = $1} NR == 2 {printf \"%d.%06d\", s, $1}'"]}
  says: {did: '^did (?P<id>\S+)$'}
invariants: [{never: exit 0}]
`

// tickerWith is an application of a program, a Compose file and an app file, in the image of the example applications.
func tickerWith(t *testing.T, program, compose, form string) appfile.App {
	t.Helper()
	folder := copiedExamples(t)
	for name, text := range map[string]string{"ticker.py": program, "ticker.compose.yaml": compose, "ticker.yaml": form} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	app, err := appfile.Read(filepath.Join(folder, "ticker.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// TestClocksOfApplication: the wall clock of a replica moves, and that of a service, as both say themselves. What the replica
// prints meanwhile is stamped by a clock that does not move.
func TestClocksOfApplication(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t, clustertest.Rest)
	app := tickerWith(t, ticker, tickerCompose, tickerApp)
	o := ApplicationOptions{
		App: app, Nemesis: "clock:replica,clock:redis", Interval: time.Second, TimeLimit: app.Lease + settleTime + clustertest.Slow(20*time.Second), MinOps: 1, Seed: 1,
		Machine: Machine{Store: t.TempDir(), Binary: clustertest.Binary(t), Version: "test"},
	}
	var outcome Outcome
	for _, longer := range []time.Duration{1, 3} {
		again := o
		again.TimeLimit = longer * o.TimeLimit
		if outcome = runApplication(t, again); outcome.Results.Verdict == checker.Valid {
			break
		}
	}
	moved := make(map[string]bool)
	for _, f := range outcome.Results.Faults {
		if f.Kind == history.Clock && f.Proven && f.Healed {
			service, _, _ := strings.Cut(f.Targets[0], "-")
			moved[service] = true
		}
	}
	if got := slices.Sorted(maps.Keys(moved)); outcome.Results.Verdict != checker.Valid || !slices.Equal(got, []string{"redis", "ticker"}) {
		t.Errorf("%s: the clocks of %v were moved: %+v", outcome.Results.Sentence, got, outcome.Results.Faults)
	}
	stamped(t, outcome.History)
}

// stamped: each line was printed between its two times, also while the wall clock of its program was elsewhere, as its lines
// show. The host name of a program is that of its replica.
func stamped(t *testing.T, h *history.History) {
	t.Helper()
	last := make(map[string]history.Event)
	var offsets []int64 // of the wall clock from the monotonic one, ns
	for _, e := range h.Events {
		if e.F != history.Did {
			continue
		}
		said := strings.Split(e.ID, ",")
		var times [3]int64
		for i := range times {
			var err error
			if times[i], err = strconv.ParseInt(said[i+1], 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		wall, before, after := times[0], times[1], times[2]
		if said[0] != e.Process || before > e.Time {
			t.Errorf("%s said %s by %d", e.Process, e.ID, e.Time)
		}
		if l := last[e.Process]; l.From > after {
			t.Errorf("%s said %s after %d, and had by %d", e.Process, l.ID, l.From, after)
		}
		last[e.Process] = e
		offsets = append(offsets, wall-before)
	}
	if len(offsets) == 0 || slices.Max(offsets)-slices.Min(offsets) < int64(2*time.Second) {
		t.Errorf("%d lines show no step of a wall clock", len(offsets))
	}
}
