package checker

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker/simulation"
	"lockcheck/history"
)

// pool is the script of a semaphore whose workers read twice.
func pool(permits int) *script {
	return newScript().with(func(h *history.Header) { h.Permits, h.Workload = permits, history.WorkloadSemaphore })
}

// stay is a whole section: granted, read at both ends, released.
func (s *script) stay(worker, grant string, from, to float64) *script {
	return s.acquire(worker, grant, from-1, from).read(grant, from+0.25, 0).read(grant, to-0.25, 0).release(grant, to, to+1)
}

// numbered numbers the accesses of the resource in the order of time.
func (s *script) numbered() *script {
	slices.SortStableFunc(s.events, func(a, b history.Event) int { return cmp.Compare(a.Time, b.Time) })
	seq := int64(0)
	for i := range s.events {
		if s.events[i].Seq != 0 {
			seq++
			s.events[i].Seq = seq
		}
	}
	return s
}

// TestSemaphore has the smallest histories of a semaphore, and for each bad one a similar good one.
func TestSemaphore(t *testing.T) {
	two := func() *script { return pool(2).stay("w1", "a", 10, 40).stay("w2", "b", 20, 50) }
	for _, c := range []struct {
		name           string
		s              *script
		overlap, model Verdict
		inside         int
	}{
		{"two of two", two(), Valid, Valid, 2},
		{"a third", two().stay("w3", "c", 30, 60), Violation, Violation, 3},
		{"a third of three", two().with(func(h *history.Header) { h.Permits = 3 }).stay("w3", "c", 30, 60), Valid, Valid, 3},
		{"a third after the first", two().stay("w3", "c", 42, 60), Valid, Valid, 2},
		{"a fourth after the first", two().stay("w3", "c", 30, 60).stay("w4", "d", 42, 47), Violation, Violation, 3},
		{"a third after the lease of the first", pool(2).acquire("w1", "a", 9, 10).stay("w2", "b", 90, 130).stay("w3", "c", 112, 120).notHeld("a", 125, 126), Violation, Valid, 2},
		{"a third after the first was told", pool(2).acquire("w1", "a", 9, 10).lost("a", 111, "service").stay("w2", "b", 90, 130).stay("w3", "c", 112, 120), Valid, Valid, 2},
		{"a third refused for one of two", two().busy("w3", "c", 30, 31, "a"), Valid, Valid, 2},
		{"a third refused for one that is gone", two().busy("w3", "c", 45, 46, "a"), Valid, Violation, 2},
		{"a release refused of one that has a permit", pool(2).stay("w2", "b", 20, 50).acquire("w1", "a", 9, 10).read("a", 15, 0).notHeld("a", 40, 41), Valid, Violation, 1},
		{"a release that another one takes for its own", pool(2).acquire("w1", "a", 9, 10).acquire("w2", "b", 19, 20).
			read("a", 11, 0).read("b", 21, 0).read("a", 29, 0).release("a", 30, 31).stay("w3", "c", 35, 45).read("b", 49, 0).notHeld("b", 50, 51), Valid, Violation, 2},
		{"one permit", pool(1).stay("w1", "a", 10, 20).stay("w2", "b", 22, 30), Valid, Valid, 1},
		{"two of one", pool(1).stay("w1", "a", 10, 40).stay("w2", "b", 20, 50), Violation, Violation, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := c.s.numbered().end().history(t)
			r := Check(h, Options{})
			noBug(t, r)
			for p, v := range map[Property]Verdict{MutualExclusion: c.overlap, Linearizability: c.model, NoLostUpdate: NotApplicable, FencingOrder: NotApplicable} {
				if f := r.of(p); f.Verdict != v {
					t.Errorf("%s is %s, want %s: %s", p, f.Verdict, v, factsText(f.Facts))
				}
			}
			if h.Header.Permits > 1 {
				for _, p := range []Property{NoWrongRelease, NoStaleWrite} {
					if f := r.of(p); f.Verdict != NotApplicable {
						t.Errorf("%s is %s: %s", p, f.Verdict, factsText(f.Facts))
					}
				}
			}
			if seen := fmt.Sprintf("kind:inside-at-once,n:%d", c.inside); !strings.Contains(factsText(r.of(MutualExclusion).Facts), seen) {
				t.Errorf("%s; want %q", factsText(r.of(MutualExclusion).Facts), seen)
			}
		})
	}
	want(t, pool(4).stay("w1", "a", 10, 40).end().check(t), MutualExclusion, Undecided, 0)
}

