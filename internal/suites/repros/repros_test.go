package repros

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/checker/application"
	"lockcheck/internal/runs"
	"lockcheck/nemesis"
)

// TestReproData: every reproduction can be prepared, says where it comes from, and
// has a control that expects something else.
func TestReproData(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		t.Run(r.Name, func(t *testing.T) {
			checkData(t, r)
			file := r.Name
			if len(r.Each) > 0 {
				file = strings.TrimSuffix(r.Name, "-"+r.Setup.Lock)
			}
			if _, err := fs.Stat(files, file+".yaml"); err != nil {
				t.Errorf("its file has another name: %v", err)
			}
			if found, err := ByName(r.Name); err != nil || found.Name != r.Name {
				t.Errorf("not found by its name: %v", err)
			}
		})
	}
	var usage *runs.UsageError
	if _, err := ByName("moon-landing"); !errors.As(err, &usage) {
		t.Errorf("an unknown name gives %v", err)
	}
}

// optionsOf are those of the test of a lock.
func optionsOf(r Reproduction, form Form) (runs.Options, error) {
	e, err := r.Experiment(form)
	return e.Options, err
}

// checkData says what a reproduction lacks.
func checkData(t *testing.T, r Reproduction) {
	t.Helper()
	if r.Control == nil {
		t.Fatal("it has no control")
	}
	if r.Summary == "" || r.Claim == "" || r.Source == "" || r.Control.Summary == "" {
		t.Errorf("it does not say what it is: %+v", r)
	}
	if reflect.DeepEqual(r.Expect, r.Control.Expect) {
		t.Errorf("expects of its control the same: %+v", r.Expect)
	}
	properties := checker.Properties()
	if r.Setup.App != "" {
		properties = application.Properties()
		if r.Expect.Cause != "" && !slices.Contains(application.Causes(), r.Expect.Cause) {
			t.Errorf("expects the cause %q, which there is not", r.Expect.Cause)
		}
	}
	for _, p := range slices.Concat(r.Expect.Violated, r.Expect.Kept, r.Expect.MayViolate, r.Control.Expect.Violated, r.Control.Expect.Kept) {
		if !slices.Contains(properties, p) {
			t.Errorf("expects something of %q, which is no property", p)
		}
	}
	for _, form := range []Form{{}, {Control: true}, {Fast: true}, {Control: true, Fast: true}} {
		if form.Fast && r.Fast == nil {
			continue
		}
		e, err := r.Experiment(form)
		if err == nil {
			_, err = e.Outline()
		}
		if err != nil {
			t.Errorf("%+v: %v", form, err)
		}
	}
}

