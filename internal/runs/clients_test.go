package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clients/clienttest"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/cleanup"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// clientLock is the lock file of a test client, with a lease of 500 ms by default. Its key work is the work
// of the client.
type clientLock map[string]any

// ofClient returns the options of a short run of a test client without faults.
func ofClient(t *testing.T, behaviour string, lock clientLock, change func(*Options)) Options {
	t.Helper()
	command := clienttest.Command(behaviour)
	client := map[string]any{"command": command.Args, "environment": clienttest.Environment(behaviour)}
	file := clientLock{"client": client, "servers": "memory", "lease": "500ms", "grace": "200ms"}
	for key, value := range lock {
		if key == "work" {
			client[key] = value
			continue
		}
		file[key] = value
	}
	text, err := json.Marshal(file) // JSON is also YAML
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), behaviour+".yaml")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return options(t, func(o *Options) {
		o.Lock, o.Nemesis, o.TimeLimit, o.Concurrency = path, "none", 3500*time.Millisecond, 3
		if change != nil {
			change(o)
		}
	})
}

// hangs is the time after which a short run counts as hanging.
const hangs = 90 * time.Second

// runClient runs a test to its end and makes sure that nothing is left of it.
func runClient(t *testing.T, o Options) Outcome {
	t.Helper()
	clustertest.StartsServers(t)
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	defer cancel()
	outcome, err := Test(ctx, o, nil, logged{t})
	leftNothing(t, outcome, err)
	if ctx.Err() != nil {
		t.Errorf("the run did not end within %s", hangs)
	}
	if left, err := cleanup.Running(outcome.History.Header.Run); err != nil || len(left) != 0 {
		t.Errorf("processes %v, %v: none is to be left", left, err)
	}
	return outcome
}

// sections sets the time that workers spend in their critical section.
func sections(d time.Duration) func(*Options) {
	return func(o *Options) { o.Section = workloads.Range{Min: d, Max: d + 20*time.Millisecond} }
}

// TestMistakes: a client that reports something false about the lock is found, with the right property and
// cause.
func TestMistakes(t *testing.T) {
	t.Parallel()
	beyondLease := sections(600 * time.Millisecond)
	noLease := func(o *Options) { o.TTL, o.TimeLimit, o.recoveryLimit = 0, 5*time.Second, time.Second }
	with := func(changes ...func(*Options)) func(*Options) {
		return func(o *Options) {
			for _, change := range changes {
				change(o)
			}
		}
	}
	// When the service answers a release with not_held, it says itself that the grant was over, and the
	// record does not say why.
	const goneEarly = checker.CauseUnexplained
	tests := []struct {
		behaviour string
		lock      clientLock
		change    func(*Options)
		property  checker.Property
		cause     string // "" if the property knows no causes
		why       string // why the mistake can be found
	}{
		{"ignores-busy", nil, nil, checker.MutualExclusion, checker.CauseTwice, "the first of the two releases what it has, so nothing had ended that"},
		{"asks-nobody", nil, nil, checker.MutualExclusion, checker.CauseTwice, "all releases are acknowledged"},
		{"own-name", nil, nil, checker.MutualExclusion, checker.CauseTwice, "all releases are acknowledged"},
		{"short-lease", nil, sections(150 * time.Millisecond), checker.MutualExclusion, goneEarly, "a lease of which the client says 500 ms is over after 50 ms"},
		{"long-validity", nil, sections(700 * time.Millisecond), checker.MutualExclusion, checker.CauseValidity, "the lease is known from the lock file"},
		{"releases-anyone", nil, beyondLease, checker.NoWrongRelease, "", "the next holder's lease has just begun when the release is acknowledged"},
		{"releases-in-silence", nil, beyondLease, checker.NoWrongRelease, "", "the same: ok says that the lock was held until then"},
		{"never-releases", clientLock{"lease": "0s"}, noLease, checker.Liveness, "", "nobody gets what nobody holds"},
		{"none-though-granted", clientLock{"lease": "0s"}, noLease, checker.Liveness, "", "nobody gets what nobody holds"},
		{"busy-for-ever", nil, func(o *Options) { o.recoveryLimit = time.Second }, checker.Liveness, "", "nobody gets what nobody holds"},
		{"one-fails-for-ever", nil, func(o *Options) { o.TimeLimit = 5 * time.Second }, checker.Liveness, "", "others are served meanwhile"},
		{"same-token", clientLock{"tokens": true}, nil, checker.FencingOrder, "", "tokens are in the record"},
		{"tokens-go-back", clientLock{"tokens": true}, nil, checker.FencingOrder, "", "tokens are in the record"},
		{"renews-nothing", clientLock{"renew": true}, with(beyondLease, func(o *Options) { o.Renew = true }), checker.MutualExclusion, goneEarly, "an acknowledged renewal has moved the end of the lease on"},
		{"lost-late", clientLock{"session": true}, beyondLease, checker.MutualExclusion, goneEarly, "a session has no end until it says lost"},
		{"lost-never", clientLock{"session": true}, beyondLease, checker.MutualExclusion, goneEarly, "a session has no end until it says lost"},
		{"holds-always", clientLock{"holds": true}, with(beyondLease, func(o *Options) { o.Guard = "ask" }), checker.NoStaleWrite, checker.CauseOutlasted, "the guard lets a write pass that it should have refused"},
	}
	tried := make(map[string]bool)
	for _, test := range tests {
		tried[test.behaviour] = true
		t.Run(test.behaviour, func(t *testing.T) {
			t.Parallel()
			found := func(r checker.Results) bool {
				f := r.Finding(test.property)
				return r.Verdict == checker.Violation && f.Verdict == checker.Violation && (test.cause == "" || f.Causes[test.cause] > 0)
			}
			r := patiently(t, runClient, ofClient(t, test.behaviour, test.lock, test.change), found).Results
			if f := r.Finding(test.property); !found(r) {
				t.Errorf("verdict %s, %s %s, causes %v: want violations, %s: %s", r.Verdict, test.property, f.Verdict, f.Causes, test.cause, test.why)
			}
		})
	}
	all(t, clienttest.Mistaken, tried)
}