// TestSemaphoreBlames: if no hold was over, one that a fault can have ended is to blame for one too many.
func TestSemaphoreBlames(t *testing.T) {
	clock := history.Fault{ID: "f1", Kind: history.Clock, Targets: []string{"n1"}, Step: 9e7}
	for from, want := range map[float64]string{12: CauseClock, 2: CauseTwice} {
		s := pool(2).stay("w1", "a", 10, 70).renew("a", 25, 26).stay("w2", "b", 20, 50).stay("w3", "c", 30, 60).fault(clock, from, from+2)
		if found := s.numbered().end().check(t).of(MutualExclusion).Violations; len(found) != 1 || found[0].Cause != want {
			t.Errorf("a step at %v: %+v, want %s", from, found, want)
		}
	}
}

// TestPermitLeft: a worker that waits while a permit is left is stuck, although another permit is held.
func TestPermitLeft(t *testing.T) {
	for permits, v := range map[int]Verdict{1: Valid, 2: Violation} {
		r := pool(permits).acquire("w1", "a", 9, 10).
			fault(history.Fault{ID: "f1", Kind: "kill", Targets: []string{"w1"}}, 14, 15).
			acquire("w2", "b", 200, 201).busy("w3", "c", 210, 2500, "").release("b", 2600, 2601).end().check(t)
		if f := r.of(Liveness); f.Verdict != v {
			t.Errorf("%d permits: %s: %s", permits, f.Verdict, factsText(f.Facts))
		}
		if shared := r.Orphans == (OrphanSummary{}) && r.Failovers == (FailoverSummary{}); shared != (permits > 1) {
			t.Errorf("%d permits: %+v, %+v", permits, r.Orphans, r.Failovers)
		}
	}
}

// TestPermitsGranted: a worker that waits for long while others are granted the remaining permits is not
// stuck.
func TestPermitsGranted(t *testing.T) {
	granted := func() *script {
		return pool(2).stay("w1", "a", 100, 200).stay("w1", "b", 900, 1000).stay("w1", "c", 1700, 1800)
	}
	for name, c := range map[string]struct {
		s    *script
		want Verdict
	}{
		"granted now and then": {granted().acquire("w3", "d", 1, 2400).release("d", 2500, 2501), Valid},
		"never again":          {granted().acquire("w3", "d", 1, 3400).release("d", 3500, 3501), Violation},
	} {
		if f := c.s.numbered().end().check(t).of(Liveness); f.Verdict != c.want {
			t.Errorf("%s: %s: %s", name, f.Verdict, factsText(f.Facts))
		}
	}
}

// TestCrowdReadLate: of too many holders, the one that read its answer late was over.
func TestCrowdReadLate(t *testing.T) {
	r := pool(2).pause("f1", 5, 160, "w1").acquire("w1", "c", 1, 160).acquire("w2", "a", 80, 81).acquire("w3", "b", 109, 110).
		notHeld("c", 170, 171).release("a", 175, 176).release("b", 200, 201).end().check(t)
	noBug(t, r)
	if f := r.of(MutualExclusion); f.Total != 1 || f.Violations[0].Cause != CausePaused || f.Violations[0].Workers[0] != "w1" {
		t.Errorf("want that w1 was paused: %+v", f.Violations)
	}
}

// TestCrowdNextToLongWait: the incident names the holder whose hold was over, and not one that rightly held a
// permit after a long wait.
func TestCrowdNextToLongWait(t *testing.T) {
	r := pool(2).acquire("w1", "x", 59, 60).acquire("w2", "a", 108, 110).
		try("w3", "h", 1, 165, history.Event{Type: history.OK, Until: ms(265)}).release("a", 200, 201).notHeld("x", 250, 251).release("h", 300, 301).end().check(t)
	noBug(t, r)
	if f := r.of(MutualExclusion); f.Total != 1 || f.Violations[0].Class != UseAfterExpiry || f.Violations[0].Workers[0] != "w1" {
		t.Errorf("want a use after expiry by w1: %+v", f.Violations)
	}
}

