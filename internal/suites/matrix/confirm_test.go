package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
)

// TestConfirm: a violated property stays violated, however seldom. What the machine may have caused must
// recur in most of the rounds.
func TestConfirm(t *testing.T) {
	round := func(ofRuns, slow, lost checker.Verdict) Cell {
		return Cell{
			OfRuns: ofRuns, Verdict: checker.MostTelling([]checker.Verdict{ofRuns, slow, lost}),
			Thresholds: []ThresholdResult{{Name: "wait_p99", Verdict: slow}, {Name: "lost", Counts: checker.NoLostUpdate, Verdict: lost}},
			Runs:       []Run{{Verdict: ofRuns}},
		}
	}
	const v, x, u, b = checker.Valid, checker.Violation, checker.Undecided, checker.Broken
	good, bad, slow, lost := round(v, v, v), round(x, v, v), round(v, x, v), round(v, v, x)
	lacking := func(c Cell) Cell {
		c.Missing = 1
		return c
	}
	unjudged := lacking(good)
	unjudged.Thresholds = nil
	for _, c := range []struct {
		name  string
		first Cell
		again []Cell
		asked int
		want  checker.Verdict
	}{
		{"violated once", bad, []Cell{good, good, good}, 3, x},
		{"violated in the last round", round(u, v, v), []Cell{good, good, bad}, 3, x},
		{"a count missed once", lost, []Cell{good, good, good}, 3, x},
		{"a count missed in the last round", slow, []Cell{good, good, lost}, 3, x},
		{"slow once", slow, []Cell{good, good, good}, 3, v},
		{"slow in one of three again", slow, []Cell{slow, good, good}, 3, v},
		{"slow in two of three again", slow, []Cell{slow, good, slow}, 3, x},
		{"slow in one of two again", slow, []Cell{slow, good}, 2, v},
		{"slow, and made again once", slow, []Cell{slow}, 1, x},
		{"slow, and rounds missing", slow, []Cell{good}, 2, x},
		{"slow, and never made again", slow, nil, 2, x},
		{"violated in a round that lacks a run", round(u, v, v), []Cell{good, lacking(bad)}, 2, x},
		{"slow, and a round lacks a run", slow, []Cell{good, lacking(good)}, 2, x},
		{"undecided once", round(u, v, v), []Cell{good, good}, 2, v},
		{"undecided again", round(u, v, v), []Cell{round(b, v, v), round(u, v, v), good}, 3, u},
		{"broken, and never made again", round(b, v, v), nil, 1, b},
		{"valid, and violated in a round", good, []Cell{good, bad}, 2, x},
		{"undecided, lacking a run, and good again", lacking(round(u, v, v)), []Cell{good, good}, 2, u},
		{"undecided, and a round lacks the run that a threshold takes", round(u, v, v), []Cell{unjudged}, 1, u},
	} {
		cell := c.first
		cell.Thresholds = slices.Clone(cell.Thresholds)
		confirmCell(&cell, c.again, c.asked)
		if cell.Verdict != c.want || len(cell.Rounds) != 1+len(c.again) || len(cell.Runs) != 1+len(c.again) {
			t.Errorf("%s: %s of %v and %d runs, want %s", c.name, cell.Verdict, cell.Rounds, len(cell.Runs), c.want)
		}
	}
}

