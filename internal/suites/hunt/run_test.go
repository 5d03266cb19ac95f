package hunt

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/runs"
)

// hunted makes the given number of trials of a lock and investigates the findings, within the budget.
func hunted(t *testing.T, lock string, trials int, budget time.Duration) *Folder {
	t.Helper()
	folder, err := Create(filepath.Join(t.TempDir(), "hunt"), ready(t, lock))
	if err != nil {
		t.Fatal(err)
	}
	m := Machine{Machine: runs.Machine{Binary: clustertest.Binary(t)}, Parallel: 8, Progress: runs.Silent{}, Budget: budget, Trials: trials}
	if interrupted, err := folder.Run(t.Context(), m, nil); interrupted || err != nil {
		t.Fatalf("%v, %v", interrupted, err)
	}
	return folder
}

// TestHuntRight: a correct lock is not accused, whatever faults are injected.
func TestHuntRight(t *testing.T) {
	clustertest.Engine(t, clustertest.Rest)
	t.Parallel()
	const trials = 16
	folder := hunted(t, "memory", trials, 20*time.Minute) // enough that no trial is skipped for lack of time
	h := folder.Result()
	if h.Verdict() != checker.Valid || len(h.Findings) > 0 {
		t.Errorf("%s: %+v", h.Verdict(), h.Findings)
	}
	if made := h.Arms[0].Trials + h.Arms[1].Trials; made != trials || h.Arms[1].Trials != trials/4 || len(h.Met) < 20 {
		t.Errorf("%d trials, %d cells: %+v", made, len(h.Met), h.Arms)
	}
	again, err := Open(folder.Path)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.attempts) != trials || len(again.guide.cells) != len(folder.guide.cells) {
		t.Errorf("read again: %d trials, %d cells", len(again.attempts), len(again.guide.cells))
	}
	if err := folder.WriteReports(h); err != nil {
		t.Error(err)
	}
}

// TestFolder: a hunt does not overwrite another hunt, and a folder without a hunt is refused.
func TestFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hunt")
	if _, err := Open(path); err == nil {
		t.Error("a hunt that is not there was opened")
	}
	if _, err := Create(path, ready(t, "memory")); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, ready(t, "memory")); err == nil {
		t.Error("a hunt was overwritten")
	}
	if f, err := Open(path); err != nil || f.Plan.Lock != "memory" || len(f.open(false)) > 0 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestReplaces: a resumed hunt that runs out of time forgets nothing.