// TestSilentHolders: if as many workers as permitted hold the lock and leave no further trace, nobody can say
// whether there are too many.
func TestSilentHolders(t *testing.T) {
	for permits, v := range map[int]Verdict{1: Undecided, 2: Undecided, 3: Valid} {
		s := pool(permits).with(func(h *history.Header) { h.Lease = 10 * time.Second })
		for i := range min(permits, 2) {
			s.acquire(fmt.Sprintf("w%d", i+1), fmt.Sprintf("s%d", i+1), float64(9+i), float64(10+i))
		}
		r := s.stay("w3", "c", 30, 40).stay("w4", "d", 50, 60).numbered().end().check(t)
		if f := r.of(MutualExclusion); f.Verdict != v {
			t.Errorf("%d permits: %s: %s", permits, f.Verdict, factsText(f.Facts))
		}
	}
}

// TestPauseWithPermitLeft: a stopped holder keeps nobody out while permits are left.
func TestPauseWithPermitLeft(t *testing.T) {
	for permits, exercised := range map[int]bool{1: true, 2: false} {
		s := pool(permits).acquire("w1", "a", 9, 10).pause("f1", 20, 200, "w1").stay("w2", "b", 130, 140).notHeld("a", 210, 211)
		if f := s.numbered().end().check(t).Faults; len(f) != 1 || f[0].Exercised != exercised {
			t.Errorf("%d permits: %+v", permits, f)
		}
	}
}

// TestCrowdLength: there are too many holders until enough of them have left.
func TestCrowdLength(t *testing.T) {
	r := pool(2).stay("w1", "a", 10, 70).stay("w2", "b", 20, 45).stay("w3", "c", 30, 60).numbered().end().check(t)
	if s := r.Overlaps; s.Longest != 15e6 || s.Total() != 1 {
		t.Errorf("%s in %d overlaps, want 15 ms in one", s.Longest, s.Total())
	}
}

// TestCrowdOfValid: too many holders within their validity are a double grant, even if another holder has
// outlived its validity.
func TestCrowdOfValid(t *testing.T) {
	crowd := func() *script { return pool(2).acquire("w1", "a", 9, 10).stay("w2", "b", 112, 150) }
	for class, s := range map[string]*script{
		UseAfterExpiry: crowd().stay("w3", "c", 120, 140).notHeld("a", 160, 161),
		DoubleGrant:    crowd().stay("w3", "c", 111, 114).stay("w4", "d", 113, 145).release("a", 160, 161),
	} {
		r := s.numbered().end().check(t)
		noBug(t, r)
		last := r.of(MutualExclusion).Violations
		if len(last) == 0 || last[len(last)-1].Class != class {
			t.Errorf("want a %s: %+v", class, last)
		}
	}
}

// TestCrowdWithoutPermit: of too many holders the incident names the one whose grant the service said was
// gone. That holds even if the answer may belong to a repeated request.
func TestCrowdWithoutPermit(t *testing.T) {
	for name, add := range map[string]func(*script) *script{
		"refused": func(s *script) *script { return s },
		"refused, perhaps once more": func(s *script) *script {
			s.add(1, history.Event{Process: "w1", Type: history.Info, F: history.Client, Note: "theirs 1.0"})
			return s.fault(history.Fault{ID: "cut", Kind: history.Partition, Targets: []string{"w1"}, Peers: []string{"n1"}}, 35, 50)
		},
	} {
		r := add(pool(2).acquire("w2", "b", 5, 6).acquire("w1", "a", 10, 11).acquire("w3", "c", 30, 31)).
			notHeld("a", 40, 60).release("b", 70, 71).release("c", 75, 76).numbered().end().check(t)
		noBug(t, r)
		found := r.of(MutualExclusion).Violations
		if len(found) != 1 || !slices.Contains(found[0].Grants, "a") || !slices.Contains(found[0].Grants, "c") || found[0].Cause != CauseUnexplained {
			t.Errorf("%s: want a and c, unexplained: %+v", name, found)
		}
	}
}

