package repros

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/internal/runs"
)

// appFile is a small one, on this machine.
const appFile = `app:
  command: ["true"]
  environment: {FORM: , KEPT: yes}
  says: {did: '(?P<id>.+)'}
invariants:
  - never: "false"
    name: billed-once
`

const ofApplication = `name: x
app: near/app.yaml
environment: {FORM: wrong}
nemesis: pause
interval: 2s
seed: 7
require: [mutual-exclusion]
time-limit: 20s
expect:
  verdict: violation
  invariants: [billed-once]
control:
  setup: {environment: {FORM: right}}
  expect: {verdict: valid}
`

func written(t *testing.T, text string) string {
	t.Helper()
	return filepath.Join(write(t, map[string]string{"x.yaml": text, "near/app.yaml": appFile, "other.yaml": appFile}), "x.yaml")
}

// TestApplicationKeys: keys of locks and of applications do not mix, and the line of the first that does is named.
func TestApplicationKeys(t *testing.T) {
	const ofLock = "name: x\nlock: redis\nexpect:\n  verdict: valid\ncontrol:\n  setup:\n    concurrency: 2\n  expect: {verdict: valid}\n"
	replaced := func(old, replacement string) string {
		if !strings.Contains(ofApplication, old) {
			t.Errorf("there is no %q", old)
		}
		return strings.Replace(ofApplication, old, replacement, 1)
	}
	scheduled := replaced("nemesis: pause\ninterval: 2s\nseed: 7\n", "schedule: {steps: [{id: stop, fault: pause, for: 1s}]}\n")
	for _, c := range []struct{ text, err string }{
		{ofApplication, ""},
		{replaced("interval: 2s\nseed: 7\n", ""), ""},
		{replaced("nemesis: pause\ninterval: 2s\nseed: 7\n", "schedule:\n  seed: 3\n  steps: [{id: stop, fault: pause, for: 1s}]\n"), ""},
		{replaced("seed: 7", "guard: none"), "line 6: guard: it goes with a lock"},
		{replaced("seed: 7", "lock: redis"), "line 6: lock: it goes with a lock"},
		{replaced("seed: 7", "workers:\n  - {}"), "line 6: workers: it goes with a lock"},
		{replaced("seed: 7", "each: lease"), "line 6: each: it goes with a lock"},
		{replaced("  verdict: violation", "  verdict: violation\n  never-notified: true"), "line 11: never-notified: it goes with a lock"},
		{replaced("{environment: {FORM: right}}", "{concurrency: 2}"), "line 13: concurrency: it goes with a lock"},
		{replaced("expect: {verdict: valid}", "expect: {notified: true}"), "line 14: notified: it goes with a lock"},
		{replaced("seed: 7", "speed: 7"), `line 6: there is no key "speed"`},
		{replaced("seed: 7", "schedule: {steps: [{fault: pause, for: 1s}]}"), "line 4: nemesis: the file has a schedule, too"},
		{replaced("nemesis: pause\n", ""), "line 4: interval: it goes with nemesis"},
		{replaced("nemesis: pause\ninterval: 2s\n", ""), "line 4: seed: it goes with nemesis"},
		{scheduled + "  without: [stop]\n", ""},
		{
			strings.Replace(scheduled, "{environment: {FORM: right}}", "{nemesis: none}", 1) + "  without: [stop]\n",
			"its nemesis replaces all of them",
		},
		{ofLock, ""},
		{strings.Replace(ofLock, "expect:\n", "environment: {A: b}\nexpect:\n", 1), "line 3: environment: it goes with an application"},
		{strings.Replace(ofLock, "  verdict: valid\n", "  verdict: valid\n  invariants: [a]\n", 1), "line 5: invariants: it goes with an application"},
		{strings.Replace(ofLock, "concurrency: 2", "app: a.yaml", 1), "line 7: app: it goes with an application"},
	} {
		if _, err := FromFile(written(t, c.text)); !usage(err, c.err) {
			t.Errorf("%s\nerror %v, want %q in it", c.text, err, c.err)
		}
	}
}

// TestApplicationExperiments: the control is the finding with what it changes, and leaves the finding as it is.
func TestApplicationExperiments(t *testing.T) {
	finding := func(text string) (wrong, right *runs.ApplicationOptions) {
		r, err := FromFile(written(t, text))
		if err != nil {
			t.Fatal(err)
		}
		all, err := r.Experiments()
		if err != nil || len(all) != 2 || all[0].Application == nil || all[1].Application == nil || all[1].Tested() == "" {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0].Application, all[1].Application
	}
	wrong, right := finding(ofApplication)
	for form, o := range map[string]*runs.ApplicationOptions{"wrong": wrong, "right": right} {
		if want := []string{"KEPT=yes", "FORM=" + form}; !slices.Equal(o.App.Environment, want) {
			t.Errorf("the environment of %s is %q, want %q", form, o.App.Environment, want)
		}
		if o.Nemesis != "pause" || o.Interval != 2*time.Second || o.Seed != 7 || o.TimeLimit != 20*time.Second || len(o.Require) != 1 || o.Schedule != nil {
			t.Errorf("%s: %+v", form, o)
		}
	}
	if _, calm := finding(strings.Replace(ofApplication, "{environment: {FORM: right}}", "{nemesis: none}", 1)); calm.Nemesis != "none" || calm.Schedule != nil {
		t.Errorf("the control has %+v", calm)
	}
	if _, other := finding(strings.Replace(ofApplication, "{environment: {FORM: right}}", "{app: other.yaml}", 1)); !strings.HasSuffix(other.App.Path, "other.yaml") {
		t.Errorf("the control is of %s", other.App.Path)
	}

	scheduled := strings.Replace(ofApplication, "nemesis: pause\ninterval: 2s\nseed: 7\n", "schedule: {seed: 3, steps: [{id: stop, fault: pause, for: 9s}]}\n", 1)
	control := func(change string) *runs.ApplicationOptions {
		wrong, right := finding(strings.Replace(scheduled, "setup: {environment: {FORM: right}}", change, 1))
		if wrong.Seed != 3 || len(wrong.Schedule.Steps) != 1 || wrong.Schedule.Steps[0].For.Of(0) != 9*time.Second {
			t.Errorf("%s: the finding has %+v", change, wrong)
		}
		return right
	}
	if o := control("for: {stop: 1s}"); o.Schedule.Steps[0].For.Of(0) != time.Second {
		t.Errorf("shorter: %+v", o.Schedule)
	}
	if o := control("without: [stop]"); o.Nemesis != "" || len(o.Schedule.Steps) != 0 {
		t.Errorf("without: %+v", o)
	}
	if o := control("setup: {nemesis: none}"); o.Nemesis != "none" || o.Schedule != nil {
		t.Errorf("without faults: %+v", o)
	}
}

// TestApplicationUnknown: what the app file has not is refused before anything runs, and so is a lock for an application.
func TestApplicationUnknown(t *testing.T) {
	for _, c := range []struct{ old, replacement, err string }{
		{"near/app.yaml", "far.yaml", "no such file"},
		{"[billed-once]", "[biled-once]", `near/app.yaml has no invariant "biled-once"; did you mean "billed-once"?`},
	} {
		r, err := FromFile(written(t, strings.Replace(ofApplication, c.old, c.replacement, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Experiment(Form{}); !usage(err, c.err) {
			t.Errorf("error %v, want %q in it", err, c.err)
		}
	}
	if _, err := Find(written(t, ofApplication), "redis"); !usage(err, "--lock: x is for the application of") {
		t.Errorf("a lock gives %v", err)
	}
}
