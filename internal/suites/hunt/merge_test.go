package hunt

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/repros"
	"lockcheck/internal/suites/trials"
)

// partOf makes a part of a hunt on disk.
func partOf(t *testing.T, n, of int, entries ...entry) *Folder {
	t.Helper()
	p := ready(t, "memory")
	p.Shard = suites.Shard{N: n, Of: of}
	f, err := Create(t.TempDir(), p)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		if e.Tried != nil {
			e.Tried.Number = i*of + n - 1
		}
		if err := f.add(e); err != nil {
			t.Fatal(err)
		}
		if e.Tried != nil && e.Tried.Run != "" {
			run := filepath.Join(f.Path, e.Tried.Run)
			if err := errors.Join(os.MkdirAll(run, 0o755), os.WriteFile(filepath.Join(run, "report.html"), nil, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return f
}

// trialAt is a trial that began at a time in seconds. It was the first in its part to cover a Cell, and it
// violated the property, if one is given.
func trialAt(second int, met string, property checker.Property) entry {
	t := &attempt{Trial: Trial{Use: trials.Use{Workers: 2, Section: shortest}}, Began: time.Unix(int64(second), 0), Proven: true, Fresh: []Cell{{Moment: met}}}
	if property != "" {
		t.Finds, t.Run = []sighting{{Signature: Signature{Property: property}, What: "so"}}, "runs/x"
	}
	return entry{Tried: t}
}

func TestMerge(t *testing.T) {
	stuck := Signature{Property: checker.Liveness}
	a := partOf(t, 1, 3, trialAt(1, "queued", ""), trialAt(4, "holding", checker.Liveness),
		entry{Found: &record{Name: "a", Signature: stuck, Source: 2, Rerun: []int{2}, OriginalRuns: Count{Shown: 1, Made: 6}, Run: "runs/x"}})
	b := partOf(t, 3, 3, trialAt(2, "queued", checker.Liveness), trialAt(3, "acquiring", ""),
		entry{Found: &record{Name: "b", Signature: stuck, Source: 1, Rerun: []int{1}, OriginalRuns: Count{Shown: 6, Made: 6}, Control: "c", File: "finds/b.yaml", Run: "runs/x"}})
	path := filepath.Join(t.TempDir(), "whole")
	whole, err := Merge(t.Context(), path, []*Folder{a, b})
	if err != nil {
		t.Fatal(err)
	}
	h := whole.Result()
	if got := h.Arms[0].Trials + h.Arms[1].Trials; got != 4 {
		t.Errorf("%d trials", got)
	}
	if len(h.Met) != 3 {
		t.Errorf("met %v: what two parts were the first to meet is met once", h.Met)
	}
	if !slices.Equal(h.Missing, []suites.Shard{{N: 2, Of: 3}}) {
		t.Errorf("missing: %v", h.Missing)
	}
	if len(h.Findings) != 1 || h.Findings[0].Name != "b" || h.Findings[0].First != 2 || h.Findings[0].File != "finds/part2/b.yaml" || h.Findings[0].Seen != 2 {
		t.Errorf("finds: %+v", h.Findings)
	}
	if got := (&search{folder: whole, machine: Machine{Parallel: 1}}).next()[0].Number; got != 1 {
		t.Errorf("it goes on with trial %d, not with the first one of the part that is missing", got)
	}
	if got := whole.records[0].Rerun; !slices.Equal(got, []int{2}) {
		t.Errorf("gone into %v", got)
	}
	if _, err := os.Stat(filepath.Join(path, h.Findings[0].Run)); err != nil || h.Findings[0].Run != "runs/part2/x" {
		t.Errorf("run %s: %v", h.Findings[0].Run, err)
	}
}

// TestMergeNotSeenAgain: one part did not see a finding again, and another had no time for it. The finding
// stays open, whichever part comes first.
func TestMergeNotSeenAgain(t *testing.T) {
	stuck := Signature{Property: checker.Liveness}
	again := func(first int) entry {
		return entry{Found: &record{Signature: stuck, Source: first, Rerun: []int{first}, OriginalRuns: Count{Made: 6}, State: notSeenAgain, Run: "runs/x"}}
	}
	for name, c := range map[string]struct {
		other []entry
		want  checker.Verdict
	}{
		"no time":        {[]entry{trialAt(2, "queued", checker.Liveness)}, checker.Undecided},
		"nor by another": {[]entry{trialAt(2, "queued", checker.Liveness), again(1)}, checker.Valid},
	} {
		one := func(n int) *Folder { return partOf(t, n, 2, trialAt(1, "queued", checker.Liveness), again(1)) }
		for order, parts := range map[string][]*Folder{
			"first": {one(1), partOf(t, 2, 2, c.other...)}, "last": {partOf(t, 1, 2, c.other...), one(2)},
		} {
			whole, err := Merge(t.Context(), filepath.Join(t.TempDir(), "whole"), parts)
			if err != nil {
				t.Fatal(err)
			}
			if got := whole.Result().Verdict(); got != c.want {
				t.Errorf("%s, %s: %s, want %s: %+v", name, order, got, c.want, whole.Result().Findings)
			}
		}
	}
}

// TestMissingPart: a merged hunt that found nothing is undecided if a part is missing.
func TestMissingPart(t *testing.T) {
	for _, c := range []struct {
		property checker.Property
		parts    int
		want     checker.Verdict
	}{
		{"", 1, checker.Undecided}, {"", 2, checker.Valid}, {checker.NoExpiredGrant, 1, checker.Violation},
	} {
		var parts []*Folder
		for n := range c.parts {
			parts = append(parts, partOf(t, n+1, 2, trialAt(n, "queued", c.property)))
		}
		whole, err := Merge(t.Context(), filepath.Join(t.TempDir(), "whole"), parts)
		if err != nil {
			t.Fatal(err)
		}
		if got := whole.Result().Verdict(); got != c.want {
			t.Errorf("%q, %d parts: %s, want %s", c.property, c.parts, got, c.want)
		}
	}
}

func TestMergeRefused(t *testing.T) {
	a := partOf(t, 1, 2)
	whole := partOf(t, 1, 2)
	whole.Plan.Shard = suites.Shard{}
	for name, other := range map[string]*Folder{"the same part": partOf(t, 1, 2), "another number of parts": partOf(t, 2, 3), "a whole hunt": whole} {
		if _, err := Merge(t.Context(), filepath.Join(t.TempDir(), "whole"), []*Folder{a, other}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	outside := partOf(t, 2, 2, entry{Tried: &attempt{Run: "../../elsewhere"}})
	if _, err := Open(outside.Path); err == nil {
		t.Error("a run outside of the hunt is taken")
	}
}

// TestDealtOut: the parts of a hunt make different trials, and together all trials of the whole hunt.
func TestDealtOut(t *testing.T) {
	p := ready(t, "redlock")
	want := make(map[string]int)
	for _, trial := range newGuide(p).first {
		want[trial.key()]++
	}
	for n := range 3 {
		p.Shard = suites.Shard{N: n + 1, Of: 3}
		for _, trial := range newGuide(p).first {
			want[trial.key()]--
		}
		// Trial 4 ended before trial 3, and then the hunt was interrupted.
		s := &search{folder: newFolder("", p, nil), machine: Machine{Parallel: 1}}
		for _, i := range []int{0, 1, 2, 4} {
			s.folder.apply(entry{Tried: &attempt{Number: 3*i + n}})
		}
		if next := s.next(); next[0].Number != 3*3+n || next[1].Number != 3*5+n {
			t.Errorf("part %d goes on with %d and %d", n+1, next[0].Number, next[1].Number)
		}
	}
	for key, left := range want {
		if left != 0 {
			t.Errorf("%s: %d", key, left)
		}
	}
}

// TestBlindOfParts: many parts with few trials each also have their share of blind trials.
func TestBlindOfParts(t *testing.T) {
	for _, c := range []struct{ parts, trials, want int }{{1, 24, 6}, {8, 3, 6}, {4, 1, 1}, {3, 8, 6}} {
		blind := 0
		for n := range c.parts {
			p := Plan{Blind: 0.25, Shard: suites.Shard{N: n + 1, Of: c.parts}}
			for i := range c.trials {
				if p.isBlind(i) {
					blind++
				}
			}
		}
		if blind != c.want {
			t.Errorf("%d parts of %d trials: %d are blind, want %d", c.parts, c.trials, blind, c.want)
		}
	}
}

// TestMergeLockFile: a merged reproduction finds the lock file, wherever the part was made.
func TestMergeLockFile(t *testing.T) {
	const lock = "../../../examples/kazoo/lock.yaml"
	p, err := Plan{Lock: lock, Seed: 1}.Ready()
	if err != nil {
		t.Fatal(err)
	}
	p.Shard = suites.Shard{N: 1, Of: 1}
	part, err := Create(t.TempDir(), p)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(part.Path, findsFolder)
	s := Signature{Property: checker.Liveness}
	r, err := p.reproduction("hunt-kazoo-1", Trial{Use: trials.Use{Workers: 2, Section: shortest}}, s, "stuck")
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := write(folder, r); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(findsFolder, "hunt-kazoo-1.yaml")
	if err := part.add(entry{Found: &record{Signature: s, File: file, OriginalRuns: Count{6, 6}}}); err != nil {
		t.Fatal(err)
	}
	whole, err := Merge(t.Context(), filepath.Join(t.TempDir(), "whole"), []*Folder{part})
	if err != nil {
		t.Fatal(err)
	}
	merged, err := repros.FromFile(filepath.Join(whole.Path, whole.records[0].File))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.Stat(lock)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.Stat(merged.Setup.Lock); err != nil || !os.SameFile(got, want) {
		t.Errorf("its lock is %s: %v", merged.Setup.Lock, err)
	}
}
