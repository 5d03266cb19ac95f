package hunt

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/trials"
)

// errInterrupt is returned by a fake run that is interrupted.
var errInterrupt = errors.New("interrupted")

// fakeRuns replaces real runs. A function decides the result of each run.
type fakeRuns struct {
	t     *testing.T
	given []runs.Options
	// shows gets the number of the run, from 0. It says whether the lock is stuck and whether the machine was
	// too busy.
	shows func(n int, o runs.Options) (stuck, delayed bool, err error)
}

func (f *fakeRuns) run(_ context.Context, o runs.Options, _ <-chan struct{}, _ runs.Progress) (runs.Outcome, error) {
	f.given = append(f.given, o)
	stuck, delayed, err := f.shows(len(f.given)-1, o)
	if err != nil {
		if err == errInterrupt {
			return runs.Outcome{Interrupted: true}, nil
		}
		return runs.Outcome{}, err
	}
	folder, err := os.MkdirTemp(o.Machine.Store, "run-")
	if err != nil {
		f.t.Fatal(err)
	}
	results := checker.Results{Verdict: checker.Valid}
	for _, p := range []checker.Property{checker.FaultEvidence, checker.Assumptions} {
		results.Findings = append(results.Findings, checker.Finding{Property: p, Verdict: checker.Valid})
	}
	for _, step := range o.Schedule.Steps {
		results.Faults = append(results.Faults, checker.FaultCoverage{ID: step.ID, Kind: step.Fault, Applied: true, Proven: true, Exercised: true})
	}
	if stuck {
		results.Verdict = checker.Violation
		results.Findings = append(results.Findings, checker.Finding{Property: checker.Liveness, Verdict: checker.Violation, Violations: []checker.Incident{{What: "stuck"}}})
	}
	outcome := runs.Outcome{Judgement: runs.Judgement{Folder: folder, History: &history.History{}, Results: results}}
	if delayed {
		outcome.Delay = time.Minute
	}
	return outcome, nil
}

// investigateStuck investigates a finding that one trial showed.
func investigateStuck(t *testing.T, f *fakeRuns) (*Folder, bool) {
	t.Helper()
	folder := withStuck(t)
	return folder, investigateOpen(t, folder, f, time.Hour)
}

// investigateOpen investigates the open findings and says whether it was interrupted.
func investigateOpen(t *testing.T, folder *Folder, f *fakeRuns, budget time.Duration) bool {
	t.Helper()
	f.t = t
	s := newSearch(folder, Machine{Parallel: 1, Progress: runs.Silent{}, Budget: budget, test: f.run}, nil)
	stopped, err := s.investigateAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stopped
}