// all fails the test unless each behaviour of a kind was tried.
func all(t *testing.T, kind clienttest.Kind, tried map[string]bool) {
	t.Helper()
	for _, name := range clienttest.Of(kind) {
		if !tried[name] {
			t.Errorf("%s was not tried", name)
		}
	}
}

// clientRuns is the environment variable that says how often to try each right client, also with other
// timings and under kills. Nothing may be found wrong, whatever the machine is doing.
const clientRuns = "LOCKCHECK_CLIENT_RUNS"

// rightClient is a client without a mistake, with its lock.
type rightClient struct {
	behaviour string
	lock      clientLock
	change    func(*Options)
}

func (c rightClient) options(t *testing.T, faults func(*Options)) Options {
	lock := clientLock{"grace": "2s"} // on a busy machine anything may take that long
	maps.Copy(lock, c.lock)
	return ofClient(t, c.behaviour, lock, func(o *Options) {
		o.TTL, o.TimeLimit = 1500*time.Millisecond, 7*time.Second
		if faults != nil {
			faults(o)
		}
		if c.change != nil {
			c.change(o)
		}
	})
}

// rightClients lists each behaviour once.
func rightClients() []rightClient {
	return []rightClient{
		{"right", clientLock{"tokens": true}, nil},
		{"right-plain", nil, nil},
		{"right-side-by-side", clientLock{"tokens": true, "renew": true}, func(o *Options) { o.Renew = true }},
		{"right-session", clientLock{"session": true}, nil},
		{"right-slow", nil, nil},
		{"right-one-lock", nil, nil},
		{"right-queue", clientLock{"tokens": true, "queues": true}, nil},
		{"right-talkative", clientLock{"tokens": true}, nil},
		{"right-wall-clock", clientLock{"tokens": true}, nil},
	}
}

