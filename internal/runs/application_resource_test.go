package runs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
	"lockcheck/internal/appfile"
)

// TestApplicationResource: of an application that counts in the resource, the form that gives its lock back too early loses
// updates, and those that hold the lock until they have written, or name the version, do not.
func TestApplicationResource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		form string
		want checker.Verdict
	}{{"wrong", checker.Violation}, {"right", checker.Valid}, {"versions", checker.Valid}} {
		t.Run(c.form, func(t *testing.T) {
			t.Parallel()
			r := applicationEnds(t, c.want, applicationOptions(t, "counter", c.form))
			f := r.Finding(checker.NoLostUpdate)
			if r.Verdict != c.want || f.Verdict != c.want {
				t.Errorf("%s: %s", r.Verdict, r.Sentence)
			}
			if c.want == checker.Violation && !strings.Contains(f.Violations[0].What, "without having seen version") {
				t.Errorf("%+v", f.Violations[0])
			}
			if once := r.Finding(checker.ExactlyOnce); once.Verdict != checker.Valid || r.Application.Writes == 0 || r.Application.Effects == 0 {
				t.Errorf("%+v: %+v", once, r.Application)
			}
		})
	}
}

// TestResourceUnderFaults: a replica that was killed finds the resource again, and loses no update by that. On a busy machine a
// replica takes seconds to start, so a short run may show nothing.
func TestResourceUnderFaults(t *testing.T) {
	t.Parallel()
	o, wrote := applicationOptions(t, "counter", "versions"), false
	o.Nemesis, o.Interval = "kill", 4*time.Second
	for _, limit := range []time.Duration{20 * time.Second, 40 * time.Second, 80 * time.Second} {
		o.TimeLimit = clustertest.Slow(limit)
		outcome := runApplication(t, o)
		if v := outcome.Results.Finding(checker.NoLostUpdate).Verdict; v == checker.Violation || outcome.Results.Verdict == checker.Broken {
			t.Fatalf("%s: %s", v, outcome.Results.Sentence)
		}
		if wrote = wroteInSecondLife(outcome.History.Events); wrote {
			break
		}
	}
	if !wrote {
		t.Error("no replica wrote anything in its second life")
	}
}

func wroteInSecondLife(events []history.Event) bool {
	started := make(map[string]int)
	return slices.ContainsFunc(events, func(e history.Event) bool {
		if e.F == history.Started {
			started[e.Process]++
		}
		return e.F == history.Write && e.Type == history.OK && started[e.Client] > 1
	})
}

// TestResourceOnDocker: the resource is in the network of the application, and can be cut off from a replica.
func TestResourceOnDocker(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t, clustertest.Rest)
	folder := copiedExamples(t)
	program, err := os.ReadFile("testdata/applications/counter.py")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"counter.py": string(program),
		"counter.compose.yaml": `services:
  counter: {build: ., command: [python3, /counter.py], environment: {FORM: versions}, restart: always}
`,
		"counter.yaml": `app: {compose: counter.compose.yaml, service: counter, replicas: 3, lease: 1s, resource: true}
faults: {may hit: [counter, resource]}
invariants: [{never: broken, on: resource}]
`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	app, err := appfile.Read(filepath.Join(folder, "counter.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r := applicationEnds(t, checker.Valid, ApplicationOptions{
		App: app, Nemesis: "partition,kill", Interval: DefaultInterval, TimeLimit: clustertest.Slow(25 * time.Second), MinOps: 1, Seed: 1,
		Machine: Machine{Store: t.TempDir(), Binary: clustertest.Binary(t), Version: "test"},
	})
	if r.Verdict != checker.Valid || r.Finding(checker.NoLostUpdate).Verdict != checker.Valid {
		t.Errorf("%s: %s", r.Verdict, r.Sentence)
	}
	if !slices.ContainsFunc(r.Faults, func(f checker.FaultCoverage) bool {
		return f.Kind == history.Partition && f.Counts() && slices.Contains(append(slices.Clone(f.Peers), f.Targets...), history.Resource)
	}) {
		t.Errorf("no partition kept a replica from the resource: %+v", r.Faults)
	}
}