// TestConfirmedValue: a threshold shows a value that belongs to its verdict.
func TestConfirmedValue(t *testing.T) {
	round := func(value string, v checker.Verdict) Cell {
		return Cell{OfRuns: checker.Valid, Verdict: v, Runs: make([]Run, 1), Thresholds: []ThresholdResult{{Name: "lost", Value: value, Verdict: v}}}
	}
	for _, c := range []struct {
		name         string
		first, again Cell
		want         string
	}{
		{"missed again", round("2", checker.Violation), round("3", checker.Violation), "2"},
		{"missed in the round alone", round("0", checker.Valid), round("3", checker.Violation), "3"},
		{"known in the round alone", round("no data", checker.Undecided), round("0", checker.Valid), "0"},
	} {
		confirmCell(&c.first, []Cell{c.again}, 1)
		if got := c.first.Thresholds[0].Value; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// fakeRuns makes runs whose verdict depends on their options, and records their order.
type fakeRuns struct {
	t       *testing.T
	verdict func(o runs.Options) checker.Verdict
	mu      sync.Mutex
	made    []string
}

func (f *fakeRuns) machine() Machine {
	return Machine{Parallel: 1, Progress: logProgress{f.t}, test: f.test}
}

func (f *fakeRuns) test(_ context.Context, o runs.Options, _ <-chan struct{}, _ runs.Progress) (runs.Outcome, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made = append(f.made, fmt.Sprintf("%s/%d", o.Nemesis, o.Seed))
	folder := filepath.Join(o.Store, fmt.Sprint(len(f.made)))
	results := checker.Results{Schema: checker.Schema, Verdict: f.verdict(o), Sentence: "So it was."}
	if results.Verdict == checker.Violation {
		results.Findings = []checker.Finding{{Property: checker.NoLostUpdate, Verdict: checker.Violation, Required: true}}
	}
	h := history.History{Header: history.Header{Lock: o.Lock, Seed: o.Seed, Command: o.Command}}
	judgement := runs.Judgement{Folder: folder, History: &h, Results: results}
	err := os.MkdirAll(folder, 0o755)
	if err == nil {
		err = errors.Join(judgement.WriteReports(), os.WriteFile(filepath.Join(folder, runs.HistoryFile), nil, 0o644))
	}
	return runs.Outcome{Judgement: judgement}, err
}

const two = "locks: [memory]\nfaults: [none, 'pause:holder']\nguards: [none]\nseeds: [1, 2]\n"

func (f *fakeRuns) run(m Machine, folder *Folder) Comparison {
	f.t.Helper()
	if interrupted, err := folder.Run(f.t.Context(), m, nil); interrupted || err != nil {
		f.t.Fatal(interrupted, err)
	}
	return compared(f.t, folder)
}

// TestConfirmed: all runs of a cell that is not valid are repeated with other seeds, and the report says how
// often they failed again. A resumed comparison does not repeat them once more.
func TestConfirmed(t *testing.T) {
	f := &fakeRuns{t: t, verdict: func(o runs.Options) checker.Verdict {
		if o.Nemesis == "none" || o.Seed != 2 && o.Seed != 5 {
			return checker.Valid
		}
		return checker.Violation
	}}
	folder := newFolder(t, suiteOf(t, two+"confirm: 2\n"), suites.Shard{})
	m := f.run(f.machine(), folder)
	want := []string{"none/1", "pause:holder/1", "none/2", "pause:holder/2", "pause:holder/3", "pause:holder/4", "pause:holder/5", "pause:holder/6"}
	if !slices.Equal(f.made, want) {
		t.Errorf("made %v, want %v", f.made, want)
	}
	cell := m.Cells[1]
	if m.Verdict != checker.Violation || !slices.Equal(cell.Rounds, []checker.Verdict{checker.Violation, checker.Valid, checker.Violation}) || len(cell.Runs) != 6 || len(m.Cells[0].Rounds) != 0 {
		t.Errorf("%s; %+v", m.Verdict, cell)
	}
	if command := cell.Runs[3].Command; command[len(command)-1] != "4" {
		t.Errorf("the run with seed 4 is made again by %q", command)
	}
	if again, err := Open(folder.Path); err != nil {
		t.Error(err)
	} else if f.run(f.machine(), again); len(f.made) != len(want) {
		t.Errorf("made again: %v", f.made[len(want):])
	}
}

// TestConfirmedAfterFailure: violations in a confirmation round stay, even if the run that led to the
// confirmation succeeds when it is repeated.
func TestConfirmedAfterFailure(t *testing.T) {
	failed := false
	f := &fakeRuns{t: t, verdict: func(o runs.Options) checker.Verdict {
		switch {
		case o.Nemesis == "none" || o.Seed == 2 || o.Seed == 3:
			return checker.Valid
		case o.Seed == 4:
			return checker.Violation
		case failed:
			return checker.Valid
		}
		failed = true
		return checker.Broken
	}}
	folder := newFolder(t, suiteOf(t, two+"confirm: 1\n"), suites.Shard{})
	m := f.run(f.machine(), folder)
	before := m.Verdict
	again, err := Open(folder.Path)
	if err != nil {
		t.Fatal(err)
	}
	m = f.run(f.machine(), again)
	if before != checker.Violation || m.Verdict != checker.Violation || len(f.made) != 7 {
		t.Errorf("%s, then %s, of %v", before, m.Verdict, f.made)
	}
	if cell := m.Cells[1]; cell.Pool.Runs != 4 || cell.FirstPool == nil || cell.FirstPool.Runs != 2 || len(samples(cell)) != 2 {
		t.Errorf("%d runs in the pool, %d samples, first: %+v", cell.Pool.Runs, len(samples(cell)), cell.FirstPool)
	}
}

// TestConfirmedInPart: a round that ran out of time before its last run lacks the data for a lower bound.
func TestConfirmedInPart(t *testing.T) {
	f := &fakeRuns{t: t, verdict: func(runs.Options) checker.Verdict { return checker.Undecided }}
	folder := newFolder(t, suiteOf(t, two+"confirm: 1\nthresholds: {lost: 0, min_ops: 5}\n"), suites.Shard{})
	f.run(f.machine(), folder)
	path := folder.file(ledgerFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if err := os.WriteFile(path, bytes.Join(lines[:len(lines)-2], nil), 0o644); err != nil { // the last element is empty
		t.Fatal(err)
	}
	stopped, err := Open(folder.Path)
	if err != nil {
		t.Fatal(err)
	}
	if m := compared(t, stopped); m.Verdict != checker.Violation || len(m.Cells[1].Rounds) != 2 {
		t.Errorf("%s: %+v", m.Verdict, m.Cells[1])
	}
}

// TestUnconfirmed: a cell that there was no time to confirm keeps its verdict and says so.
func TestUnconfirmed(t *testing.T) {
	f := &fakeRuns{t: t, verdict: func(runs.Options) checker.Verdict { return checker.Undecided }}
	folder := newFolder(t, suiteOf(t, two+"confirm: 1\n"), suites.Shard{})
	if interrupted, err := folder.makeRuns(t.Context(), f.machine(), todoOf(t, folder), time.Time{}, nil); interrupted || err != nil {
		t.Fatal(interrupted, err)
	}
	m := compared(t, folder)
	if remarks := m.Cells[0].remarks(); m.Verdict != checker.Undecided || !slices.Equal(remarks, []string{"to be repeated with other seeds, which was not done yet"}) {
		t.Errorf("%s: %q", m.Verdict, remarks)
	}
}

// TestConfirmedByParts: one part makes all runs of a cell and confirms the cell.
func TestConfirmedByParts(t *testing.T) {
	f := &fakeRuns{t: t, verdict: func(runs.Options) checker.Verdict { return checker.Undecided }}
	var parts []*Folder
	for n := 1; n <= 2; n++ {
		part := newFolder(t, suiteOf(t, two+"confirm: 1\n"), suites.Shard{N: n, Of: 2})
		f.run(f.machine(), part)
		parts = append(parts, part)
	}
	whole, err := Merge(t.Context(), filepath.Join(t.TempDir(), "whole"), parts)
	if err != nil {
		t.Fatal(err)
	}
	m := compared(t, whole)
	if len(f.made) != 8 || m.Missing() != 0 || len(m.Cells[0].Rounds) != 2 || len(m.Cells[1].Rounds) != 2 || m.Verdict != checker.Undecided {
		t.Errorf("%d runs, %d missing, %s: %+v", len(f.made), m.Missing(), m.Verdict, m.Cells)
	}
}

// TestExpectedIsNotConfirmed: a cell that is as expected is not repeated.
func TestExpectedIsNotConfirmed(t *testing.T) {
	f := &fakeRuns{t: t, verdict: func(runs.Options) checker.Verdict { return checker.Violation }}
	m := f.run(f.machine(), newFolder(t, suiteOf(t, two+"confirm: 1\nexpected: [{lock: memory, reason: so}]\n"), suites.Shard{}))
	if len(f.made) != 4 || m.Verdict != checker.Valid || m.Cells[0].Verdict != checker.Violation {
		t.Errorf("%d runs, %s", len(f.made), m.Verdict)
	}
}

// TestBudget: a run for which there is no time is undecided and says so. It is made when the comparison is
// resumed, and the run of another part replaces it.
func TestBudget(t *testing.T) {
	f := &fakeRuns{t: t, verdict: func(runs.Options) checker.Verdict { return checker.Valid }}
	folder := newFolder(t, suiteOf(t, two+"time-limit: 10s\n"), suites.Shard{})
	hurried := f.machine()
	hurried.Budget = time.Nanosecond
	m := f.run(hurried, folder)
	if len(f.made) != 0 || m.Verdict != checker.Undecided || m.Missing() != 4 || m.Cells[0].OutOfTime != 2 || m.Cells[0].Verdict != checker.Undecided {
		t.Errorf("made %v, %s, %d missing", f.made, m.Verdict, m.Missing())
	}
	again, err := Open(folder.Path)
	if err != nil {
		t.Fatal(err)
	}
	patient := f.machine()
	patient.Budget = time.Hour
	if m = f.run(patient, again); len(f.made) != 4 || m.Verdict != checker.Valid || m.Missing() != 0 || m.Cells[0].OutOfTime != 0 {
		t.Errorf("gone on with: made %v, %s, %d missing", f.made, m.Verdict, m.Missing())
	}
}

// TestFirstRunsFirst: every cell gets its first run before any cell gets its second.
func TestFirstRunsFirst(t *testing.T) {
	f := newFolder(t, suiteOf(t, "locks: [memory, none]\nfaults: [none, 'pause:holder']\nguards: [none]\nseeds: 3\n"), suites.Shard{})
	for i, p := range todoOf(t, f) {
		if p.turn != i/4 || p.seed != uint64(i/4)+1 {
			t.Errorf("run %d is %s, seed %d", i, p.Place, p.seed)
		}
	}
}

// todoOf lists the missing runs in the order in which a comparison with a budget makes them.
func todoOf(t *testing.T, f *Folder) []planned {
	t.Helper()
	todo, err := f.todo()
	if err != nil {
		t.Fatal(err)
	}
	inOrder(todo, true)
	return todo
}
