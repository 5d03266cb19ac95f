package runs

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/appfile"
)

// applicationOptions are those of a short run of an application of testdata, in one of its forms.
func applicationOptions(t *testing.T, name, form string) ApplicationOptions {
	t.Helper()
	app, err := appfile.Read("testdata/applications/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	app.Environment = append(app.Environment, "FORM="+form)
	return ApplicationOptions{
		App: app, Nemesis: "none", Interval: time.Second, TimeLimit: app.Lease + clustertest.Slow(10*time.Second), MinOps: 1, Seed: 1,
		Machine: Machine{Store: t.TempDir(), Binary: clustertest.Binary(t), Version: "test"},
	}
}

func runApplication(t *testing.T, o ApplicationOptions) Outcome {
	t.Helper()
	if len(o.App.Servers) == 0 { // else Engine has said in which ring the test is
		clustertest.StartsServers(t)
	}
	outcome, err := TestApplication(context.Background(), o, nil, logged{t})
	return leftNothing(t, outcome, err)
}

// applicationEnds runs an application that is to end with a verdict, and longer if it has not shown enough for one: on a busy
// machine a replica takes seconds to start. What a violation says stands at once.
func applicationEnds(t *testing.T, want checker.Verdict, o ApplicationOptions) (r checker.Results) {
	t.Helper()
	for _, longer := range []time.Duration{1, 2, 4} {
		again := o
		again.TimeLimit = longer * o.TimeLimit
		if r = runApplication(t, again).Results; r.Verdict == want || r.Verdict == checker.Violation {
			break
		}
	}
	return r
}

// TestApplicationUnderFaults: pauses and kills of replicas are proven, and killed replicas work again.
func TestApplicationUnderFaults(t *testing.T) {
	t.Parallel()
	o := applicationOptions(t, "quartz", "right")
	o.App.Environment = append(o.App.Environment, "LEASE=3") // as its app file says, for faults to outlast it
	o.Nemesis, o.TimeLimit = "pause,kill", clustertest.Slow(28*time.Second)
	r := applicationEnds(t, checker.Violation, o) // a pause may let two replicas do the same job
	for _, kind := range []string{"pause", "kill"} {
		if !slices.ContainsFunc(r.Faults, func(f checker.FaultCoverage) bool { return f.Kind == kind && f.Counts() && f.Healed }) {
			t.Errorf("no %s counts: %+v", kind, r.Faults)
		}
	}
	if r.Application.Restarts == 0 {
		t.Errorf("no replica was started again: %+v", r.Application)
	}
}

// copiedExamples is a copy of the folder of the example applications, whose image a test with programs of its own can
// build.
func copiedExamples(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("../../examples/applications")); err != nil {
		t.Fatal(err)
	}
	return folder
}
