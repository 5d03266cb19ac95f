package runs

import (
	"errors"
	"io/fs"
	"math"
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
			if r.Control == nil {
				t.Fatal("it has no control")
			}
			if r.Summary == "" || r.Claim == "" || r.Source == "" || r.Control.Summary == "" {
				t.Errorf("it does not say what it is: %+v", r)
			}
			file := r.Name
			if len(r.Each) > 0 {
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

// judgedValid are results of which all properties are valid.
func judgedValid() checker.Results {
	r := checker.Results{Verdict: checker.Valid}
	for _, p := range checker.Properties() {
		r.Findings = append(r.Findings, checker.Finding{Property: p, Verdict: checker.Valid, Required: true})
	}
	return r
}

// TestReproMissed: exactly what was expected, and nothing else, is reproduced.
// Each row without a miss has its twin that differs in one thing.
func TestReproMissed(t *testing.T) {
	type change func(*checker.Results)
	results := func(v checker.Verdict, changes ...change) checker.Results {
		r := judgedValid()
		r.Verdict = v
		for _, c := range changes {
			c(&r)
		}
		return r
	}
	is := func(v checker.Verdict, properties ...checker.Property) change {
		return func(r *checker.Results) {
			for i, f := range r.Findings {
				if slices.Contains(properties, f.Property) {
					r.Findings[i].Verdict = v
				}
			}
		}
	}
	violated := func(properties ...checker.Property) change { return is(checker.Violation, properties...) }
	both := violated(checker.MutualExclusion, checker.NoLostUpdate)
	promise := func(r *checker.Results) { r.Overlaps.BrokenPromises = 1 }
	whilePaused := func(r *checker.Results) { r.Overlaps.EarlierPaused = 1 }
	overlaps := func(o checker.OverlapSummary) change { return func(r *checker.Results) { r.Overlaps = o } }
	told := func(r *checker.Results) { r.Operations.Lost = 1 }
	orphaned := func(longest time.Duration, stuck int64) change {
		return func(r *checker.Results) { r.Orphans = checker.OrphanSummary{Killed: 1, Longest: longest, Stuck: stuck} }
	}
	violation := Expectation{Verdict: checker.Violation, Violated: []checker.Property{checker.MutualExclusion, checker.NoLostUpdate}}
	with := func(f func(*Expectation)) Expectation {
		e := violation
		f(&e)
		return e
	}
	valid := Expectation{Verdict: checker.Valid}
	kept := Expectation{Kept: []checker.Property{checker.MutualExclusion}}
	late := Expectation{OrphanedFor: yamlDuration(16 * time.Second)}
	soon := Expectation{FreeWithin: yamlDuration(8 * time.Second)}
	fast := Expectation{Verdict: checker.Valid, Figures: Bounds{{Figure: "ops", Low: 2, High: math.Inf(1)}}}
	updates := func(n int64) change { return func(r *checker.Results) { r.Measures.Work = n } }
	for _, c := range []struct {
		name   string
		expect Expectation
		got    checker.Results
		want   string // part of what was missed; "" for nothing
	}{
		{"as expected", violation, results(checker.Violation, both), ""},
		{"and more", violation, results(checker.Violation, both, promise, violated(checker.NoStaleWrite)), ""},
		{"valid", violation, results(checker.Valid), "the verdict is valid, not violation"},
		{"undecided", violation, results(checker.Undecided), "the verdict is undecided, not violation"},
		{"of which nothing was judged", valid, checker.Results{Verdict: checker.Valid}, "fault-evidence was not judged"},
		{"of a run that failed", violation, results(checker.Violation, both, is(checker.Broken, checker.Assumptions)), "assumptions is broken"},
		{"of a run that did too little", violation, results(checker.Violation, both, is(checker.Undecided, checker.Assumptions)), "assumptions is undecided"},
		{"without its fault", violation, results(checker.Violation, both, is(checker.Undecided, checker.FaultEvidence)), "fault-evidence is undecided"},
		{"without faults asked for", violation, results(checker.Violation, both, is(checker.NotApplicable, checker.FaultEvidence)), ""},
		{"nothing was lost", violation, results(checker.Violation, violated(checker.MutualExclusion)), "no-lost-update was not violated (only mutual-exclusion)"},

		{"valid control", valid, results(checker.Valid), ""},
		{"control that is a violation", valid, results(checker.Violation, violated(checker.MutualExclusion)), "the verdict is violation, not valid"},
		{"control that is undecided", valid, results(checker.Undecided), "the verdict is undecided, not valid"},

		{"kept", kept, results(checker.Valid), ""},
		{"not kept", kept, results(checker.Violation, violated(checker.MutualExclusion)), "mutual-exclusion is not shown to be kept: violation"},
		{"kept for want of data", kept, results(checker.Undecided, is(checker.Undecided, checker.MutualExclusion)), "mutual-exclusion is not shown to be kept: undecided"},
		{"kept, and another violated", kept, results(checker.Violation, violated(checker.Liveness)), "liveness was violated"},

		{"broken promise", with(func(e *Expectation) { e.BrokenPromise = true }), results(checker.Violation, both, promise), ""},
		{"outlived lease only", with(func(e *Expectation) { e.BrokenPromise = true }), results(checker.Violation, both), "no overlap was a broken promise"},
		{"holder paused", with(func(e *Expectation) { e.Earlier = "paused" }), results(checker.Violation, both, whilePaused), ""},
		{
			"broken promise to a healthy holder", with(func(e *Expectation) { e.BrokenPromise, e.Earlier = true, "healthy" }),
			results(checker.Violation, both, overlaps(checker.OverlapSummary{BrokenPromises: 1, EarlierHealthy: 1, BrokenHealthy: 1})), "",
		},
		{
			"broken promise to a paused one, another one healthy", with(func(e *Expectation) { e.BrokenPromise, e.Earlier = true, "healthy" }),
			results(checker.Violation, both, overlaps(checker.OverlapSummary{BrokenPromises: 1, OutlivedLeases: 1, EarlierHealthy: 1, EarlierPaused: 1, BrokenPaused: 1})),
			"in no overlap by a broken promise the earlier holder was healthy",
		},
		{"holder healthy", with(func(e *Expectation) { e.Earlier = "healthy" }), results(checker.Violation, both, whilePaused), "in no overlap the earlier holder was healthy"},
		{"nobody told", with(func(e *Expectation) { e.NeverTold = true }), results(checker.Violation, both), ""},
		{"somebody told", with(func(e *Expectation) { e.NeverTold = true }), results(checker.Violation, both, told), "1 times a worker was told"},

		{"orphaned", late, results(checker.Valid, orphaned(20*time.Second, 0)), ""},
		{"free too soon", late, results(checker.Valid, orphaned(10*time.Second, 0)), "not after 16s at the earliest"},
		{"nobody killed", late, results(checker.Valid), "no holder was killed"},
		{"free in time", soon, results(checker.Valid, orphaned(5*time.Second, 0)), ""},
		{"free too late", soon, results(checker.Valid, orphaned(10*time.Second, 0)), "not for 8s at the latest"},
		{"figure within", fast, results(checker.Valid, updates(3)), ""},
		{"figure beyond", fast, results(checker.Valid, updates(1)), "ops 1, not 2 at least"},
		{"never free", soon, results(checker.Valid, orphaned(5*time.Second, 1)), "not for 8s at the latest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.expect.Missed(c.got); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("missed %q, want %q", got, c.want)
			}
		})
	}
}

