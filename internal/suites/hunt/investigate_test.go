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
	"lockcheck/reports"
)

// fakeRuns makes runs of which each tells by itself what it gives.
type fakeRuns struct {
	t     *testing.T
	given []runs.Options
	// shows says of the n-th run, from 0, whether it is stuck, and tells whether the machine was too busy.
	shows func(n int, o runs.Options) (stuck, delayed bool, err error)
}

func (f *fakeRuns) run(_ context.Context, o runs.Options, _ <-chan struct{}, _ runs.Progress) (runs.Outcome, error) {
	f.given = append(f.given, o)
	stuck, delayed, err := f.shows(len(f.given)-1, o)
	if err != nil {
		if errors.Is(err, errInterrupted) {
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

// pursued goes into a find that one trial showed.
func pursued(t *testing.T, f *fakeRuns) (*Folder, bool) {
	t.Helper()
	folder := withStuck(t)
	return folder, goInto(t, folder, f, time.Hour)
}

// goInto goes into what is open, and tells whether it was interrupted.
func goInto(t *testing.T, folder *Folder, f *fakeRuns, budget time.Duration) bool {
	t.Helper()
	f.t = t
	h := newHunter(folder, Machine{Parallel: 1, Progress: runs.Silent{}, Budget: budget, test: f.run}, nil)
	if err := h.pursueAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h.interrupted
}

// withStuck is a hunt of which one trial was stuck.
func withStuck(t *testing.T) *Folder {
	t.Helper()
	folder, err := Create(filepath.Join(t.TempDir(), "hunt"), ready(t, "memory"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder.Path, runsFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	trial := Trial{Workers: 3, Section: 0.6, Steps: []Step{{Fault: history.Pause, Target: "waiter", When: "holding", Length: 1.3}}}
	seen := sighted{Signature{Property: checker.Liveness}, "stuck", trial}
	if err := folder.add(entry{Tried: &tried{Trial: trial, Finds: []sighted{seen}}}); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestPursueFailing: that no runs could be made is told, and is no evidence.
func TestPursueFailing(t *testing.T) {
	for _, c := range []struct {
		name             string
		first, confirmed int // the first run that fails, and how many are told of
	}{
		{"from the beginning", 0, 0}, {"halfway", 3, 0}, {"once it is confirmed", toConfirm, toConfirm},
	} {
		folder, _ := pursued(t, &fakeRuns{shows: func(n int, _ runs.Options) (bool, bool, error) {
			if n >= c.first {
				return false, false, errors.New("no engine")
			}
			return true, false, nil
		}})
		f := folder.last(Signature{Property: checker.Liveness})
		if f == nil || !strings.Contains(f.Unfinished, "no engine") || f.OriginalRuns.Made != c.confirmed || f.File != "" {
			t.Errorf("%s: %s; %+v, %q", c.name, f.Unfinished, f.OriginalRuns, f.File)
		}
		if len(folder.open(false)) != 1 {
			t.Errorf("%s: it is not gone into again", c.name)
		}
	}
}

// TestPursueBusy: runs in which the fault may have missed do not count against a find.
func TestPursueBusy(t *testing.T) {
	folder, _ := pursued(t, &fakeRuns{shows: func(n int, o runs.Options) (bool, bool, error) {
		late := n%3 == 1
		return len(o.Schedule.Steps) > 0 && !late, late, nil
	}})
	if f := folder.finds[0]; f.OriginalRuns != (confirmed{toConfirm, toConfirm}) || f.Control == "" {
		t.Errorf("%+v of the first form, control %q, %s", f.OriginalRuns, f.Control, f.Unfinished)
	}
}

// TestPursueLuck: a small form that was seen by luck gives way to what was found, and none that is not
// seen has a control.
func TestPursueLuck(t *testing.T) {
	small := func(o runs.Options) bool { return o.Concurrency == fewest }
	chosen, _ := confirmed{toConfirm, toConfirm}.again() // runs
	for _, c := range []struct {
		name       string
		atTheEnd   bool // the first form still shows it
		workers    int
		controlled bool
	}{
		{"the first form is left", true, 3, true}, {"nothing is left", false, fewest, false},
	} {
		smaller, first := 0, ""
		folder, _ := pursued(t, &fakeRuns{shows: func(n int, o runs.Options) (bool, bool, error) {
			switch {
			case len(o.Schedule.Steps) == 0:
				return false, false, nil
			case small(o):
				first = cmp.Or(first, o.Parameters["hunt"])
				if o.Parameters["hunt"] != first {
					return false, false, nil // cannot be made smaller still
				}
				smaller++
				return smaller <= chosen+toConfirm, false, nil // also when it is settled
			}
			return n < toConfirm || c.atTheEnd && smaller > 0, false, nil
		}})
		f := folder.finds[0]
		if f.Shrunk.Workers != c.workers || (f.Control != "") != c.controlled || f.ShrunkRuns.Made != toConfirm {
			t.Errorf("%s: %s, %+v, control %q, %s", c.name, f.Shrunk, f.ShrunkRuns, f.Control, f.Unfinished)
		}
	}
}

// TestPursueWithoutTime: a hunt that goes on for too short a time keeps what it had.
func TestPursueWithoutTime(t *testing.T) {
	folder, _ := pursued(t, &fakeRuns{shows: func(_ int, o runs.Options) (bool, bool, error) {
		return len(o.Schedule.Steps) > 0, false, nil
	}})
	whole := folder.finds[0]
	whole.Unfinished = "no time" // so that it is gone on with
	if err := folder.add(entry{Found: &whole}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder.Path, whole.File)
	written, err := os.ReadFile(file)
	if err != nil || whole.Control == "" {
		t.Fatalf("control %q: %v", whole.Control, err)
	}
	goInto(t, folder, &fakeRuns{}, 2*time.Second)
	now, err := os.ReadFile(file)
	if f := folder.finds[0]; err != nil || f.Control != whole.Control || f.ShrunkRuns != whole.ShrunkRuns || string(now) != string(written) {
		t.Errorf("%+v, control %q: %v", f.ShrunkRuns, f.Control, err)
	}
}

// TestPursueInterrupted: what was confirmed is still known when the hunt goes on.
func TestPursueInterrupted(t *testing.T) {
	folder, interrupted := pursued(t, &fakeRuns{shows: func(n int, _ runs.Options) (bool, bool, error) {
		if n > toConfirm {
			return false, false, errInterrupted
		}
		return true, false, nil
	}})
	again, err := Open(folder.Path)
	if err != nil {
		t.Fatal(err)
	}
	f := again.last(Signature{Property: checker.Liveness})
	if !interrupted || f == nil || f.OriginalRuns != (confirmed{toConfirm, toConfirm}) || f.Unfinished == "" || len(again.open(false)) != 1 {
		t.Errorf("interrupted %v: %#v", interrupted, f)
	}
}

// TestPursueUnable: of two trials that showed a find seldom one cannot be made again. What is known of
// the other is kept, and that one is not tried without end.
func TestPursueUnable(t *testing.T) {
	folder := withStuck(t)
	other := folder.tried[0]
	other.Trial.Workers = 5
	other.Finds = []sighted{{other.Finds[0].Signature, "stuck", other.Trial}}
	if err := folder.add(entry{Tried: &other}); err != nil {
		t.Fatal(err)
	}
	unable := 0
	goInto(t, folder, &fakeRuns{shows: func(n int, o runs.Options) (bool, bool, error) {
		if o.Concurrency == 5 {
			if unable++; unable > toConfirm {
				t.Fatal("it is tried again")
			}
			return false, false, errors.New("no engine")
		}
		return n%2 == 0, false, nil
	}}, time.Hour)
	if f := folder.finds[0]; f.OriginalRuns != (confirmed{toConfirm / 2, toConfirm}) || !f.Waits || len(f.GoneInto) != 2 {
		t.Errorf("%+v, waits %v, gone into %v, %q", f.OriginalRuns, f.Waits, f.GoneInto, f.Unfinished)
	}
}

// TestPursueTooBusy: where too few runs count, nothing is concluded from them, and there is more to do.
func TestPursueTooBusy(t *testing.T) {
	for _, c := range []struct {
		name  string
		shows func(n int, o runs.Options) (stuck, delayed bool, err error)
		want  func(f found, h reports.Hunt) bool
	}{
		{
			"one run did not show it", func(n int, _ runs.Options) (bool, bool, error) { return false, n > 0, nil },
			func(f found, h reports.Hunt) bool {
				return f.OriginalRuns == confirmed{} && f.Unfinished != "" && h.Verdict() == checker.Undecided
			},
		},
		{
			"one of two showed it", func(n int, _ runs.Options) (bool, bool, error) { return n == 0, n > 1, nil },
			func(f found, h reports.Hunt) bool {
				return f.OriginalRuns == confirmed{} && f.Unfinished != "" && h.Verdict() == checker.Undecided
			},
		},
		{
			"no simpler form could be tried", func(n int, _ runs.Options) (bool, bool, error) { return true, n >= toConfirm, nil },
			func(f found, _ reports.Hunt) bool {
				return f.OriginalRuns == confirmed{toConfirm, toConfirm} && strings.Contains(f.Unfinished, "not made smaller") && f.Shrunk.Workers == 3
			},
		},
		{
			"one of them could not, nor the control", func(_ int, o runs.Options) (bool, bool, error) { return true, len(o.Schedule.Steps) == 0, nil },
			func(f found, _ reports.Hunt) bool {
				return strings.Contains(f.Unfinished, "not made smaller") && f.Shrunk.Workers == fewest && len(f.Shrunk.Steps) == 1 && f.File != "" && f.Control == ""
			},
		},
	} {
		folder, _ := pursued(t, &fakeRuns{shows: c.shows})
		if f := folder.finds[0]; !c.want(f, folder.Hunt()) {
			t.Errorf("%s: %+v, then %+v of %s, control %q: %q", c.name, f.OriginalRuns, f.ShrunkRuns, f.Shrunk, f.Control, f.Unfinished)
		}
		if len(folder.open(false)) != 1 {
			t.Errorf("%s: it is not gone into again", c.name)
		}
	}
}

// TestPursueKeeps: whatever ends a hunt that goes on, the form that is written down stays with what is known of
// it, and one that was on the way is gone on with.
func TestPursueKeeps(t *testing.T) {
	shows := func(_ int, o runs.Options) (bool, bool, error) { return len(o.Schedule.Steps) > 0, false, nil }
	for name, then := range map[string]func(n int, o runs.Options) (bool, bool, error){
		"interrupted at once":   func(int, runs.Options) (bool, bool, error) { return false, false, errInterrupted },
		"interrupted after one": func(n int, _ runs.Options) (bool, bool, error) { return false, false, errIf(n > 0, errInterrupted) },
		"no engine":             func(int, runs.Options) (bool, bool, error) { return false, false, errors.New("no engine") },
	} {
		folder, _ := pursued(t, &fakeRuns{shows: shows})
		whole := folder.finds[0]
		whole.Unfinished = "no time"
		if err := folder.add(entry{Found: &whole}); err != nil {
			t.Fatal(err)
		}
		goInto(t, folder, &fakeRuns{shows: then}, time.Hour)
		if f := folder.finds[0]; f.Control != whole.Control || f.ShrunkRuns != whole.ShrunkRuns || f.Shrunk.key() != whole.Shrunk.key() || f.Control == "" {
			t.Errorf("%s: %+v of %s, control %q", name, f.ShrunkRuns, f.Shrunk, f.Control)
		}
	}
	folder, interrupted := pursued(t, &fakeRuns{shows: func(n int, o runs.Options) (bool, bool, error) {
		return len(o.Schedule.Steps) > 0, false, errIf(n > 20, errInterrupted)
	}})
	if f := folder.finds[0]; !interrupted || f.Shrunk.key() == f.Original.key() || f.ShrunkRuns.Made > 0 {
		t.Errorf("interrupted %v on the way: %s, %+v", interrupted, f.Shrunk, f.ShrunkRuns)
	}
}

func errIf(is bool, err error) error {
	if is {
		return err
	}
	return nil
}

// TestMeasure: how often a form shows the find is not replaced by fewer runs of another one.
func TestMeasure(t *testing.T) {
	folder := withStuck(t)
	known := found{Signature: Signature{Property: checker.Liveness}, Shrunk: Trial{Workers: 2, Section: shortest}, ShrunkRuns: confirmed{toConfirm, toConfirm}}
	f := &fakeRuns{t: t, shows: func(n int, _ runs.Options) (bool, bool, error) { return false, n > 0, nil }}
	h := newHunter(folder, Machine{Parallel: 1, Progress: runs.Silent{}, Budget: time.Hour, test: f.run}, nil)
	p := &pursuit{hunter: h, found: &known, kept: make(map[string]runs.Outcome), measured: make(map[string]bool), end: h.end}
	if err := p.measure(t.Context(), folder.tried[0].Trial); err != errBusy || known.ShrunkRuns != (confirmed{toConfirm, toConfirm}) || known.Shrunk.Workers != 2 {
		t.Errorf("%v: %+v of %s", err, known.ShrunkRuns, known.Shrunk)
	}
}

// TestUnfinished: a find of which something is still to be done says so.
func TestUnfinished(t *testing.T) {
	stuck := Signature{Property: checker.Liveness}
	lost := Signature{Property: checker.NoLostUpdate, Cause: checker.CauseUnexplained}
	twice := Signature{Property: checker.MutualExclusion, Cause: checker.CauseTwice}
	seen := func(s Signature) entry { return entry{Tried: &tried{Finds: []sighted{{Signature: s}}}} }
	for _, c := range []struct {
		name    string
		entries []entry
		want    string // in it
	}{
		{"not seen again", []entry{seen(stuck), {Found: &found{Signature: stuck, GoneInto: []int{1}, OriginalRuns: confirmed{0, 6}}}}, ""},
		{"seen by another trial", []entry{seen(stuck), seen(stuck), {Found: &found{Signature: stuck, GoneInto: []int{1}, OriginalRuns: confirmed{0, 6}}}}, "another trial"},
		{"seen again", []entry{seen(stuck), seen(stuck), {Found: &found{Signature: stuck, GoneInto: []int{1}, OriginalRuns: confirmed{6, 6}}}}, ""},
		{"shows seldom", []entry{seen(stuck), {Found: &found{Signature: stuck, GoneInto: []int{1}, OriginalRuns: confirmed{3, 6}, Waits: true}}}, "not made smaller"},
		{
			"shows seldom, and is explained", []entry{
				seen(lost), {Found: &found{Signature: lost, GoneInto: []int{1}, OriginalRuns: confirmed{3, 6}, Waits: true}},
				{Found: &found{Signature: twice, OriginalRuns: confirmed{6, 6}, ShrunkRuns: confirmed{6, 6}}},
			}, "needs no fault",
		},
	} {
		f := newFolder("", ready(t, "memory"), nil)
		for _, e := range c.entries {
			f.know(e)
		}
		if got := f.unfinished(f.finds[0]); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestControlOfCause: a control in which the cause of a find violates another property makes no difference.
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
		h := newHunter(folder, Machine{Parallel: 1, Progress: runs.Silent{}, Budget: time.Hour, test: test}, nil)
		s := Signature{Property: checker.NoStaleWrite, Cause: cause}
		p := &pursuit{hunter: h, found: &found{Name: "a", Signature: s, Shrunk: folder.tried[0].Trial}, end: h.end}
		r, err := h.Plan.reproduction("a", p.found.Shrunk, s, "so")
		if err != nil {
			t.Fatal(err)
		}
		if _, is, err := p.makesDifference(t.Context(), r, h.Plan.controls(p.found.Shrunk, r)[0], atLeast); is != want || err != nil {
			t.Errorf("%s is violated: a control %v, want %v: %v", violated, is, want, err)
		}
	}
}
