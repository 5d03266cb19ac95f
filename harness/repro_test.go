package harness

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/nemesis"
)

// TestReproData: every reproduction can be prepared, says where it comes from, and
// has a control that expects something else.
func TestReproData(t *testing.T) {
	all, err := Reproductions()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		t.Run(r.Name, func(t *testing.T) {
			if r.Summary == "" || r.Claim == "" || r.Source == "" || r.Control.Summary == "" {
				t.Errorf("it does not say what it is: %+v", r)
			}
			file := r.Name
			if r.Each != "" {
				file = strings.TrimSuffix(r.Name, "-"+r.Setup.Lock)
			}
			if _, err := fs.Stat(reproFiles, "repros/"+file+".yaml"); err != nil {
				t.Errorf("its file has another name: %v", err)
			}
			if reflect.DeepEqual(r.Expect, r.Control.Expect) {
				t.Errorf("expects of its control the same: %+v", r.Expect)
			}
			for _, p := range slices.Concat(r.Expect.Violated, r.Expect.Kept, r.Control.Expect.Violated, r.Control.Expect.Kept) {
				if !slices.Contains(checker.Properties(), p) {
					t.Errorf("expects something of %q, which is no property", p)
				}
			}
			for _, form := range []Form{{}, {Control: true}, {Fast: true}, {Control: true, Fast: true}} {
				if form.Fast && r.Fast == nil {
					continue
				}
				o, err := r.Options(form)
				if err == nil {
					_, err = prepare(o)
				}
				if err != nil {
					t.Errorf("%+v: %v", form, err)
				}
			}
			if found, err := ReproductionByName(r.Name); err != nil || found.Name != r.Name {
				t.Errorf("not found by its name: %v", err)
			}
		})
	}
	var usage *UsageError
	if _, err := ReproductionByName("moon-landing"); !errors.As(err, &usage) {
		t.Errorf("an unknown name gives %v", err)
	}
}

// TestReproControls: a control is the finding with one thing changed, and leaves
// the finding as it is.
func TestReproControls(t *testing.T) {
	jump, err := ReproductionByName("redlock-clock-jump")
	if err != nil {
		t.Fatal(err)
	}
	pause, err := ReproductionByName("redlock-gc-pause")
	if err != nil {
		t.Fatal(err)
	}
	options := func(r Reproduction, form Form) Options {
		o, err := r.Options(form)
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
	lease := time.Duration(pause.Setup.TTL)
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

// TestReproMissed: exactly what was expected, and nothing else, is reproduced.
func TestReproMissed(t *testing.T) {
	results := func(v checker.Verdict, brokenPromises int64, violated ...checker.Property) checker.Results {
		r := checker.Results{Verdict: v, Overlaps: checker.OverlapSummary{BrokenPromises: brokenPromises}}
		for _, p := range checker.Properties() {
			f := checker.Finding{Property: p, Verdict: checker.Valid}
			if slices.Contains(violated, p) {
				f.Verdict = checker.Violation
			}
			r.Findings = append(r.Findings, f)
		}
		return r
	}
	violation := Expectation{Verdict: checker.Violation, Violated: []checker.Property{checker.MutualExclusion, checker.NoLostUpdate}}
	promise := violation
	promise.BrokenPromise = true
	healthy := promise
	healthy.Earlier = "healthy"
	overlaps := func(o checker.OverlapSummary) checker.Results {
		r := results(checker.Violation, 0, checker.MutualExclusion, checker.NoLostUpdate)
		r.Overlaps = o
		return r
	}
	valid := Expectation{Verdict: checker.Valid}
	for _, c := range []struct {
		name   string
		expect Expectation
		got    checker.Results
		want   string // part of what was missed; "" for nothing
	}{
		{"as expected", violation, results(checker.Violation, 0, checker.MutualExclusion, checker.NoLostUpdate), ""},
		{"and more", violation, results(checker.Violation, 1, checker.MutualExclusion, checker.NoLostUpdate, checker.NoStaleWrite), ""},
		{"valid control", valid, results(checker.Valid, 0), ""},
		{"valid", violation, results(checker.Valid, 0), "the verdict is valid, not violation"},
		{"undecided", violation, results(checker.Undecided, 0), "the verdict is undecided, not violation"},
		{"broken, with all the violations", violation, results(checker.Broken, 1, checker.MutualExclusion, checker.NoLostUpdate), "the verdict is broken"},
		{"control that is a violation", valid, results(checker.Violation, 0, checker.MutualExclusion), "the verdict is violation, not valid"},
		{"control that is undecided", valid, results(checker.Undecided, 0), "the verdict is undecided, not valid"},
		{"nothing was lost", violation, results(checker.Violation, 0, checker.MutualExclusion), "no-lost-update was not violated (only mutual-exclusion)"},
		{"broken promise", promise, results(checker.Violation, 1, checker.MutualExclusion, checker.NoLostUpdate), ""},
		{"outlived lease only", promise, results(checker.Violation, 0, checker.MutualExclusion, checker.NoLostUpdate), "no overlap was a broken promise"},
		{"broken promise to a healthy holder", healthy, overlaps(checker.OverlapSummary{BrokenPromises: 1, EarlierHealthy: 1, BrokenHealthy: 1}), ""},
		{"broken promise to a paused one, another one healthy", healthy, overlaps(checker.OverlapSummary{BrokenPromises: 1, OutlivedLeases: 1, EarlierHealthy: 1, EarlierPaused: 1, BrokenPaused: 1}), "in no overlap by a broken promise the earlier holder was healthy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.expect.Missed(c.got); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("missed %q, want %q", got, c.want)
			}
		})
	}
}