// TestExperimentMissed: each step of a schedule must have been in force and met
// somebody, in any of its rounds.
func TestExperimentMissed(t *testing.T) {
	fault := func(id string, proven, exercised bool) checker.FaultCoverage {
		return checker.FaultCoverage{ID: id, Applied: true, Proven: proven, Exercised: exercised}
	}
	e := Experiment{Expect: Expectation{Verdict: checker.Valid}, Options: Options{Schedule: &nemesis.Schedule{Steps: []nemesis.Step{
		{ID: "cut-w1"}, {ID: "stop", Every: nemesis.Span{Plus: time.Second}},
	}}}}
	for _, c := range []struct {
		name   string
		faults []checker.FaultCoverage
		want   string
	}{
		{"all", []checker.FaultCoverage{fault("cut-w1", true, true), fault("stop.2", true, true)}, ""},
		{"one of several rounds", []checker.FaultCoverage{fault("cut-w1", true, true), fault("stop.1", true, false), fault("stop.2", true, true)}, ""},
		{"none of the first step", []checker.FaultCoverage{fault("stop.2", true, true)}, "step cut-w1"},
		{"one unproven", []checker.FaultCoverage{fault("cut-w1", false, false), fault("stop.2", true, true)}, "step cut-w1"},
		{"one that met nobody", []checker.FaultCoverage{fault("cut-w1", true, true), fault("stop.2", true, false)}, "step stop"},
		{"another of a similar name", []checker.FaultCoverage{fault("cut-w1", true, true), fault("stop-2", true, true)}, "step stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := judgedValid()
			r.Faults = c.faults
			got := e.Missed(r)
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("missed %q, want %q", got, c.want)
			}
		})
	}
}