// otherTimings lists right clients with other leases, queues and sections. On a busy machine a holder may
// take longer than a short lease, so each has a guard.
func otherTimings() []rightClient {
	tokens, queue := clientLock{"tokens": true}, clientLock{"tokens": true, "queues": true}
	use := func(lease time.Duration, u workloads.Use) func(*Options) {
		return func(o *Options) {
			u.TTL = lease
			o.Use, o.Guard, o.TimeLimit = u, "cas", 6*time.Second+4*lease
		}
	}
	between := func(from, to time.Duration) workloads.Range { return workloads.Range{Min: from, Max: to} }
	const ms = time.Millisecond
	return []rightClient{
		{"right", tokens, use(300*ms, workloads.Use{Section: between(10*ms, 50*ms)})},
		{"right-queue", queue, use(400*ms, workloads.Use{Section: between(50*ms, 150*ms), Wait: 2 * time.Second})},
		{"right-queue", queue, use(3*time.Second, workloads.Use{Section: between(200*ms, 900*ms), Wait: 300 * ms})},
		{"right-queue", queue, use(time.Second, workloads.Use{Section: between(300*ms, 600*ms), Wait: 4 * time.Second, CheckBeforeWrite: true})},
		{"right-side-by-side", clientLock{"tokens": true, "renew": true}, use(600*ms, workloads.Use{Section: between(800*ms, 1200*ms), Renew: true})},
		{"right-side-by-side", clientLock{"renew": true}, use(2*time.Second, workloads.Use{Section: between(100*ms, 400*ms), Renew: true, CheckBeforeWrite: true})},
		{"right-session", clientLock{"session": true}, use(500*ms, workloads.Use{Section: between(600*ms, 900*ms)})},
		{"right-plain", nil, use(400*ms, workloads.Use{Section: between(20*ms, 500*ms)})},
		{"right-slow", tokens, use(700*ms, workloads.Use{Section: between(100*ms, 300*ms), CheckBeforeWrite: true})},
		{"right-one-lock", tokens, use(2500*ms, workloads.Use{Section: between(300*ms, 500*ms)})},
	}
}

// TestRightClients: nothing is found wrong with right clients: without faults, when they are killed, and when
// their lease runs out while they are paused, which the guard makes harmless.
func TestRightClients(t *testing.T) {
	t.Parallel()
	times, tests := 1, rightClients()
	faults := map[string]func(*Options){"none": nil, "pauses": pauseHolders}
	others := otherTimings()[:2]
	if text, is := os.LookupEnv(clientRuns); is {
		var err error
		if times, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", clientRuns, err)
		}
		faults["kills"], others = killHolders, otherTimings()
	}
	tried := make(map[string]bool)
	for _, test := range tests {
		tried[test.behaviour] = true
	}
	for i, test := range append(tests, others...) {
		for n := range times {
			for name, fault := range faults {
				t.Run(fmt.Sprintf("%d %s, %s, %d", i+1, test.behaviour, name, n+1), func(t *testing.T) {
					t.Parallel()
					run := func(t *testing.T, o Options) Outcome {
						outcome := runClient(t, o)
						if !stoodStill(outcome.Results) { // otherwise the machine is to blame, and the test runs again, slower
							accusedOfNothing(t, outcome.Results)
						}
						return outcome
					}
					endsWith(t, run, checker.Valid, test.options(t, fault))
				})
			}
		}
	}
	all(t, clienttest.Right, tried)
}

// pauseHolders pauses holders until their lease has run out, under a guard.
func pauseHolders(o *Options) {
	sections(300 * time.Millisecond)(o)
	o.TTL, o.TimeLimit, o.Guard = 500*time.Millisecond, 8*time.Second, "cas"
	o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
		Fault: "pause", Target: "holder", When: nemesis.WhenHolding,
		For: nemesis.Span{Leases: 1, Plus: 200 * time.Millisecond}, Every: nemesis.Span{Leases: 1, Plus: 400 * time.Millisecond},
	}}}
}

// killHolders kills one holder after the other until two workers are left.
func killHolders(o *Options) {
	o.Concurrency = 5
	o.Schedule = &nemesis.Schedule{Steps: []nemesis.Step{{
		Fault: "kill", Target: "holder", When: nemesis.WhenHolding, Every: nemesis.Span{Leases: 1, Plus: 400 * time.Millisecond},
	}}}
}

// inherent lists the causes that no lock with leases can prevent on a busy machine.
var inherent = []string{checker.CausePaused, checker.CauseOutlasted, checker.CauseInFlight}

func accusedOfNothing(t *testing.T, r checker.Results) {
	t.Helper()
	if r.Overlaps.DoubleGrants != 0 {
		t.Errorf("%d double grants", r.Overlaps.DoubleGrants)
	}
	for _, f := range r.Findings {
		if f.Verdict == checker.Violation && f.Property != checker.MutualExclusion {
			t.Errorf("%s: %s", f.Property, f.Summary)
		}
		for cause, n := range f.Causes {
			if !slices.Contains(inherent, cause) {
				t.Errorf("%s: %d times %s", f.Property, n, cause)
			}
		}
	}
	if len(r.Clients) != 1 || r.Clients[0] != "clienttest 1.0" {
		t.Errorf("clients %q, want what the client calls itself", r.Clients)
	}
}