// withStuck is a hunt in which one trial showed a stuck lock.
func withStuck(t *testing.T) *Folder {
	t.Helper()
	folder, err := Create(filepath.Join(t.TempDir(), "hunt"), ready(t, "memory"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder.Path, runsFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	trial := Trial{Use: trials.Use{Workers: 3, Section: 0.6}, Steps: []Step{{Fault: history.Pause, Target: "waiter", When: "holding", Length: 1.3}}}
	seen := sighting{Signature{Property: checker.Liveness}, "stuck", trial}
	if err := folder.add(entry{Tried: &attempt{Trial: trial, Finds: []sighting{seen}}}); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestInvestigationFailing: failed runs are reported and are no evidence.
func TestInvestigationFailing(t *testing.T) {
	for _, c := range []struct {
		name             string
		first, confirmed int // the first run that fails, and how many runs the result reports
	}{
		{"from the beginning", 0, 0}, {"halfway", 3, 0}, {"once it is confirmed", toConfirm, toConfirm},
	} {
		folder, _ := investigateStuck(t, &fakeRuns{shows: func(n int, _ runs.Options) (bool, bool, error) {
			if n >= c.first {
				return false, false, errors.New("no engine")
			}
			return true, false, nil
		}})
		f := folder.recordOf(Signature{Property: checker.Liveness})
		if f == nil || !strings.Contains(f.stoppedBy(), "no engine") || f.OriginalRuns.Made != c.confirmed || f.File != "" {
			t.Errorf("%s: %s; %+v, %q", c.name, f.stoppedBy(), f.OriginalRuns, f.File)
		}
		if len(folder.open(false)) != 1 {
			t.Errorf("%s: it is not gone into again", c.name)
		}
	}
}

// TestInvestigationBusy: runs in which the fault may have been too late do not count against a finding.
func TestInvestigationBusy(t *testing.T) {
	folder, _ := investigateStuck(t, &fakeRuns{shows: func(n int, o runs.Options) (bool, bool, error) {
		late := n%3 == 1
		return len(o.Schedule.Steps) > 0 && !late, late, nil
	}})
	if f := folder.records[0]; f.OriginalRuns != (Count{toConfirm, toConfirm}) || f.Control == "" {
		t.Errorf("%+v of the first form, control %q, %s", f.OriginalRuns, f.Control, f.stoppedBy())
	}
}

// TestInvestigationLuck: a simple form that showed the finding only by luck gives way to the original, and a
// finding that is not shown again has no control.
func TestInvestigationLuck(t *testing.T) {
	small := func(o runs.Options) bool { return o.Concurrency == fewest }
	chosen, _ := Count{toConfirm, toConfirm}.simplerRule() // number of runs that select a form
	for _, c := range []struct {
		name       string
		atTheEnd   bool // the original still shows the finding
		workers    int
		controlled bool
	}{
		{"the first form is left", true, 3, true}, {"nothing is left", false, fewest, false},
	} {
		smaller, first := 0, ""
		folder, _ := investigateStuck(t, &fakeRuns{shows: func(n int, o runs.Options) (bool, bool, error) {
			switch {
			case len(o.Schedule.Steps) == 0:
				return false, false, nil
			case small(o):
				first = cmp.Or(first, o.Parameters["hunt"])
				if o.Parameters["hunt"] != first {
					return false, false, nil // the form cannot be reduced further
				}
				smaller++
				return smaller <= chosen+toConfirm, false, nil // also while it is settled
			}
			return n < toConfirm || c.atTheEnd && smaller > 0, false, nil
		}})
		f := folder.records[0]
		if f.Reduced.Workers != c.workers || (f.Control != "") != c.controlled || f.ReducedRuns.Made != toConfirm {
			t.Errorf("%s: %s, %+v, control %q, %s", c.name, f.Reduced, f.ReducedRuns, f.Control, f.stoppedBy())
		}
	}
}

// TestInvestigationWithoutTime: a hunt that is resumed for too short a time keeps what it had.
func TestInvestigationWithoutTime(t *testing.T) {
	folder, _ := investigateStuck(t, &fakeRuns{shows: func(_ int, o runs.Options) (bool, bool, error) {
		return len(o.Schedule.Steps) > 0, false, nil
	}})
	whole := folder.records[0]
	whole.Stopped = &Stop{Kind: outOfTime} // so that its investigation continues
	if err := folder.add(entry{Found: &whole}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder.Path, whole.File)
	written, err := os.ReadFile(file)
	if err != nil || whole.Control == "" {
		t.Fatalf("control %q: %v", whole.Control, err)
	}
	investigateOpen(t, folder, &fakeRuns{}, 2*time.Second)
	now, err := os.ReadFile(file)
	if f := folder.records[0]; err != nil || f.Control != whole.Control || f.ReducedRuns != whole.ReducedRuns || string(now) != string(written) {
		t.Errorf("%+v, control %q: %v", f.ReducedRuns, f.Control, err)
	}
}

// TestInvestigationInterrupted: a resumed hunt still knows what it had confirmed.
func TestInvestigationInterrupted(t *testing.T) {
	folder, interrupted := investigateStuck(t, &fakeRuns{shows: func(n int, _ runs.Options) (bool, bool, error) {
		if n > toConfirm {
			return false, false, errInterrupt
		}
		return true, false, nil
	}})
	again, err := Open(folder.Path)
	if err != nil {
		t.Fatal(err)
	}
	f := again.recordOf(Signature{Property: checker.Liveness})
	if !interrupted || f == nil || f.OriginalRuns != (Count{toConfirm, toConfirm}) || f.stoppedBy() == "" || len(again.open(false)) != 1 {
		t.Errorf("interrupted %v: %#v", interrupted, f)
	}
}

// TestInvestigationUnable: two trials showed a finding seldom, and one of them cannot be rerun. The result of
// the other is kept, and the first is not retried forever.
func TestInvestigationUnable(t *testing.T) {
	folder := withStuck(t)
	other := folder.attempts[0]
	other.Trial.Workers = 5
	other.Finds = []sighting{{other.Finds[0].Signature, "stuck", other.Trial}}
	if err := folder.add(entry{Tried: &other}); err != nil {
		t.Fatal(err)
	}
	unable := 0
	investigateOpen(t, folder, &fakeRuns{shows: func(n int, o runs.Options) (bool, bool, error) {
		if o.Concurrency == 5 {
			if unable++; unable > toConfirm {
				t.Fatal("it is tried again")
			}
			return false, false, errors.New("no engine")
		}
		return n%2 == 0, false, nil
	}}, time.Hour)
	if f := folder.records[0]; f.OriginalRuns != (Count{toConfirm / 2, toConfirm}) || f.State != Waiting || len(f.Rerun) != 2 {
		t.Errorf("%+v, waits %v, gone into %v, %q", f.OriginalRuns, f.State == Waiting, f.Rerun, f.stoppedBy())
	}
}

// TestInvestigationTooBusy: if too few runs count, nothing is concluded from them, and the investigation
// stays open.
func TestInvestigationTooBusy(t *testing.T) {
	for _, c := range []struct {
		name  string
		shows func(n int, o runs.Options) (stuck, delayed bool, err error)
		want  func(f record, h Result) bool
	}{
		{
			"one run did not show it", func(n int, _ runs.Options) (bool, bool, error) { return false, n > 0, nil },
			func(f record, h Result) bool {
				return f.OriginalRuns == Count{} && f.stoppedBy() != "" && h.Verdict() == checker.Undecided
			},
		},
		{
			"one of two showed it", func(n int, _ runs.Options) (bool, bool, error) { return n == 0, n > 1, nil },
			func(f record, h Result) bool {
				return f.OriginalRuns == Count{} && f.stoppedBy() != "" && h.Verdict() == checker.Undecided
			},
		},
		{
			"no simpler form could be tried", func(n int, _ runs.Options) (bool, bool, error) { return true, n >= toConfirm, nil },
			func(f record, _ Result) bool {
				return f.OriginalRuns == Count{toConfirm, toConfirm} && strings.Contains(f.stoppedBy(), "Reducing it") && f.Reduced.Workers == 3
			},
		},
		{
			"one of them could not, nor the control", func(_ int, o runs.Options) (bool, bool, error) { return true, len(o.Schedule.Steps) == 0, nil },
			func(f record, _ Result) bool {
				return strings.Contains(f.stoppedBy(), "Reducing it") && f.Reduced.Workers == fewest && len(f.Reduced.Steps) == 1 && f.File != "" && f.Control == ""
			},
		},
	} {
		folder, _ := investigateStuck(t, &fakeRuns{shows: c.shows})
		if f := folder.records[0]; !c.want(f, folder.Result()) {
			t.Errorf("%s: %+v, then %+v of %s, control %q: %q", c.name, f.OriginalRuns, f.ReducedRuns, f.Reduced, f.Control, f.stoppedBy())
		}
		if len(folder.open(false)) != 1 {
			t.Errorf("%s: it is not gone into again", c.name)
		}
	}
}

// TestInvestigationKeeps: whatever ends a resumed hunt, the form with a written reproduction keeps its
// record, and the reduction of an interrupted form continues.
func TestInvestigationKeeps(t *testing.T) {
	shows := func(_ int, o runs.Options) (bool, bool, error) { return len(o.Schedule.Steps) > 0, false, nil }
	for name, then := range map[string]func(n int, o runs.Options) (bool, bool, error){
		"interrupted at once":   func(int, runs.Options) (bool, bool, error) { return false, false, errInterrupt },
		"interrupted after one": func(n int, _ runs.Options) (bool, bool, error) { return false, false, errIf(n > 0, errInterrupt) },
		"no engine":             func(int, runs.Options) (bool, bool, error) { return false, false, errors.New("no engine") },
	} {
		folder, _ := investigateStuck(t, &fakeRuns{shows: shows})
		whole := folder.records[0]
		whole.Stopped = &Stop{Kind: outOfTime}
		if err := folder.add(entry{Found: &whole}); err != nil {
			t.Fatal(err)
		}
		investigateOpen(t, folder, &fakeRuns{shows: then}, time.Hour)
		if f := folder.records[0]; f.Control != whole.Control || f.ReducedRuns != whole.ReducedRuns || f.Reduced.key() != whole.Reduced.key() || f.Control == "" {
			t.Errorf("%s: %+v of %s, control %q", name, f.ReducedRuns, f.Reduced, f.Control)
		}
	}
	folder, interrupted := investigateStuck(t, &fakeRuns{shows: func(n int, o runs.Options) (bool, bool, error) {
		return len(o.Schedule.Steps) > 0, false, errIf(n > 20, errInterrupt)
	}})
	if f := folder.records[0]; !interrupted || f.Reduced.key() == f.Original.key() || f.ReducedRuns.Made > 0 {
		t.Errorf("interrupted %v on the way: %s, %+v", interrupted, f.Reduced, f.ReducedRuns)
	}
}

func errIf(is bool, err error) error {
	if is {
		return err
	}
	return nil
}

// TestOutcome: a finding that needs more work says which, and differs from a finding that was not seen again.
func TestOutcome(t *testing.T) {
	stuck := Signature{Property: checker.Liveness}
	lost := Signature{Property: checker.NoLostUpdate, Cause: checker.CauseUnexplained}
	twice := Signature{Property: checker.MutualExclusion, Cause: checker.CauseTwice}
	plan := ready(t, "memory")
	seen := func(s Signature) entry { return entry{Tried: &attempt{Finds: []sighting{{Signature: s}}}} }
	is := func(r record) entry {
		if r.Signature == (Signature{}) {
			r.Signature = stuck
		}
		r.Source, r.Rerun = 1, []int{1}
		return entry{Found: &r}
	}
	for _, c := range []struct {
		name    string
		entries []entry
		want    Outcome
		todo    string // part of the sentence that says what is still to be done
		verdict checker.Verdict
	}{
		{"not seen again", []entry{seen(stuck), is(record{State: notSeenAgain, OriginalRuns: Count{0, 6}})}, NotSeenAgain, "", checker.Valid},
		{"by another trial", []entry{seen(stuck), seen(stuck), is(record{State: notSeenAgain, OriginalRuns: Count{0, 6}})}, Unconfirmed, "Another trial", checker.Undecided},
		{"never rerun", []entry{seen(stuck)}, Unconfirmed, "no time", checker.Undecided},
		{
			"interrupted", []entry{seen(stuck), is(record{State: confirming, Stopped: &Stop{Kind: interrupted, At: confirming, Count: Count{0, 3}, Of: 6}})},
			Unconfirmed, "interrupted after 3 of 6 runs, 0 of which showed it", checker.Undecided,
		},
		{"failed", []entry{seen(stuck), is(record{State: confirming, Stopped: &Stop{Kind: cannotRun, At: confirming, Detail: "no engine"}})}, Unconfirmed, "failed: no engine", checker.Undecided},
		{"unsupported", []entry{seen(stuck), is(record{State: confirming, Stopped: &Stop{Kind: unsupported, At: confirming}})}, Unconfirmed, "cannot be run", checker.Undecided},
		{"seen again", []entry{seen(stuck), seen(stuck), is(record{State: done, OriginalRuns: Count{6, 6}})}, Confirmed, "", checker.Violation},
		{"shows seldom", []entry{seen(stuck), is(record{State: Waiting, OriginalRuns: Count{3, 6}})}, Confirmed, "not reduced", checker.Violation},
		{
			"shows seldom, and is explained",
			[]entry{seen(lost), is(record{Signature: lost, State: Waiting, OriginalRuns: Count{3, 6}}), is(record{Signature: twice, OriginalRuns: Count{6, 6}, ReducedRuns: Count{6, 6}})},
			Confirmed, "without any fault", checker.Violation,
		},
	} {
		f := newFolder("", plan, nil)
		for _, e := range c.entries {
			f.apply(e)
		}
		r := f.Result()
		r.Arms[0].Proven = 1
		got := r.Findings[0]
		if got.Outcome != c.want || (got.Unfinished == "") != (c.todo == "") || !strings.Contains(got.Unfinished, c.todo) || r.Verdict() != c.verdict {
			t.Errorf("%s: %s, %q, %s; want %s, %q, %s", c.name, got.Outcome, got.Unfinished, r.Verdict(), c.want, c.todo, c.verdict)
		}
		var page strings.Builder
		if err := r.Page().WriteMarkdown(&page); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page.String(), got.Unfinished) || strings.Contains(page.String(), "Not seen again in") != (c.want == NotSeenAgain) {
			t.Errorf("%s: the page is\n%s", c.name, page.String())
		}
	}
}

// TestPartialConfirmation: a confirmation is stopped after some runs showed the finding. The result has the
// counts, whatever the reason for the stop, and keeps them when the hunt is resumed. They confirm nothing.
func TestPartialConfirmation(t *testing.T) {
	for name, then := range map[string]func() (bool, bool, error){
		"interrupted":      func() (bool, bool, error) { return false, false, errInterrupt },
		"busy":             func() (bool, bool, error) { return false, true, nil },
		"no engine":        func() (bool, bool, error) { return false, false, errors.New("no engine") },
		"not shown at all": nil,
	} {
		folder := withStuck(t)
		investigateOpen(t, folder, &fakeRuns{shows: func(n int, _ runs.Options) (bool, bool, error) {
			switch {
			case then == nil:
				return false, false, errIf(n >= 3, errInterrupt)
			case n >= 3:
				return then()
			}
			return n != 1, false, nil
		}}, time.Hour)
		want := Count{2, 3}
		if then == nil {
			want = Count{}
		}
		check := func(when string, outcome Outcome) {
			t.Helper()
			again, err := Open(folder.Path)
			if err != nil {
				t.Fatal(err)
			}
			r := again.Result()
			f := r.Findings[0]
			if f.Outcome != outcome || outcome == Unconfirmed && (f.Count != want || r.Verdict() != checker.Undecided) {
				t.Errorf("%s, %s: %s, %+v, %s", name, when, f.Outcome, f.Count, r.Verdict())
			}
			var page strings.Builder
			if err := r.Page().WriteMarkdown(&page); err != nil {
				t.Fatal(err)
			}
			if is := strings.Contains(page.String(), "Unconfirmed: shows in 2 of 3 runs (95 % interval 0.21–0.94)"); is != (want.Shown > 0) {
				t.Errorf("%s, %s: the page is\n%s", name, when, page.String())
			}
		}
		check("at first", Unconfirmed)
		investigateOpen(t, folder, &fakeRuns{shows: func(int, runs.Options) (bool, bool, error) { return false, false, errInterrupt }}, time.Hour)
		check("interrupted again", Unconfirmed)
		investigateOpen(t, folder, &fakeRuns{shows: func(int, runs.Options) (bool, bool, error) { return false, false, nil }}, time.Hour)
		outcome := NotSeenAgain
		if want.Shown > 0 {
			outcome = Unconfirmed
		}
		check("rerun to the end", outcome)
	}
}

// TestControlOfCause: a control does not make the difference if the cause of the finding violates another
// property in it.
func TestControlOfCause(t *testing.T) {
	const cause = checker.CauseUnexplained
	for violated, want := range map[checker.Property]bool{checker.NoLostUpdate: false, checker.FencingOrder: true} {
		folder := withStuck(t)
		test := func(_ context.Context, o runs.Options, _ <-chan struct{}, _ runs.Progress) (runs.Outcome, error) {
			results := checker.Results{Verdict: checker.Violation}
			for _, p := range checker.Properties() {
				f := checker.Finding{Property: p, Verdict: checker.Valid}
				if p == violated {
					f.Verdict, f.Violations = checker.Violation, []checker.Incident{{Cause: cause}}
				}
				results.Findings = append(results.Findings, f)
			}
			return runs.Outcome{Judgement: runs.Judgement{Folder: t.TempDir(), History: &history.History{}, Results: results}}, nil
		}
		s := Signature{Property: checker.NoStaleWrite, Cause: cause}
		i := investigationOf(folder, nil, record{Name: "a", Signature: s, Reduced: folder.attempts[0].Trial})
		i.search.machine.test = test
		file, err := folder.Plan.reproduction("a", i.record.Reduced, s, "so")
		if err != nil {
			t.Fatal(err)
		}
		if expect, err := i.preventsFinding(t.Context(), file, folder.Plan.controls(i.record.Reduced, file)[0], minControl); (expect != nil) != want || err != nil {
			t.Errorf("%s is violated: a control %v, want %v: %v", violated, expect, want, err)
		}
	}
}

// investigationOf is an investigation with fake runs.
func investigationOf(folder *Folder, f *fakeRuns, r record) *investigation {
	m := Machine{Parallel: 1, Progress: runs.Silent{}, Budget: time.Hour}
	if f != nil {
		m.test = f.run
	}
	s := newSearch(folder, m, nil)
	return &investigation{search: s, record: &r, end: s.end, runs: make(map[string]runs.Outcome)}
}

// TestTransitions: from each state, the results of its runs lead to exactly one other state. A stop is a
// value that cannot be mistaken for a count of zero.
func TestTransitions(t *testing.T) {
	stuck := Signature{Property: checker.Liveness}
	shows := func(int, runs.Options) (bool, bool, error) { return true, false, nil }
	never := func(int, runs.Options) (bool, bool, error) { return false, false, nil }
	seldom := func(n int, _ runs.Options) (bool, bool, error) { return n == 0, false, nil }
	busy := func(int, runs.Options) (bool, bool, error) { return false, true, nil }
	stops := func(int, runs.Options) (bool, bool, error) { return false, false, errInterrupt }
	fails := func(int, runs.Options) (bool, bool, error) { return false, false, errors.New("no engine") }
	withFault := func(_ int, o runs.Options) (bool, bool, error) { return len(o.Schedule.Steps) > 0, false, nil }
	seen := withStuck(t).attempts[0].Trial
	known := record{Name: "a", Signature: stuck, What: "stuck", Source: 1, Rerun: []int{1}, Original: seen, OriginalRuns: Count{6, 6}, Reduced: seen}
	with := func(change func(*record)) record {
		r := known
		change(&r)
		return r
	}
	rerun := with(func(r *record) { r.OriginalRuns = Count{0, 6} })
	few := with(func(r *record) { r.OriginalRuns = Count{1, 6} })
	unmeasured := with(func(r *record) { r.Reduced.Workers = 2 })
	impossible := with(func(r *record) { r.Reduced.Steps = []Step{{Fault: history.Partition, Target: "leader", Length: 1}} })
	for _, c := range []struct {
		name   string
		state  State
		record record
		shows  func(int, runs.Options) (bool, bool, error)
		next   State
		stop   StopKind
	}{
		{"reruns show it", confirming, record{Signature: stuck}, shows, confirming, ""},
		{"reruns do not", confirming, record{Signature: stuck}, never, confirming, ""},
		{"reruns are interrupted", confirming, record{Signature: stuck}, stops, "", interrupted},
		{"reruns fail", confirming, record{Signature: stuck}, fails, "", cannotRun},
		{"the machine is busy", confirming, record{Signature: stuck}, busy, "", tooBusy},
		{"all were rerun and none showed it", confirming, rerun, nil, notSeenAgain, ""},
		{"all were rerun and few runs showed it", confirming, few, nil, Waiting, ""},
		{"all were rerun and showed it", confirming, known, nil, reducing, ""},
		{"reduced", reducing, known, withFault, settling, ""},
		{"interrupted while reducing", reducing, known, stops, "", interrupted},
		{"another form may run", reducing, known, fails, settling, cannotRun},
		{"busy while reducing", reducing, known, busy, settling, tooBusy},
		{"settled", settling, known, shows, measuring, ""},
		{"measured", measuring, known, shows, controlling, ""},
		{"measuring fails", measuring, known, fails, "", cannotRun},
		{"busy while measuring", measuring, with(func(r *record) { r.ReducedRuns = Count{6, 6} }), busy, controlling, tooBusy},
		{"seldom, and measured", measuring, known, seldom, controlling, ""},
		{"a control", controlling, known, withFault, done, ""},
		{"no control", controlling, known, shows, done, ""},
		{"busy control", controlling, known, busy, done, tooBusy},
		{"interrupted control", controlling, known, stops, "", interrupted},
		{"no form is known to show it", controlling, unmeasured, shows, "", tooBusy},
		{"a form that the lock cannot run", controlling, with(func(r *record) { r.Reduced, r.Original = impossible.Reduced, impossible.Reduced }), shows, "", unsupported},
	} {
		f := &fakeRuns{t: t, shows: c.shows}
		i := investigationOf(withStuck(t), f, c.record)
		i.kept = []Trial{c.record.Reduced}
		next, err := transitions()[c.state](i, t.Context())
		var stop StopKind
		if s := stopOf(err); s != nil {
			stop = s.Kind
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.stop == tooBusy && (i.record.ReducedRuns != c.record.ReducedRuns || i.record.OriginalRuns != c.record.OriginalRuns) {
			t.Errorf("%s: runs of a series that was not decided are counted: %+v, %+v", c.name, i.record.OriginalRuns, i.record.ReducedRuns)
		}
		if next != c.next || stop != c.stop {
			t.Errorf("%s: %s leads to %q, stopped %q; want %q, %q: %v", c.name, c.state, next, stop, c.next, c.stop, err)
		}
	}
}

// TestUndecidedConfirmation: the confirmation was interrupted, failed, or is not supported by the lock. The
// folder, the page and the verdict say so, and do not call the finding not seen again.
func TestUndecidedConfirmation(t *testing.T) {
	for _, c := range []struct {
		kind  StopKind
		after int // number of runs before the stop
		by    error
	}{{interrupted, 3, errInterrupt}, {cannotRun, 0, errors.New("no engine")}, {unsupported, 0, nil}} {
		folder := withStuck(t)
		if c.kind == unsupported {
			folder.attempts[0].Finds[0].Trial.Steps = []Step{{Fault: history.Partition, Target: "leader", Length: 1}}
		}
		investigateOpen(t, folder, &fakeRuns{shows: func(n int, _ runs.Options) (bool, bool, error) { return false, false, errIf(n >= c.after, c.by) }}, time.Hour)
		again, err := Open(folder.Path)
		if err != nil {
			t.Fatal(err)
		}
		r := again.Result()
		f := r.Findings[0]
		if f.State != confirming || f.Stopped == nil || f.Stopped.Kind != c.kind || f.Outcome != Unconfirmed || r.Verdict() != checker.Undecided {
			t.Errorf("%s: %s, %+v, %s, %s", c.kind, f.State, f.Stopped, f.Outcome, r.Verdict())
		}
		if len(again.open(false)) != 1 {
			t.Errorf("%s: it is not taken up again", c.kind)
		}
		var page strings.Builder
		if err := r.Page().WriteMarkdown(&page); err != nil || !strings.Contains(page.String(), "Unconfirmed") || strings.Contains(page.String(), "Not seen again") {
			t.Errorf("%s: %v: %s", c.kind, err, page.String())
		}
	}
}

// stoppedBy is the reason why an investigation stopped; "" if it did not stop.
func (r record) stoppedBy() string {
	if r.Stopped == nil {
		return ""
	}
	return r.Stopped.sentence()
}