// TestWitness: if the resource saw more workers inside than the holds show, that is a bug in lockcheck.
func TestWitness(t *testing.T) {
	r := newRun(pool(2).stay("w1", "a", 10, 40).stay("w2", "b", 20, 50).stay("w3", "c", 30, 60).numbered().end().history(t))
	if got := r.insideWithoutHold(findOverlaps(r)); len(got) != 0 {
		t.Errorf("with the overlaps that there are: %v", got)
	}
	if got := r.insideWithoutHold(together{}); len(got) != 1 {
		t.Errorf("without them: %v", got)
	}
	dead := pool(2).acquire("w1", "a", 9, 10).read("a", 12, 0).
		fault(history.Fault{ID: "f1", Kind: "kill", Targets: []string{"w1"}}, 14, 15).
		read("a", 41, 0).stay("w2", "b", 20, 50).stay("w3", "c", 30, 60).numbered().end().check(t)
	noBug(t, dead)
	want(t, dead, MutualExclusion, Valid, 0)
}

// TestCrowdedOverTime counts, at each point of time, the workers that come in while there are too many.
func TestCrowdedOverTime(t *testing.T) {
	crowded := 0
	for seed := range histories(1500) {
		rng := rand.New(rand.NewPCG(seed, 12))
		permits := 2 + rng.IntN(2)
		s := pool(permits)
		var starts, ends []int
		for w := range 5 { // each worker comes up to three times
			worker, at := fmt.Sprintf("w%d", w+1), rng.IntN(12)
			for i := range 1 + rng.IntN(3) {
				from := at + 1 + rng.IntN(4)
				at = from + 1 + rng.IntN(12)
				starts, ends = append(starts, from), append(ends, at)
				g := fmt.Sprintf("%s-%d", worker, i)
				s.acquire(worker, g, float64(from)-0.5, float64(from)).release(g, float64(at), float64(at)+0.5)
			}
		}
		s.header.Workers = []string{"w1", "w2", "w3", "w4", "w5"}
		want := 0
		for at := range slices.Max(ends) {
			inside, new := 0, 0
			for i := range starts {
				if starts[i] <= at && at < ends[i] { // from this point to the next
					inside++
				}
				if starts[i] == at {
					new++
				}
			}
			want += min(new, max(0, inside-permits))
		}
		h := s.end().history(t)
		if got := findOverlaps(newRun(h)).total; got != want {
			t.Fatalf("seed %d: %d, want %d\n%s", seed, got, want, dumpEvents(h))
		}
		crowded += want
	}
	if crowded == 0 {
		t.Error("there were never too many")
	}
}

// TestSimulatedSemaphores compares the checkers with simulated semaphores that know the truth.
func TestSimulatedSemaphores(t *testing.T) {
	kinds, tooMany, stuck := make(map[string]string), 0, 0
	for seed := range histories(1000) {
		rng := rand.New(rand.NewPCG(seed, 13))
		w := simulation.Random(rng, seed%2 == 0)
		w.Permits, w.Reentrant, w.Guard = 2+rng.IntN(2), 1, history.GuardNone
		w.Workers, w.Attempts, w.Tokens = w.Permits+1+rng.IntN(3), 2+rng.IntN(4), false
		w.Workload = history.WorkloadSemaphore
		h, truth := simulation.Run(seed, w)
		if err := history.Validate(h); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		o := askOracle(w, h, truth, Check(h, Options{}))
		for kind, what := range o.wrong {
			if kinds[kind] == "" {
				small := shrink(w, h, truth, kind)
				kinds[kind] = fmt.Sprintf("seed %d: %s\n%s", seed, what, lines(small))
			}
		}
		tooMany += o.results.of(MutualExclusion).Total
		if o.results.of(Liveness).Verdict == Violation {
			stuck++
		}
	}
	for kind, what := range kinds {
		t.Errorf("%s: %s", kind, what)
	}
	t.Logf("%d times too many, %d times stuck", tooMany, stuck)
	if tooMany == 0 {
		t.Error("there were never too many")
	}
}