// TestReproControls: a control is the finding with one thing changed, and leaves
// the finding as it is.
func TestReproControls(t *testing.T) {
	jump, err := ByName("redlock-clock-jump")
	if err != nil {
		t.Fatal(err)
	}
	pause, err := ByName("redlock-gc-pause")
	if err != nil {
		t.Fatal(err)
	}
	options := func(r Reproduction, form Form) runs.Options {
		o, err := optionsOf(r, form)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	finding, control := Form{}, Form{Control: true}
	if faults := options(jump, control).Schedule.Faults(); !slices.Equal(faults, []string{"partition"}) {
		t.Errorf("the control of the clock jump has %v", faults)
	}
	if faults := options(jump, finding).Schedule.Faults(); !slices.Equal(faults, []string{"clock", "partition"}) {
		t.Errorf("the clock jump has %v", faults)
	}
	lease := pause.Setup.TTL
	if d := options(pause, control).Schedule.Steps[0].For.Of(lease); d >= lease {
		t.Errorf("the control stops the holder for %s, with a lease of %s", d, lease)
	}
	if d := options(pause, finding).Schedule.Steps[0].For.Of(lease); d <= lease {
		t.Errorf("the holder is stopped for %s, with a lease of %s", d, lease)
	}
}

// TestReproDataMalformed has one mistake each in a file that is otherwise good.
func TestReproDataMalformed(t *testing.T) {
	const good = `name: x
lock: redis
ttl: 2s
schedule:
  steps:
    - id: stop
      fault: pause
      for: 3s
expect:
  verdict: violation
control:
  without: [stop]
`
	for _, c := range []struct{ name, old, replacement, want string }{
		{"nothing", "name: x", "name: x", ""},
		{"unknown key", "ttl: 2s", "tll: 2s", "line 3"},
		{"unknown key of a step", "for: 3s", "fro: 3s", "line 8"},
		{"malformed length", "ttl: 2s", "ttl: 2", "line 3"},
		{"schedule that makes no sense", "for: 3s", "for: -3s", "for: must be positive"},
		{"control without change", "without: [stop]", "summary: the same", "the control changes nothing"},
		{"control without what is not there", "[stop]", "[jump]", `"jump", which does not exist`},
		{"control of what is not there", "without: [stop]", "for: {jump: 1s}", `"jump", which does not exist`},
		{"control of another length", "without: [stop]", "for: {stop: 1s}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := readReproduction(strings.NewReader(strings.Replace(good, c.old, c.replacement, 1)))
			switch {
			case c.want == "" && (err != nil || r.Name != "x"):
				t.Errorf("%+v, %v", r, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
	changed := Control{For: map[string]nemesis.Span{"stop": {Plus: time.Second}}}
	before := nemesis.Schedule{Steps: []nemesis.Step{{ID: "stop", For: nemesis.Span{Plus: time.Minute}}}}
	if changed.apply(before); before.Steps[0].For.Plus != time.Minute {
		t.Error("the control has changed the finding itself")
	}
}

// TestReadExperiments: one for each lock, with its control only if there is one.
func TestReadExperiments(t *testing.T) {
	const good = `name: x
each: [redis, file]
schedule:
  steps: []
expect:
  verdict: valid
  figures: {ops: ">= 1"}
control:
  setup: {concurrency: 2}
  expect: {verdict: violation}
`
	const alone = "name: x\nlock: file\nexpect: {verdict: valid}\n"
	for _, c := range []struct {
		name, text string
		want       []string
		err        string
	}{
		{"without a control", alone, []string{"a/x"}, ""},
		{"without a name", strings.Replace(alone, "x", `""`, 1), nil, "it has no name"},
		{"for two locks", good, []string{"a/x-redis", "a/x-redis/control", "a/x-file", "a/x-file/control"}, ""},
		{"for no such lock", strings.Replace(good, "file", "door", 1), nil, `line 2: each: there is no lock "door"`},
		{"for an unknown class", strings.Replace(good, "[redis, file]", "door", 1), nil, `line 2: each: "door"`},
		{"a control of nothing", strings.Replace(good, "  setup: {concurrency: 2}\n", "", 1), nil, "the control changes nothing"},
		{"an unknown figure", strings.Replace(good, "ops", "opps", 1), nil, `line 7: there is no figure "opps"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := ReadExperiments(strings.NewReader(c.text), "a/")
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("error %v, want %q in it", err, c.err)
			}
			var names []string
			for _, e := range all {
				names = append(names, e.Name)
				if control := strings.HasSuffix(e.Name, "/control"); control != (e.Expect.Verdict == checker.Violation) {
					t.Errorf("%s expects %s", e.Name, e.Expect)
				}
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("%q, want %q", names, c.want)
			}
		})
	}
}

// TestLockDelay: none is not the usual one, and the control's does not become that of its
// reproduction.
func TestLockDelay(t *testing.T) {
	r, err := ByName("consul-no-lock-delay")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		form Form
		want time.Duration
	}{{Form{Control: true}, 15 * time.Second}, {Form{}, 0}} {
		o, err := optionsOf(r, c.form)
		if err != nil || o.LockDelay == nil || *o.LockDelay != c.want {
			t.Errorf("%+v: %v, %v, want %s", c.form, o.LockDelay, err, c.want)
		}
	}
	if other, err := ByName("etcd-11456"); err != nil || other.Setup.LockDelay != nil {
		t.Errorf("a delay is said of %s, %v", other.Name, err)
	}
}
