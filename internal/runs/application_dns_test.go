package runs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/nemesis"
)

// dialer is an application that connects to Redis again and again, and looks its name up each time or only once. Without
// the options the resolver would wait for an answer for 10 s, which is longer than the fault lasts.
const dialer = `
import os, socket, sys, time
os.environ["RES_OPTIONS"] = "timeout:1 attempts:1"
host = "redis" if sys.argv[1] == "each" else socket.gethostbyname("redis")
while True:
    try:
        socket.create_connection((host, 6379), timeout=0.3).close()
        print(f"did {socket.gethostname()},{time.monotonic_ns()}", flush=True)
    except OSError as e:
        print(e, flush=True)
    time.sleep(0.05)
`

// TestDNS: an application that looks a name up meets the old record, or waits for an answer in vain. If it has the address
// already, the fault is in force and does not count.
func TestDNS(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t, clustertest.Rest)
	for fault, prints := range map[string]string{"stale-dns": "timed out", "dns-failure": "[Errno -"} { // errors of getaddrinfo are negative
		for lookups, want := range map[string]checker.Verdict{"each": checker.Valid, "once": checker.Undecided} {
			t.Run(fault+" "+lookups, func(t *testing.T) {
				t.Parallel()
				compose := strings.NewReplacer("/ticker.py]", "/ticker.py, "+lookups+"]").Replace(tickerCompose)
				form := strings.Split(tickerApp, "  clock:")[0] + "  says: {did: '^did (?P<id>\\S+)$'}\ninvariants: [{never: exit 0}]\n"
				app := tickerWith(t, dialer, compose, form)
				store := t.TempDir()
				r := applicationEnds(t, want, ApplicationOptions{
					App: app, Interval: time.Second, TimeLimit: app.Lease + settleTime + clustertest.Slow(20*time.Second), MinOps: 1, Seed: 1,
					Schedule: &nemesis.Schedule{Steps: []nemesis.Step{{Fault: fault, Target: "ticker-1", For: nemesis.Span{Plus: clustertest.Slow(3 * time.Second)}}}},
					Machine:  Machine{Store: store, Binary: clustertest.Binary(t), Version: "test"},
				})
				if r.Verdict != want || len(r.Faults) != 1 || !r.Faults[0].Proven || !r.Faults[0].Healed || r.Faults[0].Exercised != (lookups == "each") {
					t.Errorf("%s: %+v", r.Sentence, r.Faults)
				}
				if printed := logsOf(t, store, "ticker-1"); lookups == "each" && !strings.Contains(printed, prints) {
					t.Errorf("the application printed no %q:\n%s", prints, printed)
				}
			})
		}
	}
}

// logsOf returns what a replica printed in the runs of a store.
func logsOf(t *testing.T, store, replica string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(store, "*", "*", logFolder, replica+"*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no logs of %s: %v", replica, err)
	}
	var all strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
