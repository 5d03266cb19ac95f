package runs

import (
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/nemesis"
)

// dialer is an application that connects to Redis again and again, and looks its name up each time or only once.
const dialer = `
import os, socket, sys, time
host = "redis" if sys.argv[1] == "each" else socket.gethostbyname("redis")
while True:
    try:
        socket.create_connection((host, 6379), timeout=0.3).close()
        print(f"did {socket.gethostname()},{time.monotonic_ns()}", flush=True)
    except OSError as e:
        print(e, flush=True)
    time.sleep(0.05)
`

// TestStaleDNS: an application that looks a name up meets the old record. If it has the address already, the fault is in
// force and does not count.
func TestStaleDNS(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t, clustertest.Rest)
	for lookups, want := range map[string]checker.Verdict{"each": checker.Valid, "once": checker.Undecided} {
		t.Run(lookups, func(t *testing.T) {
			t.Parallel()
			compose := strings.NewReplacer("/ticker.py]", "/ticker.py, "+lookups+"]").Replace(tickerCompose)
			form := strings.Split(tickerApp, "  clock:")[0] + "  says: {did: '^did (?P<id>\\S+)$'}\ninvariants: [{never: exit 0}]\n"
			app := tickerWith(t, dialer, compose, form)
			r := applicationEnds(t, want, ApplicationOptions{
				App: app, Interval: time.Second, TimeLimit: app.Lease + settleTime + clustertest.Slow(20*time.Second), MinOps: 1, Seed: 1,
				Schedule: &nemesis.Schedule{Steps: []nemesis.Step{{Fault: "stale-dns", Target: "ticker-1", For: nemesis.Span{Plus: clustertest.Slow(3 * time.Second)}}}},
				Machine:  Machine{Store: t.TempDir(), Binary: clustertest.Binary(t), Version: "test"},
			})
			if r.Verdict != want || len(r.Faults) != 1 || !r.Faults[0].Proven || !r.Faults[0].Healed || r.Faults[0].Exercised != (lookups == "each") {
				t.Errorf("%s: %+v", r.Sentence, r.Faults)
			}
		})
	}
}
