package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockcheck/internal/runs"
	"lockcheck/workloads"
)

// TestArguments: "lockcheck test" with the arguments of a test asks for that test.
func TestArguments(t *testing.T) {
	delay, think := time.Duration(0), workloads.Range{Max: time.Millisecond}
	least := runs.Options{
		Lock: "memory", Workload: "set", Guard: "none", Nemesis: "none", Interval: runs.DefaultInterval,
		Concurrency: runs.DefaultConcurrency, Use: workloads.Use{Section: runs.DefaultSection()}, MinOps: runs.DefaultMinOps, Seed: 7,
	}
	most := runs.Options{
		Lock: "consul", Workload: "counter", Guard: "ask", Nemesis: "pause:one server,clock", Interval: time.Second, TimeLimit: time.Minute,
		Concurrency: 3, Nodes: 3, ServerVersion: "1.20.1", Pin: true, SkipUnsupported: true, Rate: 2.5, MinOps: 0, Require: []string{"mutual-exclusion", "liveness"}, Handover: time.Second,
		Seed: 1 << 40, Images: map[string]string{"consul": "mine:1"},
		Use:   workloads.Use{TTL: 4 * time.Second, Section: workloads.Range{Min: time.Millisecond, Max: time.Second}, Updates: 3, Permits: 2, Wait: 2 * time.Second, LockDelay: &delay, Renew: true, CheckBeforeWrite: true, ExitOnLoss: true, IgnoreFailedAcquire: true, Think: &think},
		Pause: 3 * time.Second,
	}
	calm := least // a run without faults, of a suite that also has runs with faults
	calm.Interval = time.Second
	for name, asked := range map[string]runs.Options{"least": least, "most": most, "calm": calm} {
		f := &testFlags{Options: runs.Options{Use: workloads.Use{Section: runs.DefaultSection()}}}
		cmd := new(cobra.Command)
		f.add(flagsOf(cmd))
		args := asked.Arguments()
		if err := cmd.ParseFlags(args[1:]); args[0] != "test" || err != nil {
			t.Fatalf("%s: %q: %v", name, args, err)
		}
		got, err := f.options(cmd.Flags())
		if err != nil {
			t.Fatal(err)
		}
		got.Parameters, got.Store = nil, ""
		if asked.Images == nil {
			asked.Images = map[string]string{}
		}
		if name == "calm" {
			asked.Interval = runs.DefaultInterval
		}
		if !reflect.DeepEqual(got, asked) {
			t.Errorf("%s: %q asks for\n%+v\nwant\n%+v", name, args, got, asked)
		}
	}
	testCommand(&system{}).Flags().VisitAll(func(flag *pflag.Flag) {
		elsewhere := []string{"schedule", "store", "test-count", "with-remedies", "expect", "app"} // flags that do not describe a single run of a lock
		if !slices.Contains(elsewhere, flag.Name) && !slices.Contains(most.Arguments(), "--"+flag.Name) {
			t.Errorf("no option is turned into --%s", flag.Name)
		}
	})
	most.UntilOverlap = true
	if args := most.Arguments(); args != nil {
		t.Errorf("what no flag says is left out: %q", args)
	}
}

// TestTellsGitHub: an unexpected run is annotated with the command that repeats it. Every run is summarised.
func TestTellsGitHub(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, expect string
		github       bool
		code         int
	}{
		{"undecided", "", true, exitUndecided},
		{"as expected", "undecided", true, exitOK},
		{"elsewhere", "", false, exitUndecided},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			summary := filepath.Join(t.TempDir(), "summary.md")
			s.env["GITHUB_STEP_SUMMARY"] = summary
			if c.github {
				s.env["GITHUB_ACTIONS"] = "true"
			}
			s.want(s.test("--nemesis", "none", "--time-limit", "2500ms", "--min-ops", "1000000", "--expect", c.expect), c.code, "UNDECIDED", "")
			const again = "; again: lockcheck test --lock memory --nemesis none --time-limit 2.5s --ttl 300ms --min-ops 1000000 --seed 1"
			annotated := strings.Contains(s.stdout, "::warning title=lockcheck%3A memory%2C none%2C guard none%2C seed 1::undecided: ") && strings.Contains(s.stdout, again)
			if annotated != (c.github && c.code != exitOK) {
				t.Errorf("annotated: %v\n%s", annotated, s.stdout)
			}
			text, err := os.ReadFile(summary)
			if c.github != (err == nil && strings.Contains(string(text), "### lockcheck: undecided") && strings.Contains(string(text), "| assumptions | ")) {
				t.Errorf("summary %q, %v", text, err)
			}
		})
	}
}