func TestReplaces(t *testing.T) {
	unfinished := record{OriginalRuns: Count{Shown: 4, Made: 6}, File: "finds/a.yaml", Stopped: &Stop{Kind: outOfTime}}
	seldom := record{OriginalRuns: Count{Shown: 1, Made: 6}, State: Waiting}
	whole := record{OriginalRuns: Count{Shown: 4, Made: 6}, File: "finds/a.yaml", Control: "c"}
	for _, c := range []struct {
		name string
		now  record
		last *record
		want bool
	}{
		{"new", record{}, nil, true},
		{"not seen again, then again", record{OriginalRuns: Count{Shown: 1, Made: 6}}, &record{OriginalRuns: Count{Made: 6}}, true},
		{"no time at all", record{Stopped: &Stop{Kind: outOfTime}}, &unfinished, false},
		{"to the end", whole, &unfinished, true},
		{"after waiting", record{OriginalRuns: Count{Shown: 1, Made: 6}, ReducedRuns: Count{Shown: 1, Made: 6}}, &seldom, true},
	} {
		if got := c.now.replaces(c.last); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestUseless: a hunt ends if no trial succeeds, and continues if any trial does.
func TestUseless(t *testing.T) {
	for _, c := range []struct {
		failed, succeeded int
		ends              bool
	}{{0, 0, false}, {maxFailed - 1, 0, false}, {maxFailed, 0, true}, {maxFailed, 1, false}, {0, maxFailed, false}} {
		s := &search{folder: new(Folder)}
		s.folder.attempts = append(slices.Repeat([]attempt{{Failed: "no image"}}, c.failed), slices.Repeat([]attempt{{}}, c.succeeded)...)
		if err := s.allFail(); (err != nil) != c.ends {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestOpen: a finding is investigated once, with the trial that has the fewest faults. Another trial is rerun
// if that trial did not show the finding again.
func TestOpen(t *testing.T) {
	plan := ready(t, "memory")
	s := Signature{Property: checker.Liveness}
	with := func(s Signature) entry { return entry{Tried: &attempt{Finds: []sighting{{Signature: s}}}} }
	for _, c := range []struct {
		name    string
		entries []entry
		want    []int // numbers of the trials to rerun
	}{
		{"nothing", nil, nil},
		{"seldom, and no other", []entry{with(s), {Found: &record{Signature: s, Source: 1, Rerun: []int{1}, OriginalRuns: Count{1, 6}, State: Waiting}}}, nil},
		{"seldom, and another", []entry{with(s), {Found: &record{Signature: s, Source: 1, Rerun: []int{1}, OriginalRuns: Count{1, 6}, State: Waiting}}, with(s)}, []int{2}},
		{"new", []entry{with(s)}, []int{1}},
		{"twice the same", []entry{with(s), with(s)}, []int{1}},
		{"confirmed", []entry{with(s), with(s), {Found: &record{Signature: s, Source: 1, Rerun: []int{1}, OriginalRuns: Count{3, 6}}}}, nil},
		{"not seen again", []entry{with(s), with(s), {Found: &record{Signature: s, Source: 1, Rerun: []int{1}, OriginalRuns: Count{0, 6}, State: notSeenAgain}}}, []int{2}},
		{"nor any other", []entry{with(s), with(s), with(s), with(s), {Found: &record{Signature: s, Source: 1, Rerun: []int{1, 2, 3}, OriginalRuns: Count{0, 6}, State: notSeenAgain}}}, nil},
		{"with fewer faults later", []entry{{Tried: &attempt{Finds: []sighting{{Signature: s, Trial: Trial{Steps: make([]Step, 2)}}}}}, with(s)}, []int{2}},
		{"no time left", []entry{with(s), with(s), {Found: &record{Signature: s, Source: 1, Rerun: []int{1}, OriginalRuns: Count{6, 6}, Stopped: &Stop{Kind: outOfTime}}}}, []int{2}},
		{"no time", []entry{with(s), with(s), {Found: &record{Signature: s, Source: 1, Rerun: []int{1}, Stopped: &Stop{Kind: outOfTime}}}}, []int{1}},
		{"explained", []entry{
			{Tried: &attempt{Finds: []sighting{{Signature: Signature{Property: checker.MutualExclusion, Cause: checker.CauseTwice}}}}},
			{Found: &record{Signature: Signature{Property: checker.MutualExclusion, Cause: checker.CauseUnexplained}, ReducedRuns: Count{6, 6}}},
		}, nil},
		{"second opinion", []entry{with(Signature{Property: checker.Linearizability})}, []int{1}},
		{
			"second opinion next to one not seen again",
			[]entry{with(Signature{Property: checker.Linearizability}), with(s), {Found: &record{Signature: s, Source: 2, Rerun: []int{2}, OriginalRuns: Count{0, 6}, State: notSeenAgain}}}, []int{1},
		},
		{"second opinion next to another", []entry{with(Signature{Property: checker.Linearizability}), with(s)}, []int{2}},
	} {
		f := newFolder("", plan, nil)
		for _, e := range c.entries {
			f.apply(e)
		}
		var got []int
		for _, o := range f.open(true) {
			got = append(got, f.sightings(o)[0].Source)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		seldom := slices.ContainsFunc(f.records, func(f record) bool { return f.State == Waiting })
		if seldom && len(f.open(false)) == 0 {
			t.Errorf("%s: it is not gone into when nothing is waited for", c.name)
		}
	}
}

// TestTrialsFirst: the share of a hunt that findings may take, while there is time for trials and after it.
func TestTrialsFirst(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name      string
		pursued   time.Duration
		searchEnd time.Time
		only      bool
		want      bool
	}{
		{"little was spent on finds", time.Minute, now.Add(time.Hour), false, false},
		{"most was spent on finds", 8 * time.Minute, now.Add(time.Hour), false, true},
		{"no more trials", 8 * time.Minute, now.Add(-time.Second), false, false},
		{"trials only", 0, now.Add(-time.Second), true, true},
	} {
		s := search{began: now.Add(-10 * time.Minute), searchEnd: c.searchEnd, investigated: c.pursued, machine: Machine{TrialsOnly: c.only}}
		if got := s.trialsFirst(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
